"""Hard deletion: a job, a dataset or a whole namespace, and every record that names it, are gone.

A tombstone stays in the place of each record: its hash and its link of the chain, not its body.
So the chain can still be checked, and the same event sent again is known and not taken in.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lineage.events import canonical
from headwater.server.store import checkpoint
from headwater.server.store.commands import NoSuchError
from headwater.server.store.forgetting import forget
from headwater.server.store.parts import safe
from headwater.server.store.rebuild import records
from headwater.server.store.retention import sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.store.database import Connection
    from headwater.server.store.store import Store

__all__ = ["KINDS", "Purged", "Target", "purge"]

KINDS = ("job", "dataset", "namespace")
SAMPLES = 64


class Purged(NamedTuple):
    """How much went."""

    records: int
    jobs: int
    datasets: int


class Target(NamedTuple):
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
        return self._in(msgspec.json.decode(body))

    def _in(self, value: Any) -> bool:
        if isinstance(value, dict):
            return self._is(value) or any(map(self._in, value.values()))
        if isinstance(value, list):
            # An alias stands in its command as a pair.
            pair = len(value) == 2 and all(isinstance(item, str) for item in value)
            return (pair and self._named(*value)) or any(map(self._in, value))
        return False

    def _is(self, value: dict[str, Any]) -> bool:
        namespace, name = value.get("namespace"), value.get("name")
        if not self.name and value.get("command") == "namespace" and name == self.namespace:
            return True
        if not isinstance(namespace, str):
            return False
        return self._named(namespace, name if isinstance(name, str) else "")

    def _named(self, namespace: str, name: str) -> bool:
        for found in ((namespace, name), safe(namespace, name)):
            if found[0] == self.namespace and self.name in ("", found[1]):
                return True
        return False


def purge(store: Store, target: Target) -> Purged:
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
        # What was told before must not be told again: whoever listens is to ask anew.
        changes.append({"change": "reset"})
        buried = _bury(store, target.mentioned)
        forget(store, jobs, datasets, target.mentioned)
        if target.kind == "namespace":
            _space(connection, target.namespace)
        sweep(connection)
        _repack(store, target.mark)
        earlier = checkpoint.latest(connection)
        base = (earlier.base, earlier.base_chain) if earlier else (0, bytes(32))
        tombstones = [*(earlier.tombstones if earlier else []), target.digest]
        checkpoint.write(store, "deletion", base, tombstones)
    connection.tidy()
    return Purged(buried, len(jobs), len(datasets))


def _found(
    connection: Connection, target: Target
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
        ("cluster", "dataset_namespace"), ("fold", "namespace"),
    ):  # fmt: skip
        connection.run(f"DELETE FROM {table} WHERE {column} = ?", (namespace,))  # noqa: S608


def _bury(store: Store, mentioned: Callable[[bytes], bool]) -> int:
    """Put a tombstone in the place of each record that speaks of it."""
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
    packer.forget_samples()
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
