"""Incidents as the store keeps them: what is open, what was sent to whom, and what is still to be.

Everything that has to survive the server is written here, in one transaction with the next step:
an incident opens together with the messages that it owes, so no message is lost and none is made
twice. A message that was sent and not yet noted when the server died is sent again, with the same id.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lineage.openlineage.events import canonical
from headwater.server.store.database import within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from headwater.server.alerts.rules import Rules
    from headwater.server.store.database import Connection, ReadConnection

__all__ = [
    "OPENED", "RESOLVED", "Delivery", "EntityRef", "Finding", "Incident", "IncidentBody",
    "IncidentChanges", "deliveries", "due", "forget_old", "list_incidents", "note_delivery",
    "reconcile", "register", "reported", "seen", "write",
]  # fmt: skip

OPENED, RESOLVED = 0, 1
KEPT = 30 * 86_400_000_000
"""How long an incident that is over is kept."""
RECENT = 7 * 86_400_000_000
COLUMNS = "SELECT id, kind, entity, namespace, name, since, opened, resolved, body FROM incident"
TROUBLE = ("run-failed", "stale")

Key = tuple[str, str, str]
"""Job, dataset or namespace; its namespace; its name."""


class EntityRef(msgspec.Struct, frozen=True):
    """A job, dataset or namespace that an incident names."""

    type: str
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        """It as a key."""
        return self.type, self.namespace, self.name


class IncidentBody(msgspec.Struct):
    """The content of an incident, as its message and the API show it."""

    subject: EntityRef
    """The same as in the columns: so that a search for a name finds it here."""
    title: str
    detail: str = ""
    run: str = ""
    rules: list[str] = []
    owners: list[str] = []
    members: list[EntityRef] = []
    """What broke with it: the jobs that it stands for."""
    stale: list[EntityRef] = []
    """The datasets that rules asked for and that are stale because of it."""
    affected: list[EntityRef] = []
    jobs: int = 0
    datasets: int = 0
    more: bool = False
    breaks: int = 0
    """How many jobs the change of a schema breaks; `members` has the first of them."""


class Incident(msgspec.Struct):
    """Something that is wrong, or was."""

    id: str
    kind: str
    entity: str
    namespace: str
    name: str
    since: int
    opened: int
    resolved: int | None
    body: IncidentBody

    @property
    def keys(self) -> set[Key]:
        """What it stands for."""
        own = (self.entity, self.namespace, self.name)
        return {own, *(one.key for one in self.body.members)}


class Finding(msgspec.Struct):
    """What is wrong now: what would be an incident, and the rules that ask for one."""

    kind: str
    subject: EntityRef
    since: int
    body: IncidentBody
    mark: str = ""
    """What distinguishes it from others of the same kind, subject and time."""
    passed: bool = False
    """Whether it is over already: it broke and recovered since the last evaluation."""

    @property
    def id(self) -> str:
        """The same for the same trouble, in each evaluation and on each server."""
        text = "\0".join((_class(self.kind), *self.subject.key, str(self.since), self.mark))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def keys(self) -> set[Key]:
        """What it stands for."""
        return {self.subject.key, *(one.key for one in self.body.members)}


class IncidentChanges(NamedTuple):
    """What one evaluation changes."""

    write: list[Incident]
    owed: list[tuple[str, str, int]]
    """Messages to be sent: incident, channel, phase."""
    seen: Sequence[tuple[str, bytes]] = ()


class Delivery(NamedTuple):
    """A message that is owed."""

    incident: Incident
    channel: str
    phase: int
    attempts: int


_body = msgspec.json.Decoder(IncidentBody)


def _class(kind: str) -> str:
    return "trouble" if kind in TROUBLE else kind


def _incident(row: Sequence[Any]) -> Incident:
    values: Any = (*row[:8], _body.decode(bytes(row[8])))
    return Incident(*values)


def list_incidents(
    connection: ReadConnection, *, resolved_since: int | None = None, limit: int = 10_000
) -> list[Incident]:
    """The open incidents, or those that are over since a moment; the newest first."""
    if resolved_since is None:
        sql = COLUMNS + " WHERE resolved IS NULL ORDER BY opened DESC, id LIMIT ?"
        rows = connection.all(sql, (limit,))
    else:
        sql = COLUMNS + " WHERE resolved >= ? ORDER BY resolved DESC, id LIMIT ?"
        rows = connection.all(sql, (resolved_since, limit))
    return [_incident(row) for row in rows]


def reconcile(
    rules: Rules,
    known: Sequence[Incident],
    findings: Sequence[Finding],
    now: int,
    fresh: Collection[str],
) -> IncidentChanges:
    """What to write and to send so that the incidents are as the findings are.

    `known` are the open and the recently resolved incidents. What was wrong already when a rule of
    `fresh` was evaluated for the first time is listed and not sent.
    """
    at_hand = [one for one in known if one.resolved is None]
    past = [one for one in known if one.resolved is not None]
    ids = {one.id for one in known}
    changed: dict[str, Incident] = {}
    owed: list[tuple[str, str, int]] = []
    covered: set[str] = set()
    for finding in findings:
        same = [one for one in at_hand if _same(one, finding)]
        asked = [name for name in finding.body.rules if name in rules.rules]
        if not same:
            if not asked or finding.id in ids or (finding.passed and reported(past, finding)):
                continue
            found = Incident(
                finding.id, finding.kind, *finding.subject.key, finding.since, now, None,
                finding.body,
            )  # fmt: skip
            at_hand.append(found)
            ids.add(found.id)
            changed[found.id] = found
            covered.add(found.id)
            owed += [(found.id, channel, OPENED) for channel in _channels(rules, asked, fresh)]
            continue
        for one in same:
            if finding.passed:
                continue
            covered.add(one.id)
            if one.resolved is None and _refresh(one, finding, asked):
                changed[one.id] = one
                new = _channels(rules, asked, fresh)
                owed += [(one.id, channel, OPENED) for channel in new]
    for one in at_hand:
        gone = not any(name in rules.rules for name in one.body.rules)
        if one.id not in covered or gone:
            one.resolved = now
            changed[one.id] = one
    return IncidentChanges(list(changed.values()), owed)


def _same(one: Incident, finding: Finding) -> bool:
    if _class(one.kind) != _class(finding.kind):
        return False
    own = (one.entity, one.namespace, one.name)
    if _class(one.kind) != "trouble":
        return own == finding.subject.key and (not finding.mark or one.id == finding.id)
    # An incident that was reported on its own stays so, even if an older cause was found since.
    return own in finding.keys


def reported(known: Sequence[Incident], finding: Finding) -> bool:
    """Whether it is an incident already, or one that is resolved covered it too."""
    own = finding.id
    return any(
        one.id == own
        or (
            _class(one.kind) == _class(finding.kind)
            and (one.resolved or 0) >= finding.since
            and finding.subject.key in one.keys
        )
        for one in known
    )


def _refresh(one: Incident, finding: Finding, asked: list[str]) -> bool:
    """Update the content of an open incident; whether that changes it."""
    rules = [*one.body.rules, *(name for name in asked if name not in one.body.rules)]
    own = (one.entity, one.namespace, one.name) == finding.subject.key
    if own:
        body = msgspec.structs.replace(finding.body, rules=rules)
    else:
        # It stands behind an older cause: what else that cause has brought is named here too.
        body = msgspec.structs.replace(one.body, rules=rules, stale=finding.body.stale)
    changed = body != one.body
    one.body = body
    return changed


def _channels(rules: Rules, asked: Iterable[str], fresh: Collection[str]) -> list[str]:
    reporting = [rules.rules[name] for name in asked if name not in fresh]
    return list(dict.fromkeys(channel for rule in reporting for channel in rule.to))


def write(connection: Connection, changes: IncidentChanges, now: int) -> None:
    """Store the outcome of an evaluation, in the open transaction.

    A channel that was sent the opening of an incident is sent its resolution; no other channel is.
    """
    for one in changes.write:
        connection.run(
            "INSERT INTO incident (id, kind, entity, namespace, name, since, opened, resolved, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " resolved = excluded.resolved, body = excluded.body",
            (*msgspec.structs.astuple(one)[:8], canonical(msgspec.to_builtins(one.body))),
        )
    owe = (
        "INSERT INTO alert_delivery (incident, channel, phase, due, attempts) VALUES (?, ?, ?, ?, 0)"
        " ON CONFLICT (incident, channel, phase) DO NOTHING"
    )
    for incident, channel, phase in changes.owed:
        connection.run(owe, (incident, channel, phase, now))
    over = [one.id for one in changes.write if one.resolved is not None]
    sql = "SELECT incident, channel FROM alert_delivery WHERE phase = 0 AND incident IN ({in})"
    for incident, channel in within(connection, sql, over):
        connection.run(owe, (incident, channel, RESOLVED, now))
    for rule, digest in changes.seen:
        sql = (
            "INSERT INTO alert_seen (rule, hash) VALUES (?, ?) ON CONFLICT (rule, hash) DO NOTHING"
        )
        connection.run(sql, (rule, digest))


def register(connection: Connection, rules: Rules, now: int) -> None:
    """Note since when each rule is there, in the open transaction; forget those that are gone."""
    for name in rules.rules:
        sql = "INSERT INTO alert_rule (name, since) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
        connection.run(sql, (name, now))
    for (name,) in connection.all("SELECT name FROM alert_rule"):
        if name not in rules.rules:
            connection.run("DELETE FROM alert_rule WHERE name = ?", (name,))
            connection.run("DELETE FROM alert_seen WHERE rule = ?", (name,))


def seen(connection: ReadConnection, rule: str) -> set[bytes]:
    """What a rule has seen already."""
    rows = connection.all("SELECT hash FROM alert_seen WHERE rule = ?", (rule,))
    return {bytes(row[0]) for row in rows}


def due(connection: ReadConnection, now: int, limit: int = 100) -> list[Delivery]:
    """The messages that are owed and whose time has come; of an incident, the opening first."""
    rows = connection.all(
        "SELECT d.incident, d.channel, d.phase, d.attempts FROM alert_delivery d"
        " WHERE d.done IS NULL AND d.due <= ? AND (d.phase = 0 OR NOT EXISTS (SELECT 1"
        " FROM alert_delivery o WHERE o.incident = d.incident AND o.channel = d.channel"
        " AND o.phase = 0 AND o.done IS NULL)) ORDER BY d.due, d.incident, d.phase LIMIT ?",
        (now, limit),
    )
    sql = COLUMNS + " WHERE id IN ({in})"
    known = {row[0]: _incident(row) for row in within(connection, sql, {row[0] for row in rows})}
    return [Delivery(known[row[0]], *row[1:]) for row in rows if row[0] in known]


def note_delivery(
    connection: Connection, one: Delivery, now: int, error: str | None, again: int | None
) -> None:
    """Keep what became of a message, in one transaction: sent, given up, or to be tried again."""
    connection.begin()
    connection.run(
        "UPDATE alert_delivery SET attempts = ?, done = ?, due = ?, error = ?"
        " WHERE incident = ? AND channel = ? AND phase = ?",
        (
            one.attempts + 1, None if again is not None else now, again or now, error,
            one.incident.id, one.channel, one.phase,
        ),
    )  # fmt: skip
    connection.commit()


def forget_old(connection: Connection, now: int) -> None:
    """Delete incidents that were resolved long ago, in the open transaction."""
    rows = connection.all("SELECT id FROM incident WHERE resolved < ?", (now - KEPT,))
    for table, column in (("alert_delivery", "incident"), ("incident", "id")):
        sql = f"DELETE FROM {table} WHERE {column} IN ({{in}}) RETURNING 1"  # noqa: S608
        within(connection, sql, [row[0] for row in rows])


def deliveries(connection: ReadConnection, ids: Iterable[str]) -> Mapping[str, list[Any]]:
    """Of these incidents, what became of each message: channel, phase, attempts, done, error."""
    sql = (
        "SELECT incident, channel, phase, attempts, done, error FROM alert_delivery"
        " WHERE incident IN ({in})"
    )
    found: dict[str, list[Any]] = {}
    for row in sorted(within(connection, sql, list(ids)), key=lambda row: row[:3]):
        found.setdefault(row[0], []).append(row[1:])
    return found
