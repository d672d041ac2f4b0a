"""One stream is cancelled, another is killed."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

from headwater.lab import process
from headwater.lab.demo.run import STREAMS
from headwater.lab.stories.base import CheckOutcome, Story
from headwater.spark.job_names import snake

if TYPE_CHECKING:
    import psutil

    from headwater.lab.stories.story_run import StoryRun

CANCELLED, KILLED = STREAMS
# A stream is a job of its own below the application that runs it, which also names what it runs for a batch.
APPLICATIONS = tuple(f"{name}-stream" for name in STREAMS)
THEIRS = {*STREAMS, *APPLICATIONS, *map(snake, APPLICATIONS)}


class Cancel(Story):
    """A person stops a stream; the machine's memory runs out under another."""

    name = "cancel"
    title = "One Spark stream is cancelled, another killed with -9"
    shows = "ABORT for both, also for the one killed with -9; none stays RUNNING."

    def play(self, story_run: StoryRun) -> None:
        """End both, the one kindly, the other not."""
        runs = {job: story_run.check_state(job, "RUNNING") for job in STREAMS}
        for job in STREAMS:
            story_run.link_page(f"the runs of {job}", story_run.lineage.job_page(job))
        story_run.link_page("the graph: what they wrote is stale", _graph(story_run))
        cancelled, killed = story_run.leader(CANCELLED), story_run.leader(KILLED)
        story_run.describe(f"Cancelling {CANCELLED} (SIGTERM, as its scheduler would).")
        cancelled.send_signal(signal.SIGTERM)
        story_run.describe(f"Killing {KILLED} (kill -9, as the kernel does when memory runs out).")
        killed.kill()
        for name, leader in ((CANCELLED, cancelled), (KILLED, killed)):
            story_run.check(f"the process of {name} is gone", partial(_gone, leader))
        for job, run in runs.items():
            story_run.check(f"the run of {job} is ABORTED", partial(_aborted, story_run, job, run))
        story_run.check("no run of theirs stays RUNNING", lambda: _none_runs(story_run))

    def undo(self, story_run: StoryRun) -> None:
        """Start both again; they go on from their checkpoints."""
        gone = [job for job in STREAMS if story_run.lineage.latest(job)["state"] != "RUNNING"]
        if gone:
            story_run.describe("Starting both again: each goes on from its checkpoint.")
        story_run.launch(*STREAMS)
        order = story_run.order() if gone else None
        for job in STREAMS:
            story_run.check_state(job, "RUNNING")
        if order:
            story_run.check(
                "an order of now arrives in default.orders",
                lambda: story_run.counter.has_order("default.orders", order) is not None,
            )


def _graph(story_run: StoryRun) -> str:
    return story_run.lineage.graph_page("kafka orders")


def _gone(leader: psutil.Process) -> bool:
    return not process.alive(leader)


def _aborted(story_run: StoryRun, job: str, run: str) -> CheckOutcome:
    found = next((r for r in story_run.lineage.runs(job) if r["id"] == run), None)
    state = found["state"] if found else "not seen"
    return CheckOutcome(state == "ABORTED", state)


def _none_runs(story_run: StoryRun) -> CheckOutcome:
    """The streams, their applications, and what they ran for each batch."""
    left = [job for job in story_run.lineage.running() if job.partition(".")[0] in THEIRS]
    return CheckOutcome(not left, f"RUNNING: {', '.join(left)}" if left else "none")
