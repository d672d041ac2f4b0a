"""The tables, as numbered migrations, and the shape of the rows that are written in bulk.

Times are microseconds since 1970 (UTC). `state` columns hold msgpack; `body` columns hold
zstd, with the dictionary whose id stands beside them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = [
    "ALL_TABLES", "BASE", "CLAIM_PERIODS", "DIALECTS", "LATEST", "MIGRATIONS", "TABLES",
    "UNNAMED_PARENTS", "Table",
]  # fmt: skip


class Table(NamedTuple):
    """A table that the writer fills: its columns with their kinds, and its key."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]
    changes: bool = True
    fixed: tuple[str, ...] = ()
    """Columns that never change once written, so that their indexes are left alone."""

    @property
    def moving(self) -> list[str]:
        """The columns that a later write may change."""
        held = {*self.key, *self.fixed}
        return [c for c in self.columns if c not in held] if self.changes else []


def _table(name: str, columns: str, key: str, fixed: str = "", *, changes: bool = True) -> Table:
    kinds = {"i": "bigint", "t": "text", "b": "bytea"}
    pairs = (column.split(":") for column in columns.split())
    found = {n: kinds[k] for n, k in pairs}
    return Table(name, found, tuple(key.split()), changes, tuple(fixed.split()))


BASE = {"run_state": "run"}
"""Some columns of a table, written alone where the others have not changed."""

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table(
            "namespace",
            "id:i name:t owner:t description:t created:i updated:i hidden:i",
            "id",
            "name",
        ),
        _table(
            "source", "id:i name:t kind:t url:t description:t created:i updated:i", "id", "name"
        ),
        _table(
            "dataset",
            "id:i namespace:i name:t root:i source:i kind:t created:i updated:i hidden:i version:i state:b",
            "id",
            "namespace name",
        ),
        _table(
            "job",
            "id:i namespace:i name:t kind:t created:i updated:i hidden:i latest:i version:i state:b",
            "id",
            "namespace name",
        ),
        _table(
            "run",
            "id:i uuid:b job:i status:i created:i updated:i ended:i deadline:i linked:i state:b",
            "id",
            "uuid job",
        ),
        _table("run_state", "id:i status:i updated:i state:b", "id"),
        _table("facet", "id:i hash:b dictionary:i body:b", "id", changes=False),
        _table("facet_change", "kind:i entity:i name:t time:i facet:i", "kind entity name time"),
        _table(
            "edge", "job:i dataset:i direction:i since:i until:i", "job dataset direction since"
        ),
        _table("column_map", "dataset:i job:i time:i facet:i", "dataset job time"),
        _table("column_link", "source:i dataset:i job:i", "source dataset job", changes=False),
        _table("dataset_version", "id:i dataset:i uuid:b run:i time:i facet:i", "id"),
        _table("job_version", "id:i job:i uuid:b time:i run:i state:b", "id"),
        _table("alias", "namespace:t name:t dataset:i time:i", "namespace name"),
        _table("joined", "namespace:t name:t dataset:i time:i", "namespace name"),
        _table("cluster", "dataset_namespace:t id:t time:i", "dataset_namespace"),
        _table(
            "log",
            "seq:i kind:i at:i time:i type:i hash:b chain:b job:i run:i dictionary:i body:b",
            "seq",
            changes=False,
        ),
        _table("event_count", "hour:i type:i n:i", "hour type"),
        _table(
            "claim",
            "dataset:i job:i run:i side:i subject:t version:i mark:i rank:i facet:i first:i last:i"
            " parts:i",
            "dataset job run side subject version mark",
        ),
        _table("schema_end", "dataset:i run:i time:i", "dataset run time", changes=False),
        _table("fold", "job:i namespace:t name:t whole:i", "job"),
        _table("deletion", "kind:i entity:i since:i until:i", "kind entity since"),
        _table("named_parent", "namespace:t name:t job:i", "namespace name job", changes=False),
    )
}

_FIRST = """
CREATE TABLE head (id {int} PRIMARY KEY, seq {int} NOT NULL, chain {blob} NOT NULL, epoch {int} NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE dictionary (id {int} PRIMARY KEY, data {blob} NOT NULL);
CREATE TABLE namespace (
  id {int} PRIMARY KEY, name TEXT NOT NULL UNIQUE, owner TEXT, description TEXT,
  created {int} NOT NULL, updated {int} NOT NULL, hidden {int} NOT NULL);
CREATE TABLE source (
  id {int} PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, url TEXT NOT NULL,
  description TEXT, created {int} NOT NULL, updated {int} NOT NULL);
CREATE TABLE dataset (
  id {int} PRIMARY KEY, namespace {int} NOT NULL, name TEXT NOT NULL, root {int} NOT NULL,
  source {int}, kind TEXT NOT NULL, created {int} NOT NULL, updated {int} NOT NULL,
  hidden {int} NOT NULL, version {int}, state {blob} NOT NULL, UNIQUE (namespace, name));
CREATE INDEX dataset_root ON dataset (root) WHERE root <> id;
CREATE TABLE job (
  id {int} PRIMARY KEY, namespace {int} NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
  created {int} NOT NULL, updated {int} NOT NULL, hidden {int} NOT NULL, latest {int},
  version {int}, state {blob} NOT NULL, UNIQUE (namespace, name));
CREATE TABLE run (
  id {int} PRIMARY KEY, uuid {blob} NOT NULL UNIQUE, job {int} NOT NULL, status {int} NOT NULL,
  created {int} NOT NULL, updated {int} NOT NULL, ended {int}, deadline {int},
  linked {int} NOT NULL, state {blob} NOT NULL);
CREATE INDEX run_job ON run (job, created);
CREATE INDEX run_linked ON run (job, ended) WHERE linked = 1;
CREATE INDEX run_deadline ON run (deadline) WHERE deadline IS NOT NULL;
CREATE TABLE facet (
  id {int} PRIMARY KEY, hash {blob} NOT NULL UNIQUE, dictionary {int} NOT NULL,
  body {blob} NOT NULL);
CREATE TABLE facet_change (
  kind {int} NOT NULL, entity {int} NOT NULL, name TEXT NOT NULL, time {int} NOT NULL,
  facet {int} NOT NULL, PRIMARY KEY (kind, entity, name, time)) {compact};
CREATE TABLE edge (
  job {int} NOT NULL, dataset {int} NOT NULL, direction {int} NOT NULL, since {int} NOT NULL,
  until {int}, PRIMARY KEY (job, dataset, direction, since)) {compact};
CREATE INDEX edge_dataset ON edge (dataset, until);
CREATE TABLE column_map (
  dataset {int} NOT NULL, job {int} NOT NULL, time {int} NOT NULL, facet {int} NOT NULL,
  PRIMARY KEY (dataset, job, time)) {compact};
CREATE TABLE column_link (
  source {int} NOT NULL, dataset {int} NOT NULL, job {int} NOT NULL,
  PRIMARY KEY (source, dataset, job)) {compact};
CREATE TABLE dataset_version (
  id {int} PRIMARY KEY, dataset {int} NOT NULL, uuid {blob} NOT NULL, run {int},
  time {int} NOT NULL, facet {int});
CREATE INDEX dataset_version_time ON dataset_version (dataset, time);
CREATE TABLE job_version (
  id {int} PRIMARY KEY, job {int} NOT NULL, uuid {blob} NOT NULL, time {int} NOT NULL,
  run {int}, state {blob} NOT NULL);
CREATE INDEX job_version_time ON job_version (job, time);
CREATE TABLE alias (
  namespace TEXT NOT NULL, name TEXT NOT NULL, dataset {int} NOT NULL, time {int} NOT NULL,
  PRIMARY KEY (namespace, name)) {compact};
CREATE TABLE cluster (
  dataset_namespace TEXT PRIMARY KEY, id TEXT NOT NULL, time {int} NOT NULL) {compact};
CREATE INDEX cluster_id ON cluster (id);
CREATE TABLE log (
  seq {int} PRIMARY KEY, kind {int} NOT NULL, at {int} NOT NULL, time {int} NOT NULL,
  type {int} NOT NULL, hash {blob} NOT NULL UNIQUE, chain {blob} NOT NULL, job {int}, run {int},
  dictionary {int} NOT NULL, body {blob} NOT NULL);
CREATE INDEX log_time ON log (time);
CREATE TABLE event_count (
  hour {int} NOT NULL, type {int} NOT NULL, n {int} NOT NULL, PRIMARY KEY (hour, type)) {compact};
CREATE TABLE tag (name TEXT PRIMARY KEY, description TEXT);
CREATE TABLE tag_use (
  kind {int} NOT NULL, entity {int} NOT NULL, field TEXT NOT NULL, tag TEXT NOT NULL,
  time {int} NOT NULL, PRIMARY KEY (kind, entity, field, tag)) {compact};
CREATE TABLE token (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, hash {blob} NOT NULL,
  created {int} NOT NULL, revoked {int});
CREATE TABLE checkpoint (
  seq {int} PRIMARY KEY, chain {blob} NOT NULL, at {int} NOT NULL, reason TEXT NOT NULL,
  state {blob} NOT NULL);
CREATE TABLE flow (
  run {blob} NOT NULL, dataset_namespace TEXT NOT NULL, dataset_name TEXT NOT NULL,
  direction {int} NOT NULL, width {int} NOT NULL, bucket {int} NOT NULL, state {blob} NOT NULL,
  PRIMARY KEY (run, dataset_namespace, dataset_name, direction, width, bucket)) {compact};
CREATE INDEX flow_bucket ON flow (width, bucket);
INSERT INTO head (id, seq, chain, epoch) VALUES (1, 0, {zero}, 0);
"""

_SECOND = """
CREATE TABLE checkpoint_part (
  checkpoint {int} NOT NULL, number {int} NOT NULL, name TEXT NOT NULL, body {blob} NOT NULL,
  PRIMARY KEY (checkpoint, number));
CREATE TABLE tombstone (
  seq {int} PRIMARY KEY, kind {int} NOT NULL, at {int} NOT NULL, hash {blob} NOT NULL UNIQUE,
  chain {blob} NOT NULL);
"""

_THIRD = """
CREATE TABLE fold (
  job {int} PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, whole {int}) {compact};
CREATE INDEX fold_whole ON fold (whole);
"""

# Search reads every name, and these two tables change all the time. PostgreSQL has the names in
# small letters too, and room in each page for what changes; SQLite needs neither.
_ALTERED = (
    'ADD COLUMN lowered TEXT COLLATE "C" GENERATED ALWAYS AS (lower(name COLLATE "C")) STORED,'
    " SET (fillfactor = 50)"
)
_FOURTH = "{altered}"

_FIFTH = """
ALTER TABLE token ADD COLUMN namespaces TEXT;
"""

# Schemas that were stored before claims were have a history that no claim gives again.
_SIXTH = """
CREATE TABLE claim (
  dataset {int} NOT NULL, job {int} NOT NULL, run {int} NOT NULL, side {int} NOT NULL,
  subject TEXT NOT NULL, version {int} NOT NULL, mark {int} NOT NULL, rank {int} NOT NULL,
  facet {int} NOT NULL, first {int} NOT NULL, last {int} NOT NULL,
  PRIMARY KEY (dataset, job, run, side, subject, version, mark)) {compact};
CREATE TABLE schema_end (
  dataset {int} NOT NULL, run {int} NOT NULL, time {int} NOT NULL,
  PRIMARY KEY (dataset, run, time)) {compact};
CREATE INDEX facet_change_schema ON facet_change (time) WHERE kind = 0 AND name = 'schema';
INSERT INTO setting (name, value)
  SELECT 'claims_since', CAST(max(time) + 1 AS TEXT) FROM facet_change
  WHERE kind = 0 AND name = 'schema' HAVING max(time) IS NOT NULL;
"""

# Incidents are known by names, not by numbers, which a rebuild may change. `alert_seen` has hashes.
_SEVENTH = """
CREATE TABLE incident (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, entity TEXT NOT NULL, namespace TEXT NOT NULL,
  name TEXT NOT NULL, since {int} NOT NULL, opened {int} NOT NULL, resolved {int},
  body {blob} NOT NULL);
CREATE INDEX incident_resolved ON incident (resolved);
CREATE TABLE alert_delivery (
  incident TEXT NOT NULL, channel TEXT NOT NULL, phase {int} NOT NULL, due {int} NOT NULL,
  attempts {int} NOT NULL, done {int}, error TEXT, PRIMARY KEY (incident, channel, phase)) {compact};
CREATE INDEX alert_delivery_due ON alert_delivery (due) WHERE done IS NULL;
CREATE TABLE alert_rule (name TEXT PRIMARY KEY, since {int} NOT NULL) {compact};
CREATE TABLE alert_seen (
  rule TEXT NOT NULL, hash {blob} NOT NULL, PRIMARY KEY (rule, hash)) {compact};
"""

# The aliases that doctor recorded: those that it may take back.
_EIGHTH = """
CREATE TABLE joined (
  namespace TEXT NOT NULL, name TEXT NOT NULL, dataset {int} NOT NULL, time {int} NOT NULL,
  PRIMARY KEY (namespace, name)) {compact};
"""

CLAIM_PERIODS = """
UPDATE claim SET mark = first WHERE run >= 0 AND (rank > 1 OR version = 0) AND NOT EXISTS (
  SELECT 1 FROM claim o WHERE o.dataset = claim.dataset AND o.job = claim.job AND o.run = claim.run
  AND o.side = claim.side AND o.subject = claim.subject AND o.version = claim.version
  AND o.first = claim.first AND o.mark <> claim.mark);
INSERT INTO claim (dataset, job, run, side, subject, version, mark, rank, facet, first, last)
  SELECT c.dataset, c.job, c.run, c.side, c.subject, c.version,
    max(o.last) + 1, c.rank, c.facet, max(o.last) + 1, c.last
  FROM claim c JOIN claim o ON o.dataset = c.dataset AND o.job = c.job AND o.run = c.run
  AND o.side = c.side AND o.subject = c.subject AND o.version = c.version
  AND o.first > c.first AND o.last < c.last
  WHERE c.run >= 0 AND (c.rank > 1 OR c.version = 0)
  GROUP BY c.dataset, c.job, c.run, c.side, c.subject, c.version, c.rank, c.facet, c.first, c.last
  ON CONFLICT DO NOTHING;
"""
"""Makes periods of claims that were stored as the first and the last time of each schema.

A claim is kept for each period in which its author made no other, by the first moment of that. What
was reported before and after another schema was shown as following its last report.
"""

# The log is asked for the claims of a job around one that is received late.
_NINTH = f"""
{CLAIM_PERIODS}
CREATE INDEX log_job ON log (job, time);
"""

# When what is hidden by hand was deleted, and shown again. A rebuild adds earlier deletions.
_TENTH = """
CREATE TABLE deletion (
  kind {int} NOT NULL, entity {int} NOT NULL, since {int} NOT NULL, until {int},
  PRIMARY KEY (kind, entity, since)) {compact};
CREATE INDEX deletion_since ON deletion (since);
"""

# The same event has the same time: it is found by both, in an index that grows at its end. One by the
# hash alone is written all over, which took a page of SQLite's for each event. SQLite cannot drop what
# a table was made with.
_LOG_ANEW = """
CREATE TABLE log_anew (
  seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, at INTEGER NOT NULL, time INTEGER NOT NULL,
  type INTEGER NOT NULL, hash BLOB NOT NULL, chain BLOB NOT NULL, job INTEGER, run INTEGER,
  dictionary INTEGER NOT NULL, body BLOB NOT NULL);
INSERT INTO log_anew SELECT * FROM log;
DROP TABLE log;
ALTER TABLE log_anew RENAME TO log;
CREATE INDEX log_job ON log (job, time);
"""
_ELEVENTH = """
DROP INDEX log_time;
{by_time}
CREATE UNIQUE INDEX log_time ON log (time, hash);
"""

UNNAMED_PARENTS = "unnamed_parents"
"""The setting of a store of an earlier release, until the parents that its jobs name are filled in."""

_TWELFTH = """
CREATE TABLE named_parent (
  namespace TEXT NOT NULL, name TEXT NOT NULL, job {int} NOT NULL,
  PRIMARY KEY (namespace, name, job)) {compact};
CREATE INDEX named_parent_job ON named_parent (job);
INSERT INTO setting (name, value)
  SELECT 'unnamed_parents', '1' WHERE EXISTS (SELECT 1 FROM job);
"""

# Events whose time is so far ahead that their arrival counts (`AHEAD`), which are few; and the parts of
# a topic that a claim is about (`ClaimKey.row`).
_THIRTEENTH = """
ALTER TABLE claim ADD COLUMN parts {int} NOT NULL DEFAULT 3;
CREATE INDEX log_ahead ON log (job, at) WHERE time > at + 300000000;
"""

# Jobs that their producers reported as deleted, which are few: the lists of now leave them out.
_FOURTEENTH = """
CREATE INDEX facet_change_deleted ON facet_change (entity)
  WHERE kind = 1 AND name = 'headwater_deleted';
"""

DIALECTS: dict[str, dict[str, str]] = {
    "sqlite": {
        "int": "INTEGER",
        "blob": "BLOB",
        "compact": "WITHOUT ROWID",
        "zero": "zeroblob(32)",
        "altered": "",
        "by_time": _LOG_ANEW,
    },
    "postgresql": {
        "int": "BIGINT",
        "blob": "BYTEA",
        "compact": "",
        "zero": "decode(repeat('00', 32), 'hex')",
        "altered": f"ALTER TABLE dataset {_ALTERED};\nALTER TABLE job {_ALTERED};\n",
        "by_time": "ALTER TABLE log DROP CONSTRAINT IF EXISTS log_hash_key;\n",
    },
}
"""What the words in braces stand for in each kind of database."""

MIGRATIONS: tuple[str, ...] = (
    _FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH,
    _TENTH, _ELEVENTH, _TWELFTH, _THIRTEENTH, _FOURTEENTH,
)  # fmt: skip
LATEST = len(MIGRATIONS)
ALL_TABLES = tuple(re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS)))
