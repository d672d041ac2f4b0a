"""Deletes old runs and events. The graph as it is now and the history of schemas stay."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from headwater.server.store.database import within
from headwater.server.store.entities import decode_dataset, decode_job, decode_run
from headwater.server.store.keep import checkpoint
from headwater.server.store.write.schemas import OUTDATED

if TYPE_CHECKING:
    from headwater.server.store.database import Connection
    from headwater.server.store.store import Store

__all__ = ["Dropped", "claims_since", "note", "noted", "retain", "retained", "sweep"]

# The highest id of a table stays, so that it is never given out again.
_RUNS = """
DELETE FROM run WHERE updated < ? AND ended IS NOT NULL AND id < (SELECT max(id) FROM run)
AND id NOT IN (SELECT latest FROM job WHERE latest IS NOT NULL)
AND EXISTS (SELECT 1 FROM run n WHERE n.job = run.job AND (n.created > run.created
  OR (n.created = run.created AND n.uuid > run.uuid)))
AND (linked = 0 OR EXISTS (
  SELECT 1 FROM run o WHERE o.job = run.job AND o.linked = 1 AND o.ended IS NOT NULL
  AND (o.ended > run.ended OR (o.ended = run.ended AND o.uuid > run.uuid))))
"""
_VERSIONS = """
DELETE FROM dataset_version WHERE time < ? AND id < (SELECT max(id) FROM dataset_version)
AND id NOT IN (SELECT version FROM dataset WHERE version IS NOT NULL)
AND EXISTS (SELECT 1 FROM dataset_version o WHERE o.dataset = dataset_version.dataset
  AND (o.facet = dataset_version.facet OR (o.facet IS NULL AND dataset_version.facet IS NULL))
  AND (o.time < dataset_version.time
    OR (o.time = dataset_version.time AND o.id < dataset_version.id)))
"""
_FACETS = """
DELETE FROM facet_change WHERE time < ? AND name <> 'schema' AND EXISTS (
  SELECT 1 FROM facet_change o WHERE o.kind = facet_change.kind AND o.entity = facet_change.entity
  AND o.name = facet_change.name AND o.time > facet_change.time AND o.time <= ?)
"""
_COLUMNS = """
DELETE FROM column_map WHERE time < ? AND EXISTS (
  SELECT 1 FROM column_map o WHERE o.dataset = column_map.dataset AND o.job = column_map.job
  AND o.time > column_map.time AND o.time <= ?)
"""
# That a dataset was created or dropped (a run below 0) also ends what a catalog answered before.
_ENDS = """
DELETE FROM schema_end WHERE time < ? AND EXISTS (
  SELECT 1 FROM schema_end o WHERE o.dataset = schema_end.dataset
  AND o.time > schema_end.time AND o.time <= ? AND (o.run < 0 OR schema_end.run >= 0))
"""
_NOTE = (
    "INSERT INTO setting (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class Dropped(NamedTuple):
    """How much went."""

    events: int
    runs: int
    facets: int


def retain(store: Store, before: int, forwarded: int | None = None) -> Dropped:
    """Drop what ended before a moment, in one commit that leaves a checkpoint behind.

    Where the log is forwarded, the records after the last `forwarded` one stay until they were.
    """
    connection = store.connection
    sql = "SELECT max(seq) FROM log WHERE at < ? AND seq <= ?"
    ((last,),) = connection.all(sql, (before, 2**62 if forwarded is None else forwarded))
    if last is None:
        return Dropped(0, 0, 0)
    with store.changing({"command": "retain", "before": before}):
        earlier = checkpoint.latest(connection)
        ((base_chain,),) = connection.all("SELECT chain FROM log WHERE seq = ?", (last,))
        events = connection.run("DELETE FROM log WHERE seq <= ?", (last,))
        runs = connection.run(_RUNS, (before,))
        connection.run(_VERSIONS, (before,))
        connection.run(_FACETS, (before, before))
        connection.run(_COLUMNS, (before, before))
        connection.run(OUTDATED, (before,))
        connection.run(_ENDS, (before, before))
        for table in ("edge", "deletion"):
            connection.run(f"DELETE FROM {table} WHERE until < ?", (before,))  # noqa: S608
        facets = sweep(store)
        note(connection, "retained", before)
        tombstones = earlier.tombstones if earlier else []
        checkpoint.write(store, "retention", (last, bytes(base_chain)), tombstones)
    return Dropped(events, runs, facets)


def retained(connection: Connection) -> int:
    """The moment before which history was deleted; 0 if none was."""
    return noted(connection, "retained")


def claims_since(connection: Connection) -> int:
    """The moment from which on the claims on schemas are known; 0 if all are."""
    return noted(connection, "claims_since")


def note(connection: Connection, name: str, value: int) -> None:
    """Keep a number under a name."""
    connection.run(_NOTE, (name, str(value)))


def noted(connection: Connection, name: str) -> int:
    """The number that was kept under a name; 0 if none was."""
    rows = connection.all("SELECT value FROM setting WHERE name = ?", (name,))
    return int(rows[0][0]) if rows else 0


def sweep(store: Store) -> int:
    """Drop the facets that nothing holds any more; answers how many."""
    connection = store.connection
    used: set[int] = set()
    for table, column in (
        ("facet_change", "facet"), ("column_map", "facet"), ("dataset_version", "facet"),
        ("claim", "facet"),
    ):  # fmt: skip
        sql = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608
        used.update(row[0] for row in connection.all(sql))
    for (state,) in connection.all("SELECT state FROM dataset"):
        dataset = decode_dataset(bytes(state))
        used.update(held[0] for held in (*dataset.facets.values(), *dataset.claims.values()))
    for (state,) in connection.all("SELECT state FROM job"):
        job = decode_job(bytes(state))
        held_by_job = (*job.facets.values(), *job.columns.values(), *job.claims.values())
        used.update(held[0] for held in held_by_job)
    for (state,) in connection.all("SELECT state FROM run"):
        run = decode_run(bytes(state))
        used.update(held[0] for held in run.facets.values())
        used.update(held[0] for io in run.io.values() for held in io.facets.values())
        used.update(held[0] for io in run.io.values() for held in (io.stream, io.batch) if held)
        used.update(run.job_facets.values())
    numbers = [row[0] for row in connection.all("SELECT id FROM facet ORDER BY id")]
    gone = [number for number in numbers[:-1] if number not in used]
    within(connection, "DELETE FROM facet WHERE id IN ({in}) RETURNING id", gone)
    if numbers and numbers[-1] not in used:
        # The highest number stays, so that it is never given out again, without what it stood for.
        empty = hashlib.sha256(b"facet %d is gone" % numbers[-1]).digest()
        sql = "UPDATE facet SET hash = ?, dictionary = ?, body = ? WHERE id = ?"
        connection.run(sql, (empty, *store.packer.pack(b"null"), numbers[-1]))
    return len(gone)
