"""Quality checks of datasets that did not hold when they were last made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.alerts.evaluation import DATASET, TEXT
from headwater.server.alerts.incidents import EntityRef, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.server.alerts.evaluation import Evaluation
    from headwater.server.alerts.jobs import MonitoredJob

__all__ = ["FailedChecks"]

SOME = 50
"""Datasets whose checks are read at once."""


class FailedChecks:
    """The checks that do not hold, of datasets by what their names stand for."""

    def __init__(self) -> None:
        self._failed: dict[int, tuple[int, str]] = {}
        self._checked: dict[int, tuple[int, ...]] = {}
        """The datasets that each job checked."""

    def find(
        self,
        evaluation: Evaluation,
        changed: Iterable[MonitoredJob],
        jobs: Mapping[int, MonitoredJob],
    ) -> list[Finding]:
        """What fails now; only what changed jobs, and those that are gone, checked is read again."""
        again = {job.node[1] for job in changed} | (self._checked.keys() - jobs.keys())
        numbers = {number for job in again for number in self._checked.pop(job, ())}
        for job in again & jobs.keys():
            if checked := jobs[job].checked:
                self._checked[job] = checked
                numbers.update(checked)
        ordered = sorted(set(evaluation.view.roots(numbers).values()))
        graph = evaluation.view.observed_graph(lambda _: {})
        # A run that has just begun has checked nothing yet: the runs before it count.
        graph.recent(job for job, some in self._checked.items() if not numbers.isdisjoint(some))
        for start in range(0, len(ordered), SOME):
            some = ordered[start : start + SOME]
            failed = dict(graph.failed_checks(set(some)))
            for root in some:
                held = self._failed.pop(root, None)
                if (signal := failed.get(root)) is not None:
                    since = min(held[0], signal.since) if held else signal.since
                    self._failed[root] = since, signal.detail
        return [
            self._finding(evaluation, root, since, detail, named)
            for root, (since, detail) in self._failed.items()
            if (named := evaluation.labels.name((DATASET, root))) is not None
        ]

    @staticmethod
    def _finding(
        evaluation: Evaluation, root: int, since: int, detail: str, named: tuple[str, str]
    ) -> Finding:
        node = DATASET, root
        subject = EntityRef("dataset", *named)
        behind, cut = evaluation.behind([node])
        body = evaluation.body(subject, f"{named[1]} failed a check", behind, cut=cut)
        body.rules = evaluation.wanted("check-failed", node, since)
        body.detail, body.owners = detail[:TEXT], evaluation.labels.owners(node)
        return Finding("check-failed", subject, since, body)
