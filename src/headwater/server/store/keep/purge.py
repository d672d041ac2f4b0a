"""Hard deletion: a job, a dataset or a whole namespace, and every record that names it, are gone.

A tombstone stays in the place of each record: its hash and its link of the chain, not its body.
So the chain can still be checked, and the same event sent again is known and not taken in.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lineage.openlineage.events import canonical
from headwater.server.store.database import NEW_EPOCH, within
from headwater.server.store.entities import MERGED, decode_dataset, decode_job, decode_run, slot
from headwater.server.store.keep import checkpoint
from headwater.server.store.keep.rebuild import records
from headwater.server.store.keep.retention import note, noted, sweep
from headwater.server.store.write.commands import DATASET, JOB, NoSuchError
from headwater.server.store.write.incoming.prepared import safe
from headwater.server.store.write.schemas import SchemaProjection
from headwater.server.store.write.session import HIGHEST
from headwater.server.store.write.task_jobs import TaskJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from headwater.server.store.database import Connection
    from headwater.server.store.entities import Held
    from headwater.server.store.store import Store

__all__ = ["KINDS", "PurgeTarget", "Purged", "mentions", "purge"]

KINDS = ("job", "dataset", "namespace")
SAMPLES = 64
TEXTS = ("message", "stackTrace", "query", "description", "detail", "title")
"""Members of facets and incidents in which people and programs write what they like."""
Key = tuple[str, str]
_encode = msgspec.msgpack.encode


class Purged(NamedTuple):
    """How much went."""

    records: int
    jobs: int
    datasets: int


class PurgeTarget(NamedTuple):
    """What is to go; of a namespace, `name` is empty and means everything in it."""

    kind: str
    namespace: str
    name: str = ""

    @property
    def digest(self) -> str:
        """What the log keeps of the request: enough to know it by, not to read it."""
        return hashlib.sha256("\0".join(self).encode()).hexdigest()

    @property
    def mark(self) -> bytes:
        """Bytes that every record about it holds, unless they are written with escapes."""
        text = self.name.rsplit("/", 1)[-1] or self.namespace.rsplit("/", 1)[-1]
        return canonical(text)[1:-1]

    def mentioned(self, body: bytes) -> bool:
        """Whether a record or a facet names it."""
        if b"\\" not in body and self.mark not in body:
            return False
        return any(self._named(*name) for name in mentions(msgspec.json.decode(body)))

    def told(self, body: bytes) -> bool:
        """Whether a facet, or an incident, names it or has its address in a text, as an error message."""
        if self.mentioned(body):
            return True
        if "://" not in self.namespace or self.mark not in body:
            return False
        value = msgspec.json.decode(body)
        address = _address(self.namespace, self.name)
        texts = map(value.get, TEXTS) if isinstance(value, dict) else ()
        return any(isinstance(text, str) and address.search(text) for text in texts)

    def _named(self, namespace: str, name: str) -> bool:
        for found in ((namespace, name), safe(namespace, name)):
            if found[0] == self.namespace and self.name in ("", found[1]):
                return True
        return False


@lru_cache(maxsize=8)
def _address(namespace: str, name: str) -> re.Pattern[str]:
    """The address of a dataset, or of anything in a namespace, and of none whose name is longer."""
    if not name:
        return re.compile(re.escape(namespace) + r"(?![\w\-]|\.\w)")
    return re.compile(re.escape(f"{namespace}/{name.lstrip('/')}") + r"(?![\w\-/]|\.\w)")


def mentions(value: Any) -> Iterator[Key]:
    """The namespaces and names that a record or a facet holds; a namespace alone has an empty name."""
    if isinstance(value, dict):
        namespace, name = value.get("namespace"), value.get("name")
        # A source has the name of its namespace, unless a client gave it another.
        if value.get("command") in ("namespace", "source") and isinstance(name, str):
            yield name, ""
        if isinstance(namespace, str):
            yield namespace, name if isinstance(name, str) else ""
        for inner in value.values():
            yield from mentions(inner)
    elif isinstance(value, list):
        # An alias stands in its command as a pair.
        if len(value) == 2 and all(isinstance(item, str) for item in value):
            yield value[0], value[1]
        for inner in value:
            yield from mentions(inner)


def purge(store: Store, target: PurgeTarget) -> Purged:
    """Delete it in one commit that leaves a checkpoint behind; answers how much went."""
    connection = store.connection
    jobs, datasets = _found(connection, target)
    sql = "SELECT 1 FROM namespace WHERE name = ?"
    known = bool(jobs or datasets) or (
        target.kind == "namespace" and bool(connection.all(sql, (target.namespace,)))
    )
    if not known:
        what = target.name or target.namespace
        raise NoSuchError(f"{target.kind.capitalize()} '{what}' not found.")
    connection.thorough()
    command = {"command": "purge", "kind": target.kind, "digest": target.digest}
    with store.changing(command) as changes:
        # Changes published before must not be replayed: every listener has to reload.
        changes.append({"change": "reset"})
        buried = _bury(store, target.mentioned)
        sources = _sources(connection, datasets)
        _note_numbers(connection)
        _forget(store, jobs, datasets, target.told)
        _orphans(store, sources)
        if target.kind == "namespace":
            _space(connection, target.namespace)
        _incidents(connection, target.told)
        sweep(store)
        _repack(store, target.mark)
        earlier = checkpoint.latest(connection)
        base = (earlier.base, earlier.base_chain) if earlier else (0, bytes(32))
        tombstones = [*(earlier.tombstones if earlier else []), target.digest]
        checkpoint.write(store, "deletion", base, tombstones)
        connection.run(NEW_EPOCH)
    connection.tidy()
    return Purged(buried, len(jobs), len(datasets))


def _note_numbers(connection: Connection) -> None:
    """Note up to where jobs, runs and datasets are numbered.

    What is left of the log may name jobs and runs, and who reads on by numbers would pass over a
    dataset with one that was given before. In stores of earlier releases a run that two jobs reported was one; it goes with the job that
    began it, and the other's records stay.
    """
    for table in ("job", "run", "dataset"):
        ((highest,),) = connection.all(f"SELECT max(id) FROM {table}")  # noqa: S608
        note(connection, HIGHEST + table, max(highest or 0, noted(connection, HIGHEST + table)))


def _found(
    connection: Connection, target: PurgeTarget
) -> tuple[dict[int, tuple[str, str]], dict[int, tuple[str, str]]]:
    found = []
    for table in ("job", "dataset"):
        sql = (
            f"SELECT e.id, n.name, e.name FROM {table} e JOIN namespace n ON n.id = e.namespace"  # noqa: S608
            " WHERE n.name = ?"
        )
        rows: list[Any] = []
        if target.kind == "namespace":
            rows = connection.all(sql, (target.namespace,))
        elif target.kind == table:
            rows = connection.all(sql + " AND e.name = ?", (target.namespace, target.name))
        found.append({number: (space, name) for number, space, name in rows})
    return found[0], found[1]


def _space(connection: Connection, namespace: str) -> None:
    for table, column in (
        ("namespace", "name"), ("source", "name"), ("alias", "namespace"),
        ("joined", "namespace"), ("cluster", "dataset_namespace"), ("fold", "namespace"),
        ("named_parent", "namespace"),
    ):  # fmt: skip
        connection.run(f"DELETE FROM {table} WHERE {column} = ?", (namespace,))  # noqa: S608


def _incidents(connection: Connection, mentioned: Callable[[bytes], bool]) -> None:
    """Let go of the incidents that name it, with what was sent of them."""
    rows = connection.all("SELECT id, body FROM incident")
    gone = [number for number, body in rows if mentioned(bytes(body))]
    _delete(connection, "incident", "id", gone)
    _delete(connection, "alert_delivery", "incident", gone)


def _sources(connection: Connection, datasets: Collection[int]) -> set[int]:
    sql = "SELECT source FROM dataset WHERE source IS NOT NULL AND id IN ({in})"
    return {row[0] for row in within(connection, sql, datasets)}


def _orphans(store: Store, sources: set[int]) -> None:
    """Let go of the sources that only these datasets had, unless someone made them by hand."""
    connection = store.connection
    used = {row[0] for row in connection.all("SELECT DISTINCT source FROM dataset")}
    if not sources - used:
        return
    made = {
        msgspec.json.decode(record[7]).get("name")
        for group in records(store)
        for record in group
        if record[1] and b'"source"' in record[7]
    }
    rows = within(connection, "SELECT id, name FROM source WHERE id IN ({in})", sources - used)
    _delete(connection, "source", "id", [number for number, name in rows if name not in made])


def _bury(store: Store, mentioned: Callable[[bytes], bool]) -> int:
    """Put a tombstone in the place of each record that names it."""
    gone = [r[0] for group in records(store) for r in group if mentioned(r[7])]
    connection = store.connection
    for seq in gone:
        connection.run(
            "INSERT INTO tombstone (seq, kind, at, hash, chain)"
            " SELECT seq, kind, at, hash, chain FROM log WHERE seq = ?",
            (seq,),
        )
        connection.run("DELETE FROM log WHERE seq = ?", (seq,))
    return len(gone)


def _repack(store: Store, mark: bytes) -> None:
    """Replace the dictionaries that were made from bodies which are now gone."""
    connection, packer = store.connection, store.packer
    stale = [
        number
        for number, data in connection.all("SELECT id, data FROM dictionary")
        if mark in bytes(data) or b"\\" in bytes(data)
    ]
    if not stale:
        return
    sql = "SELECT dictionary, body FROM log ORDER BY seq DESC LIMIT ?"
    samples = [packer.unpack(d, bytes(b)) for d, b in connection.all(sql, (SAMPLES,))]
    ((newest,),) = connection.all("SELECT max(id) FROM dictionary")
    made = packer.make(samples) or b"{}" * 8
    connection.run("INSERT INTO dictionary (id, data) VALUES (?, ?)", (newest + 1, made))
    packer.learn(newest + 1, made)
    for table, key in (("log", "seq"), ("facet", "id")):
        for number in stale:
            sql = f"SELECT {key}, body FROM {table} WHERE dictionary = ?"  # noqa: S608
            for row, body in connection.all(sql, (number,)):
                packed = packer.pack(packer.unpack(number, bytes(body)))
                sql = f"UPDATE {table} SET dictionary = ?, body = ? WHERE {key} = ?"  # noqa: S608
                connection.run(sql, (*packed, row))
    for number in stale:
        connection.run("DELETE FROM dictionary WHERE id = ?", (number,))


def _forget(
    store: Store,
    jobs: dict[int, Key],
    datasets: dict[int, Key],
    mentioned: Callable[[bytes], bool],
) -> None:
    """Delete these jobs and datasets, and each facet in which `mentioned` finds their names."""
    connection = store.connection
    claimed = within(connection, "SELECT DISTINCT dataset FROM claim WHERE job IN ({in})", jobs)
    if jobs:
        _jobs(connection, jobs)
    if datasets:
        _datasets(connection, datasets)
    rows = connection.all("SELECT id, dictionary, body FROM facet")
    gone = {i for i, d, b in rows if mentioned(store.packer.unpack(d, bytes(b)))}
    for table in ("facet_change", "column_map", "claim"):
        _delete(connection, table, "facet", gone)
    _states(connection, datasets, gone)
    _task_jobs(store, jobs)
    SchemaProjection(store.session, []).resolve(row[0] for row in claimed)
    store.session.flush()


def _task_jobs(store: Store, jobs: dict[int, Key]) -> None:
    """Show the task jobs of what is gone, and forget which parent they named."""
    connection, session = store.connection, store.session
    for table in ("fold", "named_parent"):
        _delete(connection, table, "job", jobs)
        for key in jobs.values():
            sql = f"DELETE FROM {table} WHERE namespace = ? AND name = ?"  # noqa: S608
            connection.run(sql, key)
    connection.run("UPDATE job SET hidden = 0 WHERE hidden = ?", (MERGED,))
    session.forget()
    TaskJobs(session, []).settle_all()
    session.flush()


def _delete(connection: Connection, table: str, column: str, values: Collection[Any]) -> None:
    within(connection, f"DELETE FROM {table} WHERE {column} IN ({{in}}) RETURNING 1", values)  # noqa: S608


def _jobs(connection: Connection, jobs: Collection[int]) -> None:
    rows = within(connection, "SELECT uuid FROM run WHERE job IN ({in})", jobs)
    _delete(connection, "flow", "run", [bytes(row[0]) for row in rows])
    for table in ("run", "edge", "column_map", "column_link", "job_version", "claim"):
        _delete(connection, table, "job", jobs)
    _marks(connection, JOB, jobs)
    _delete(connection, "job", "id", jobs)


def _datasets(connection: Connection, datasets: dict[int, Key]) -> None:
    for table in (
        "edge", "column_map", "dataset_version", "alias", "joined", "column_link", "claim",
        "schema_end",
    ):  # fmt: skip
        _delete(connection, table, "dataset", datasets)
    _delete(connection, "column_link", "source", datasets)
    for key in datasets.values():
        for table in ("alias", "joined"):
            connection.run(f"DELETE FROM {table} WHERE namespace = ? AND name = ?", key)  # noqa: S608
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
    for table in ("facet_change", "tag_use", "deletion"):
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

    def take(held: dict[Any, Any], keys: Collection[Any]) -> bool:
        found = [key for key in keys if key in held]
        for key in found:
            del held[key]
        return bool(found)

    def of_dataset(state: Any) -> bool:
        return any([drop(state.facets), drop(state.links), drop(state.claims)])

    def of_job(state: Any) -> bool:
        changed = [take(state.open, slots), take(state.columns, datasets)]
        places = [key for key in state.claims if int(key.split(" ", 1)[0]) in slots]
        changed += [take(state.claims, places), drop(state.claims)]
        return any([*changed, drop(state.facets), drop(state.columns)])

    def of_run(state: Any) -> bool:
        before = len(state.job_facets)
        state.job_facets = {n: i for n, i in state.job_facets.items() if i not in gone}
        changed = [take(state.io, slots), drop(state.facets)]
        changed += [drop(io.facets) for io in state.io.values()]
        for io in state.io.values():
            for name in ("stream", "batch"):
                held = getattr(io, name)
                if held is not None and held[0] in gone:
                    setattr(io, name, None)
                    changed.append(True)
        return any(changed) or len(state.job_facets) != before

    _each(connection, "dataset", decode_dataset, of_dataset)
    _each(connection, "job", decode_job, of_job)
    _each(connection, "run", decode_run, of_run)


def _each(
    connection: Connection,
    table: str,
    decode: Callable[[bytes], Any],
    change: Callable[[Any], bool],
) -> None:
    """Rewrite the packed states of a table for which `change` returns true."""
    for number, packed in connection.all(f"SELECT id, state FROM {table}"):  # noqa: S608
        state = decode(bytes(packed))
        if change(state):
            sql = f"UPDATE {table} SET state = ? WHERE id = ?"  # noqa: S608
            connection.run(sql, (_encode(state), number))
