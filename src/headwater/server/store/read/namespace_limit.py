"""Reads limited to some namespaces: what lies in others is not there, whatever is asked.

Every query is asked of the tables without the rows of other namespaces: a common table expression
of the same name stands before each table. So a route cannot forget the limit. What events and facets
name in their bodies is left out when they are read, and once more when an answer is given.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.lineage.graph import Direction
from headwater.lineage.naming import SCHEMES
from headwater.server.store.database import ReadConnection, within
from headwater.server.store.database.schema import ALL_TABLES, TABLES
from headwater.server.store.entities import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from headwater.server.store.database import Row

__all__ = ["HIDDEN", "LIMITED", "UNLIMITED", "Limit", "LimitedConnection"]

UNLIMITED = frozenset({
    "head", "setting", "dictionary", "token", "checkpoint", "checkpoint_part", "tombstone",
    "event_count", "facet", "alert_rule", "alert_seen",
})  # fmt: skip
"""Tables without names: numbers and times, or bodies that only other rows lead to."""

# `{main}` is the schema of the tables, `{spaces}` the numbers of the namespaces that may be read.
# `{just}` keeps SQLite from starting at the limit, which most rows meet, instead of at what is asked.
_DATASETS = "(SELECT id FROM {main}dataset WHERE namespace IN ({spaces}))"
_JOBS = "(SELECT id FROM {main}job WHERE namespace IN ({spaces}))"
_NAMES = "(SELECT name FROM {main}namespace WHERE id IN ({spaces}))"
_OF_JOB = f"{{just}}job IN {_JOBS}"
_OF_DATASET = f"{{just}}dataset IN {_DATASETS}"
_OF_SPACE = "{just}namespace IN ({spaces})"
_OF_ENTITY = (
    f"((kind = 0 AND {{just}}entity IN {_DATASETS}) OR (kind = 1 AND {{just}}entity IN {_JOBS}))"
)
LIMITED = {  # what is true of the rows that may be read
    "namespace": "{just}id IN ({spaces})",
    "dataset": _OF_SPACE,
    "job": _OF_SPACE,
    "run": _OF_JOB,
    "edge": f"{_OF_JOB} AND {_OF_DATASET}",
    "column_map": f"{_OF_DATASET} AND (job = 0 OR {_OF_JOB})",
    # That a column comes from a dataset which may not be read is known, and not from which.
    "column_link": f"{_OF_DATASET} AND (job = 0 OR {_OF_JOB})",
    "dataset_version": _OF_DATASET,
    "claim": _OF_DATASET,  # whoever reported it, the schema is the dataset's
    "schema_end": _OF_DATASET,
    "job_version": _OF_JOB,
    "facet_change": _OF_ENTITY,
    "tag_use": _OF_ENTITY,
    "deletion": _OF_ENTITY,
    "tag": f"name IN (SELECT tag FROM {{main}}tag_use WHERE {_OF_ENTITY})"  # noqa: S608
    " OR name NOT IN (SELECT tag FROM {main}tag_use)",
    "alias": f"{_OF_DATASET} AND namespace IN {_NAMES}",
    "joined": f"{_OF_DATASET} AND namespace IN {_NAMES}",
    "cluster": f"dataset_namespace IN {_NAMES}",
    "source": f"{{just}}id IN (SELECT source FROM {{main}}dataset WHERE {_OF_SPACE})",  # noqa: S608
    "log": _OF_JOB,
    "incident": f"namespace IN {_NAMES}",
    "alert_delivery": "incident IN (SELECT id FROM {main}incident"  # noqa: S608
    f" WHERE namespace IN {_NAMES})",
    "fold": f"{_OF_JOB} AND namespace IN {_NAMES}",
    "named_parent": f"{_OF_JOB} AND namespace IN {_NAMES}",
    "flow": f"dataset_namespace IN {_NAMES}"  # noqa: S608
    f" AND run IN (SELECT uuid FROM {{main}}run WHERE {_OF_JOB})",
}
_WORD = re.compile(r"\b[a-z_]+\b")
_NODE = re.compile(r"(?:dataset|datasetField|job):(?=\S)")
HIDDEN = "(hidden)"
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]{0,40}(?=://)", re.IGNORECASE)
_NAME_ENDS = re.compile(r"(?![\w\-]|\.\w)")
_REST = re.compile(r"[^\s\"'`<>,;|\\()\[\]{}]*")


class Limit(NamedTuple):
    """The namespaces a token may read: names, or the beginnings of names before a `*`."""

    patterns: tuple[str, ...]

    def allows(self, namespace: str) -> bool:
        """Whether a namespace may be read."""
        return any(
            namespace.startswith(one[:-1]) if one.endswith("*") else namespace == one
            for one in self.patterns
        )


class LimitedConnection(ReadConnection):
    """A connection for reading that sees only some namespaces, in one moment of the store."""

    def __init__(self, connection: ReadConnection, dialect: str, limit: Limit) -> None:
        self._connection = connection
        self.limit = limit
        self.holds = connection.holds
        rows = connection.all("SELECT id, name FROM namespace")
        self.spaces = tuple(sorted(number for number, name in rows if limit.allows(name)))
        self._filter = _Filter(limit, {name: limit.allows(name) for _, name in rows})
        self._dialect = dialect

    def hidden(self) -> dict[str, int]:
        """How many jobs and datasets cannot be seen."""
        spaces = ", ".join(map(str, self.spaces)) or "NULL"
        found = {}
        for table in ("job", "dataset"):
            sql = f"SELECT count(*) FROM {table} WHERE hidden = 0"  # noqa: S608
            ((total,),) = self._connection.all(sql)
            ((seen,),) = self._connection.all(f"{sql} AND namespace IN ({spaces})")
            found[f"{table}s"] = total - seen
        return found

    def beside(self, answer: Any) -> int:
        """How many hidden jobs and datasets are next to those in an answer, by an edge of now."""
        names = set(_named(answer))
        found = 0
        for table in ("job", "dataset"):
            sql = (
                "WITH k (space, name) AS ({in}) SELECT x.id FROM k"  # noqa: S608
                f" JOIN namespace n ON n.name = k.space JOIN {table} x"
                " ON x.namespace = n.id AND x.name = k.name"
            )
            here = {row[0] for row in within(self, sql, names)}
            found += len(set().union(*self.hidden_edges(table, here).values()))
        return found

    def hidden_edges(
        self, table: str, ids: Collection[int], way: Direction | None = None
    ) -> dict[int, set[int]]:
        """What jobs, or datasets, are linked to now by edges that cannot be seen, in one direction or in both.

        A dataset is linked under all of its names, and a job through the jobs that are parts of it.
        """
        whole = self._connection
        owners = {number: number for number in ids}
        if table == "job":
            sql = "SELECT job, whole FROM fold WHERE whole IN ({in})"
            owners |= dict(within(whole, sql, ids))
        else:
            sql = "SELECT id, root FROM dataset WHERE id IN ({in})"
            roots = {root: number for number, root in within(whole, sql, ids)}
            owners = roots | owners
            sql = "SELECT id, root FROM dataset WHERE root <> id AND root IN ({in})"
            for number, root in within(whole, sql, roots):
                owners.setdefault(number, roots[root])
        other = "dataset" if table == "job" else "job"
        sql = f"SELECT {table}, {other} FROM edge WHERE until IS NULL AND {table} IN ({{in}})"  # noqa: S608
        if way is not None:
            writes = (way is Direction.UPSTREAM) == (table == "dataset")
            sql += f" AND direction = {OUTPUT if writes else INPUT}"
        found: dict[int, set[int]] = {}
        for number, there in {*within(whole, sql, owners)} - {*within(self, sql, owners)}:
            found.setdefault(owners[number], set()).add(there)
        return found

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self._connection.all(_limited(sql, self._dialect, self.spaces), params)

    def sought(self, text: str) -> str:
        return self._connection.sought(text)

    def listed(self, sql: str, keys: list[Any]) -> tuple[str, list[Any]]:
        return self._connection.listed(sql, keys)

    def rollback(self) -> None:
        self._connection.rollback()

    def without_others(self, value: Any) -> Any:
        """A decoded value without what lies in other namespaces; `{}` where nothing is left."""
        kept = self._filter.kept(value)
        return {} if kept is _GONE else kept


@lru_cache(maxsize=2_048)
def _limited(sql: str, dialect: str, spaces: tuple[int, ...]) -> str:
    """The query with a limited table before each table that it may read."""
    words = set(_WORD.findall(sql))
    tables = [table for table in ALL_TABLES if table in words and table not in UNLIMITED]
    if not tables:
        return sql
    main, just = ("main.", "+") if dialect == "sqlite" else ("", "")
    fill = {"main": main, "just": just, "spaces": ", ".join(map(str, spaces)) or "NULL"}
    made = ", ".join(
        f"{table} AS NOT MATERIALIZED (SELECT {_columns(table, dialect, fill)}"  # noqa: S608
        f" FROM {main}{table} WHERE {LIMITED[table].format(**fill)})"
        for table in tables
    )
    rest = sql.lstrip()
    return f"WITH {made}, {rest[5:]}" if rest.startswith("WITH ") else f"WITH {made} {rest}"


def _columns(table: str, dialect: str, fill: dict[str, str]) -> str:
    if table != "dataset":
        return "*"
    # A name that stands for a dataset of another namespace stands for itself.
    root = f"CASE WHEN root IN {_DATASETS.format(**fill)} THEN root ELSE id END AS root"
    columns = [root if name == "root" else name for name in TABLES[table].columns]
    return ", ".join([*columns, "lowered"] if dialect == "postgresql" else columns)


def _named(value: Any) -> Iterator[tuple[str, str]]:
    """The names of the jobs and datasets in an answer; of an id, all that it may mean."""
    if isinstance(value, str):
        if _NODE.match(value):
            kind, *parts = value.split(":")[:20]
            parts = parts[:-1] if kind == "datasetField" else parts
            for end in range(1, len(parts)):
                yield ":".join(parts[:end]), ":".join(parts[end:])
    elif isinstance(value, list):
        for item in value:
            yield from _named(item)
    elif isinstance(value, dict):
        namespace, name = value.get("namespace"), value.get("name")
        if isinstance(namespace, str) and isinstance(name, str):
            yield namespace, name
        for item in value.values():
            yield from _named(item)


_GONE = object()
_ENDS = ("id", "nodeId", "origin", "destination", "from", "to", "source", "target")
"""Where a node or an edge of the graph has the id of a node: without it, it goes too."""


class _Filter:
    """Leaves out of decoded values what lies in other namespaces."""

    def __init__(self, limit: Limit, known: Mapping[str, bool]) -> None:
        self._limit = limit
        self._known = known
        # Addresses are searched for in texts too; a plain word is too common for that.
        self._addresses = sorted(name for name in known if "://" in name)
        self._longest = max(map(len, self._addresses), default=0)

    def kept(self, value: Any) -> Any:
        """What is left of a value, or `_GONE`."""
        if isinstance(value, str):
            return self._text(value) if self._seen(value) else _GONE
        if isinstance(value, list):
            found = [self.kept(item) for item in value]
            return [item for item in found if item is not _GONE]
        if isinstance(value, dict):
            return self._object(value)
        return value

    def _object(self, value: dict[str, Any]) -> Any:
        namespace = value.get("namespace")
        if isinstance(namespace, str) and namespace and not self._limit.allows(namespace):
            return _GONE
        found = {}
        for key, item in value.items():
            kept = self.kept(item)
            if kept is _GONE and key in _ENDS:
                return _GONE
            if kept is not _GONE and self._seen(key):
                found[self._text(key)] = kept
        return found

    def _text(self, text: str) -> str:
        """A text without addresses in hidden namespaces, whose rest is the name of a dataset there."""
        if "://" not in text:
            return text
        parts: list[str] = []
        done = 0
        for address in _SCHEME.finditer(text):
            end = self._hidden_end(text, address) if address.start() >= done else 0
            if end:
                parts += text[done : address.start()], HIDDEN
                done = end
        return "".join((*parts, text[done:])) if parts else text

    def _hidden_end(self, text: str, address: re.Match[str]) -> int:
        """Where an address ends that lies in a hidden namespace; 0 where it does not.

        Of the namespaces that it begins with, the longest counts: `s3://a` is none of `s3://a-b/c`.
        """
        scheme, start = address[0], address.end()
        store = SCHEMES.get(scheme.lower())
        behind = text[start : start + self._longest]
        for one in {scheme, scheme.lower(), store.scheme if store else scheme}:
            length = self._beginning(one + behind) - len(one)
            if length > 0:
                rest = _REST.match(text, start + length)
                hidden = not self._known[one + behind[:length]]
                return rest.end() if hidden and rest else 0
        return 0

    def _beginning(self, text: str) -> int:
        """How long the longest namespace is that a text begins with; 0 if there is none.

        In the order of the alphabet it is the last before the text, or before what the text has in
        common with that.
        """
        part = text
        while at := bisect_right(self._addresses, part):
            found = self._addresses[at - 1]
            common = len(commonprefix((found, part)))  # noqa: RUF071  (of letters it is)
            if common < len(found):
                part = part[:common]
            elif _NAME_ENDS.match(text, common):
                return common
            else:
                part = part[: common - 1]
        return 0

    def _seen(self, text: str) -> bool:
        """False for the id of a node, `kind:namespace:name`, in another namespace.

        A namespace may hold colons: the longest that is known counts.
        """
        if not _NODE.match(text):
            return True
        parts = text.split(":")[1:20]
        starts = [":".join(parts[:end]) for end in range(len(parts), 0, -1)]
        for start in starts:
            if start in self._known:
                return self._known[start]
        return any(map(self._limit.allows, starts))
