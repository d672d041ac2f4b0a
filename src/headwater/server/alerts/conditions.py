"""What is wrong now, for all rules together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.alerts import incidents
from headwater.server.alerts.evaluation import ActiveRules, Evaluation
from headwater.server.alerts.jobs import MonitoredJobs
from headwater.server.alerts.new_readers import NewReaders
from headwater.server.alerts.quality_checks import FailedChecks
from headwater.server.alerts.schema_breaks import SchemaBreaks
from headwater.server.alerts.troubles import passed, silent, troubles
from headwater.server.store.view import View

if TYPE_CHECKING:
    from headwater.server.alerts.incidents import Finding, IncidentChanges
    from headwater.server.alerts.rules import Rules
    from headwater.server.app import App

__all__ = ["Conditions"]


class Conditions:
    """Evaluates the same rules again and again, and reads only what changed in between."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._jobs = MonitoredJobs()
        self._checks = FailedChecks()
        self._schemas = SchemaBreaks()
        self._readers = NewReaders()

    def evaluate(self, app: App, now: int) -> tuple[IncidentChanges, bool, int]:
        """What an evaluation changes, whether the store knows exactly these rules, and its epoch."""
        rules = self.rules
        with app.store.database.reading() as connection:
            ((epoch,),) = connection.all("SELECT epoch FROM head WHERE id = 1")
            since = dict(connection.all("SELECT name, since FROM alert_rule"))
            fresh = frozenset(rules.rules.keys() - since.keys())
            seen = {
                rule.name: incidents.seen(connection, rule.name)
                for rule in rules.rules.values()
                if rule.when == "new-reader"
            }
            known = incidents.list_incidents(connection)
            known += incidents.list_incidents(connection, resolved_since=now - incidents.RECENT)
            active = ActiveRules(rules, since, seen, fresh)
            evaluation = Evaluation(View(connection, app.bodies), active, known, now)
            found = self._findings(evaluation)
        changes = incidents.reconcile(rules, known, found, now, fresh)
        same = since.keys() == rules.rules.keys()
        return changes._replace(seen=evaluation.seen), same, epoch

    def _findings(self, evaluation: Evaluation) -> list[Finding]:
        changed = self._jobs.refresh(evaluation.view, evaluation.now)
        found = silent(evaluation, self._jobs)
        # Runs that were closed because their producer is silent are no incidents of their own.
        suppressed = {member for one in found for member in one.body.members}
        found += troubles(evaluation, self._jobs, suppressed)
        found += passed(evaluation, self._jobs)
        if evaluation.rules.of("check-failed"):
            found += self._checks.find(evaluation, changed, self._jobs.all)
        if evaluation.rules.of("schema-breaks"):
            found += self._schemas.find(evaluation)
        if evaluation.rules.of("new-reader"):
            found += self._readers.find(evaluation)
        return found
