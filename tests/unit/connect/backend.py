"""A server in memory at the edge of the agent: runs and their states by the rule of the real one."""

from __future__ import annotations

from typing import Any

from headwater.connect.services.lineage_server import ServerRun
from headwater.lineage.lifecycle import RunHistory
from headwater.lineage.openlineage.events import EventType


class Backend:
    """Folds what it is told as a server does, in any order, and answers which runs there are."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, RunHistory]] = {}
        self.folded: set[str] = set()
        self.deleted: list[str] = []
        self.down = False
        self.may_answer_later = True
        self.asked = 0

    def runs_of(self, namespace: str, job: str) -> list[ServerRun] | None:
        self.asked += 1
        if self.down:
            return None
        lives = self.jobs.get(job, {}).items()
        newest = sorted(lives, key=lambda one: (one[1].first, one[0]), reverse=True)
        return [ServerRun(run, life.state.value, life.first or 0, life.end) for run, life in newest]

    def take(self, job: str, run: str, event_type: str, at: int) -> None:
        """One event of a run, whoever sent it."""
        life = self.jobs.setdefault(job, {}).setdefault(run, RunHistory())
        life.observe(EventType(event_type), at)

    def hear(self, event: dict[str, Any]) -> None:
        """One event of the agent's."""
        if event["type"] == "DELETED":
            self.deleted.append(event["job"])
        elif event["part"] and not event["run"]:
            self.folded.add(event["job"])
        elif event["part"] or not event["mute"]:
            self.take(event["job"], event["run"], event["type"], event["at"])

    def states(self, job: str) -> list[str]:
        """The states of a job's runs, the newest first."""
        down, self.down = self.down, False
        found = [run.state for run in self.runs_of("", job) or []]
        self.down = down
        return found
