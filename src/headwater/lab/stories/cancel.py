"""One stream is cancelled, another is killed."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

from headwater.lab import process
from headwater.lab.demo.run import STREAMS
from headwater.lab.stories.base import Seen, Story

if TYPE_CHECKING:
    import psutil

    from headwater.lab.stories.stage import Stage

CANCELLED, KILLED = STREAMS


class Cancel(Story):
    """A person stops a stream; the machine's memory runs out under another."""

    name = "cancel"
    title = "One Spark stream is cancelled, another killed with -9"
    shows = "ABORT for both, also for the one killed with -9; none stays RUNNING."

    def play(self, stage: Stage) -> None:
        """End both, the one kindly, the other not."""
        runs = {job: stage.check_state(job, "RUNNING") for job in STREAMS}
        for job in STREAMS:
            stage.look(f"the runs of {job}", stage.lineage.job_page(job))
        stage.look("the graph: what they wrote is stale", _graph(stage))
        cancelled, killed = stage.leader(CANCELLED), stage.leader(KILLED)
        stage.tell(f"Cancelling {CANCELLED} (SIGTERM, as its scheduler would).")
        cancelled.send_signal(signal.SIGTERM)
        stage.tell(f"Killing {KILLED} (kill -9, as the kernel does when memory runs out).")
        killed.kill()
        for name, leader in ((CANCELLED, cancelled), (KILLED, killed)):
            stage.check(f"the process of {name} is gone", partial(_gone, leader))
        for job, run in runs.items():
            stage.check(f"the run of {job} is ABORTED", partial(_aborted, stage, job, run))
        stage.check("no run of theirs stays RUNNING", lambda: _none_runs(stage))

    def undo(self, stage: Stage) -> None:
        """Start both again; they go on from their checkpoints."""
        gone = [job for job in STREAMS if stage.lineage.latest(job)["state"] != "RUNNING"]
        if gone:
            stage.tell("Starting both again: each goes on from its checkpoint.")
        stage.launch(*STREAMS)
        order = stage.order() if gone else None
        for job in STREAMS:
            stage.check_state(job, "RUNNING")
        if order:
            stage.check(
                "an order of now arrives in default.orders",
                lambda: stage.gauge.has_order("default.orders", order) is not None,
            )


def _graph(stage: Stage) -> str:
    return stage.lineage.graph_page("kafka orders")


def _gone(leader: psutil.Process) -> bool:
    return not process.alive(leader)


def _aborted(stage: Stage, job: str, run: str) -> Seen:
    found = next((r for r in stage.lineage.runs(job) if r["id"] == run), None)
    state = found["state"] if found else "not seen"
    return Seen(state == "ABORTED", state)


def _none_runs(stage: Stage) -> Seen:
    """The streams, their applications, and what they ran for each batch."""
    left = [job for job in stage.lineage.running() if job.startswith(STREAMS)]
    return Seen(not left, f"RUNNING: {', '.join(left)}" if left else "none")
