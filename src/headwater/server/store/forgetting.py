"""Takes jobs and datasets out of the projection, and every facet that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.server.store.commands import DATASET, JOB
from headwater.server.store.database import Connection, within
from headwater.server.store.entities import FOLDED, decode_dataset, decode_job, decode_run, slot
from headwater.server.store.folding import Folding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from headwater.server.store.entities import Held
    from headwater.server.store.store import Store

__all__ = ["forget"]

Key = tuple[str, str]
_encode = msgspec.msgpack.encode


def forget(
    store: Store,
    jobs: dict[int, Key],
    datasets: dict[int, Key],
    mentioned: Callable[[bytes], bool],
) -> None:
    """Let go of these jobs and datasets, and of each facet that `mentioned` says names them."""
    connection = store.connection
    if jobs:
        _jobs(connection, jobs)
    if datasets:
        _datasets(connection, datasets)
    rows = connection.all("SELECT id, dictionary, body FROM facet")
    gone = {i for i, d, b in rows if mentioned(store.packer.unpack(d, bytes(b)))}
    for table in ("facet_change", "column_map"):
        _delete(connection, table, "facet", gone)
    _states(connection, datasets, gone)
    _folds(store, jobs)


def _folds(store: Store, jobs: dict[int, Key]) -> None:
    """Show the parts of what is gone, and let go of what they said of it."""
    connection, session = store.connection, store.session
    _delete(connection, "fold", "job", jobs)
    for key in jobs.values():
        connection.run("DELETE FROM fold WHERE namespace = ? AND name = ?", key)
    connection.run("UPDATE job SET hidden = 0 WHERE hidden = ?", (FOLDED,))
    session.forget()
    Folding(session, []).anew()
    session.flush()


def _delete(connection: Connection, table: str, column: str, values: Collection[Any]) -> None:
    within(connection, f"DELETE FROM {table} WHERE {column} IN ({{in}}) RETURNING 1", values)  # noqa: S608


def _jobs(connection: Connection, jobs: Collection[int]) -> None:
    rows = within(connection, "SELECT uuid FROM run WHERE job IN ({in})", jobs)
    _delete(connection, "flow", "run", [bytes(row[0]) for row in rows])
    for table in ("run", "edge", "column_map", "column_link", "job_version"):
        _delete(connection, table, "job", jobs)
    _marks(connection, JOB, jobs)
    _delete(connection, "job", "id", jobs)


def _datasets(connection: Connection, datasets: dict[int, Key]) -> None:
    for table in ("edge", "column_map", "dataset_version", "alias", "column_link"):
        _delete(connection, table, "dataset", datasets)
    _delete(connection, "column_link", "source", datasets)
    for key in datasets.values():
        connection.run("DELETE FROM alias WHERE namespace = ? AND name = ?", key)
        connection.run("DELETE FROM flow WHERE dataset_namespace = ? AND dataset_name = ?", key)
    within(connection, "UPDATE dataset SET root = id WHERE root IN ({in}) RETURNING 1", datasets)
    _marks(connection, DATASET, datasets)
    _delete(connection, "dataset", "id", datasets)
    keys = set(datasets.values())
    for number, packed in connection.all("SELECT id, state FROM job_version"):
        inputs, outputs, location = msgspec.msgpack.decode(bytes(packed))
        kept = [[pair for pair in side if tuple(pair) not in keys] for side in (inputs, outputs)]
        if kept != [inputs, outputs]:
            state = _encode((*kept, location))
            connection.run("UPDATE job_version SET state = ? WHERE id = ?", (state, number))


def _marks(connection: Connection, kind: int, numbers: Collection[int]) -> None:
    for table in ("facet_change", "tag_use"):
        sql = f"DELETE FROM {table} WHERE kind = ? AND entity IN ({{in}}) RETURNING 1"  # noqa: S608
        within(connection, sql, numbers, (kind,))


def _states(connection: Connection, datasets: Collection[int], gone: set[int]) -> None:
    """Rewrite the packed states that hold what is gone."""
    slots = [slot(dataset, side) for dataset in datasets for side in (0, 1)]

    def drop(held: dict[Any, Held]) -> bool:
        found = [name for name, item in held.items() if item[0] in gone]
        for name in found:
            del held[name]
        return bool(found)

    def take(held: dict[int, Any], keys: Collection[int]) -> bool:
        found = [key for key in keys if key in held]
        for key in found:
            del held[key]
        return bool(found)

    def of_job(state: Any) -> bool:
        changed = [take(state.open, slots), take(state.columns, datasets)]
        return any([*changed, drop(state.facets), drop(state.columns)])

    def of_run(state: Any) -> bool:
        before = len(state.job_facets)
        state.job_facets = {n: i for n, i in state.job_facets.items() if i not in gone}
        changed = [take(state.io, slots), drop(state.facets)]
        changed += [drop(io.facets) for io in state.io.values()]
        return any(changed) or len(state.job_facets) != before

    _each(connection, "dataset", decode_dataset, lambda state: drop(state.facets))
    _each(connection, "job", decode_job, of_job)
    _each(connection, "run", decode_run, of_run)


def _each(
    connection: Connection,
    table: str,
    decode: Callable[[bytes], Any],
    change: Callable[[Any], bool],
) -> None:
    """Rewrite the packed states of a table that `change` says it has changed."""
    for number, packed in connection.all(f"SELECT id, state FROM {table}"):  # noqa: S608
        state = decode(bytes(packed))
        if change(state):
            sql = f"UPDATE {table} SET state = ? WHERE id = ?"  # noqa: S608
            connection.run(sql, (_encode(state), number))
