"""The leaves of a plan: which datasets each reads, read from the JVM's objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.spark.columns.source import OpaqueSource, Source
from headwater.spark.jvm import attempt, class_name, kind, option, seq
from headwater.spark.plan.rdds import datasets_of
from headwater.spark.plan.tree import read_tree
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import files, formats, kafka, relations
from headwater.spark.stores.catalog import identifier_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from headwater.spark.jvm import JvmSession
    from headwater.spark.plan.tree import Tree

MAX_LEAVES = 300
MAX_NODES = 2000
_FIRST = re.compile(r"#(\d+)[A-Za-z]*\)?$")
_EMPTY = ("LocalRelation", "Range", "OneRowRelation", "CTERelationRef", "UnionLoopRef",
          "EmptyRelation", "CommandResult")  # fmt: skip


class _Leaf(NamedTuple):
    """One leaf; `table` is what the tree shows of a table of Spark's own catalog."""

    kind: str
    number: int
    table: list[Any]
    java: Callable[[], Any]


def read_leaves(
    session: JvmSession, plan: Any, known: Container[int] = frozenset(), tree: Tree | None = None
) -> dict[int, Source]:
    """What the leaves of a plan and of the queries inside it read, by their first attribute.

    A leaf whose attributes are `known` from an earlier query is left out. The `tree` of the
    plan saves calls: its leaves stand in the same order.
    """
    found: dict[int, Source] = {}
    for seen, leaf in enumerate(_all_leaves(session, plan, tree)):
        if seen >= MAX_LEAVES:
            session.problem(f"only the first {MAX_LEAVES} leaves of the plan were read")
            break
        if leaf.kind in _EMPTY or leaf.number < 0 or leaf.number in found:
            continue
        if leaf.kind == "LogicalRDD" and leaf.number in known:
            continue
        try:
            source = _shown_table(session, leaf) or _read(session, leaf.java(), leaf.kind)
        except Exception as error:  # noqa: BLE001
            session.problem(f"{leaf.kind}: could not be read ({type(error).__name__})")
            source = None
        found[leaf.number] = source or OpaqueSource(())
    return found


def _all_leaves(session: JvmSession, plan: Any, tree: Tree | None) -> Iterator[_Leaf]:
    """The leaves of a plan, then those of the queries inside of its expressions."""
    yield from _leaves(plan, tree)
    if tree is not None and not tree.inner:
        return
    inside = attempt(plan, "subqueriesAll")
    for query in seq(inside) if inside is not None else ():
        yield from _leaves(query, read_tree(session, query, MAX_NODES) if tree else None)


def _leaves(plan: Any, tree: Tree | None) -> Iterator[_Leaf]:
    """The leaves of a plan alone, from left to right."""
    if tree is None:
        for leaf in seq(plan.collectLeaves()):
            short = kind(leaf)
            number = -1 if short in _EMPTY else first_number(leaf)
            yield _Leaf(short, number, [], lambda leaf=leaf: leaf)  # type: ignore[misc]
        return
    asked: list[Any] = []
    place = -1
    waiting = [tree.root]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.children))
        if node.children:
            continue
        place += 1
        outputs = node.nodes("output")
        shown = node.get("catalogTable") or node.get("tableMeta")
        table = shown.get("headwater_table", []) if isinstance(shown, dict) else []
        number = outputs[0].id if outputs else -1
        yield _Leaf(node.kind, number, table, lambda at=place: _nth(plan, at, asked))  # type: ignore[misc]


def _nth(plan: Any, place: int, asked: list[Any]) -> Any:
    if not asked:
        asked.append(plan.collectLeaves())
    return asked[0].apply(place)


def _shown_table(session: JvmSession, leaf: _Leaf) -> Source | None:
    """The table that the tree shows, unless a table format keeps it and knows more."""
    if not leaf.table:
        return None
    evidence = "hive table" if leaf.kind == "HiveTableRelation" else "catalog table"
    found = catalogs.catalog_table(session, *leaf.table, evidence=evidence)
    own = found is not None and formats.by_name(found.storage_layer) is None
    return Source((found,)) if own and found is not None else None


def first_number(leaf: Any) -> int:
    """The number of a leaf's first attribute, or -1."""
    match = _FIRST.search(leaf.output().headOption().toString())
    return int(match[1]) if match else -1


def _read(session: JvmSession, leaf: Any, short: str) -> Source | None:
    if short in ("DataSourceV2Relation", "DataSourceV2ScanRelation",
                 "StreamingDataSourceV2Relation", "StreamingDataSourceV2ScanRelation"):  # fmt: skip
        inner = attempt(leaf, "relation") if "Scan" in short else leaf
        return v2(session, inner or leaf)
    if short == "LogicalRelation":
        return relations.leaf(session, leaf)
    if short == "HiveTableRelation":
        return Source.of(catalogs.read_table(session, leaf.tableMeta(), "hive table"))
    if short == "StreamingRelationV2":
        return _stream(session, leaf)
    if short == "StreamingRelation":
        return _file_stream(session, leaf.dataSource())
    if short in ("LogicalRDD", "ExternalRDD"):
        return OpaqueSource(datasets_of(session, leaf.rdd()))
    session.problem(f"{short}: a leaf of the plan whose dataset is not known")
    return None


def v2(session: JvmSession, leaf: Any) -> Source | None:
    """The source behind a relation of the second API."""
    options = session.mapping(leaf.options())
    travel = option(attempt(leaf, "timeTravelSpec"))
    if travel is not None:
        options["headwater.time-travel"] = travel.toString()
    catalog = option(leaf.catalog())
    return relations.table(
        session, leaf.table(), catalog, identifier_of(leaf.identifier()), options
    )


def _stream(session: JvmSession, leaf: Any) -> Source | None:
    options = session.mapping(leaf.extraOptions())
    table = leaf.table()
    if kafka.is_kafka(class_name(table)):
        return Source(kafka.read(session, options), topic=True)
    if leaf.sourceName() in relations.QUIET_SOURCES:
        return Source(())
    catalog = option(leaf.catalog())
    return relations.table(session, table, catalog, identifier_of(leaf.identifier()), options)


def _file_stream(session: JvmSession, given: Any) -> Source | None:
    held = option(given.catalogTable())
    if held is not None:
        return Source.of(catalogs.read_table(session, held, "catalog table"))
    name = given.className()
    options = session.mapping(given.options())
    if name in relations.QUIET_SOURCES:
        return Source(())
    if "kafka" in name.lower():
        return Source(kafka.read(session, options), topic=True)
    paths = [*(str(path) for path in seq(given.paths()))]
    if path := {key.lower(): value for key, value in options.items()}.get("path"):
        paths.append(path)
    if not paths:
        session.problem(f"{name}: a streaming source whose dataset is not known")
        return None
    return Source(files.by_paths(paths, name.rpartition(".")[2].lower(), "file source"))
