"""What is wrong now, for all rules together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.alerts.checks import FailedChecks
from headwater.server.alerts.jobs import KnownJobs
from headwater.server.alerts.new_readers import new_readers
from headwater.server.alerts.schema_breaks import SchemaBreaks
from headwater.server.alerts.troubles import passed, silent, troubles

if TYPE_CHECKING:
    from headwater.server.alerts.look import Look

__all__ = ["Conditions"]


class Conditions:
    """Looks at a store again and again, and reads only what changed in between."""

    def __init__(self) -> None:
        self._jobs = KnownJobs()
        self._checks = FailedChecks()
        self._schemas = SchemaBreaks()

    def fill(self, look: Look) -> None:
        """Put what is wrong into a look."""
        changed = self._jobs.refresh(look.view, look.now)
        found = silent(look, self._jobs)
        # Runs that were closed because their producer is silent are no incidents of their own.
        quiet = {member for one in found for member in one.body.members}
        found += troubles(look, self._jobs, quiet)
        found += passed(look, self._jobs)
        if look.asked.of("check-failed"):
            found += self._checks.find(look, changed)
        if look.asked.of("schema-breaks"):
            found += self._schemas.find(look)
        if look.asked.of("new-reader"):
            found += new_readers(look)
        look.findings = found
