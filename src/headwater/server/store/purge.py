"""Hard deletion: a job or a dataset, and every record that speaks of it, are gone for good.

A tombstone stays in the place of each record: its hash and its link of the chain, not its body.
So the chain can still be checked, and the same event sent again is known and not taken in.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.events import canonical
from headwater.server.store import checkpoint
from headwater.server.store.commands import DATASET, JOB, NoSuchError
from headwater.server.store.database import Connection, within
from headwater.server.store.entities import decode_dataset, decode_job, decode_run
from headwater.server.store.rebuild import records
from headwater.server.store.retention import sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.store.entities import Held
    from headwater.server.store.store import Store

__all__ = ["purge"]

_encode = msgspec.msgpack.encode


def purge(store: Store, kind: str, namespace: str, name: str) -> int:
    """Delete a `job` or `dataset`; answers how many records of the log went with it."""
    tombstone = hashlib.sha256(f"{kind}\0{namespace}\0{name}".encode()).hexdigest()
    table = {"job": "job", "dataset": "dataset"}[kind]
    sql = (
        f"SELECT e.id FROM {table} e JOIN namespace n ON n.id = e.namespace"  # noqa: S608
        " WHERE n.name = ? AND e.name = ?"
    )
    found = store.connection.all(sql, (namespace, name))
    if not found:
        raise NoSuchError(f"{kind.capitalize()} '{name}' not found.")
    ((number,),) = found
    with store.changing({"command": "purge", "kind": kind, "digest": tombstone}):
        connection = store.connection
        names = (_member("namespace", namespace), _member("name", name))
        buried = _bury(store, names)
        if kind == "job":
            _job(connection, number)
        else:
            _dataset(connection, number, (namespace, name))
        _facets(store, names)
        sweep(connection)
        earlier = checkpoint.latest(connection)
        base = (earlier.base, earlier.base_chain) if earlier else (0, bytes(32))
        tombstones = [*(earlier.tombstones if earlier else []), tombstone]
        checkpoint.write(store, "deletion", base, tombstones)
    return buried


def _member(key: str, value: str) -> bytes:
    return canonical({key: value})[1:-1]


def _mentions(body: bytes, names: tuple[bytes, bytes]) -> bool:
    plain = canonical(msgspec.json.decode(body))
    return all(name in plain for name in names)


def _bury(store: Store, names: tuple[bytes, bytes]) -> int:
    """Put a tombstone in the place of each record that speaks of the name."""
    gone = [r[0] for group in records(store) for r in group if _mentions(r[7], names)]
    connection = store.connection
    for seq in gone:
        connection.run(
            "INSERT INTO tombstone (seq, kind, at, hash, chain)"
            " SELECT seq, kind, at, hash, chain FROM log WHERE seq = ?",
            (seq,),
        )
        connection.run("DELETE FROM log WHERE seq = ?", (seq,))
    return len(gone)


def _job(connection: Connection, job: int) -> None:
    runs = [bytes(row[0]) for row in connection.all("SELECT uuid FROM run WHERE job = ?", (job,))]
    within(connection, "DELETE FROM flow WHERE run IN ({in}) RETURNING 1", runs)
    for table in ("run", "edge", "column_map", "column_link", "job_version"):
        connection.run(f"DELETE FROM {table} WHERE job = ?", (job,))  # noqa: S608
    _entity(connection, JOB, job)
    connection.run("DELETE FROM job WHERE id = ?", (job,))


def _entity(connection: Connection, kind: int, number: int) -> None:
    for table in ("facet_change", "tag_use"):
        connection.run(f"DELETE FROM {table} WHERE kind = ? AND entity = ?", (kind, number))  # noqa: S608


def _dataset(connection: Connection, dataset: int, key: tuple[str, str]) -> None:
    for table in ("edge", "column_map", "dataset_version", "alias", "column_link"):
        connection.run(f"DELETE FROM {table} WHERE dataset = ?", (dataset,))  # noqa: S608
    connection.run("DELETE FROM column_link WHERE source = ?", (dataset,))
    connection.run("DELETE FROM alias WHERE namespace = ? AND name = ?", key)
    connection.run("DELETE FROM flow WHERE dataset_namespace = ? AND dataset_name = ?", key)
    connection.run("UPDATE dataset SET root = id WHERE root = ?", (dataset,))
    _entity(connection, DATASET, dataset)
    connection.run("DELETE FROM dataset WHERE id = ?", (dataset,))
    slots = (dataset * 2, dataset * 2 + 1)

    def forget_job(state: Any) -> bool:
        found = [state.open.pop(slot, None) for slot in slots] + [state.columns.pop(dataset, None)]
        return any(item is not None for item in found)

    def forget_run(state: Any) -> bool:
        found = [state.io.pop(slot, None) for slot in slots]
        return any(item is not None for item in found)

    _each(connection, "job", decode_job, forget_job)
    _each(connection, "run", decode_run, forget_run)
    for number, packed in connection.all("SELECT id, state FROM job_version"):
        inputs, outputs, location = msgspec.msgpack.decode(bytes(packed))
        kept = [[pair for pair in side if tuple(pair) != key] for side in (inputs, outputs)]
        if kept != [inputs, outputs]:
            state = _encode((*kept, location))
            connection.run("UPDATE job_version SET state = ? WHERE id = ?", (state, number))


def _facets(store: Store, names: tuple[bytes, bytes]) -> None:
    """Let go of every facet that speaks of the name."""
    connection = store.connection
    rows = connection.all("SELECT id, dictionary, body FROM facet")
    gone = {i for i, d, b in rows if _mentions(store.packer.unpack(d, bytes(b)), names)}
    for table in ("facet_change", "column_map"):
        within(connection, f"DELETE FROM {table} WHERE facet IN ({{in}}) RETURNING 1", gone)  # noqa: S608

    def drop(held: dict[Any, Held]) -> bool:
        found = [name for name, item in held.items() if item[0] in gone]
        for name in found:
            del held[name]
        return bool(found)

    def of_run(state: Any) -> bool:
        before = len(state.job_facets)
        state.job_facets = {n: i for n, i in state.job_facets.items() if i not in gone}
        changed = [drop(state.facets), *(drop(io.facets) for io in state.io.values())]
        return any(changed) or len(state.job_facets) != before

    _each(connection, "dataset", decode_dataset, lambda state: drop(state.facets))
    _each(connection, "job", decode_job, lambda s: any([drop(s.facets), drop(s.columns)]))
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
