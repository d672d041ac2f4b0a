"""What is wrong now, for all rules together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.alerts.jobs import MonitoredJobs
from headwater.server.alerts.new_readers import NewReaders
from headwater.server.alerts.quality_checks import FailedChecks
from headwater.server.alerts.schema_breaks import SchemaBreaks
from headwater.server.alerts.troubles import passed, silent, troubles

if TYPE_CHECKING:
    from headwater.server.alerts.evaluation import Evaluation

__all__ = ["Conditions"]


class Conditions:
    """Evaluates the rules again and again, and reads only what changed in between."""

    def __init__(self) -> None:
        self._jobs = MonitoredJobs()
        self._checks = FailedChecks()
        self._schemas = SchemaBreaks()
        self._readers = NewReaders()

    def fill(self, evaluation: Evaluation) -> None:
        """Put what is wrong into `findings`."""
        changed = self._jobs.refresh(evaluation.view, evaluation.now)
        found = silent(evaluation, self._jobs)
        # Runs that were closed because their producer is silent are no incidents of their own.
        quiet = {member for one in found for member in one.body.members}
        found += troubles(evaluation, self._jobs, quiet)
        found += passed(evaluation, self._jobs)
        if evaluation.rules.of("check-failed"):
            found += self._checks.find(evaluation, changed, self._jobs.all)
        if evaluation.rules.of("schema-breaks"):
            found += self._schemas.find(evaluation)
        if evaluation.rules.of("new-reader"):
            found += self._readers.find(evaluation)
        evaluation.findings = found
