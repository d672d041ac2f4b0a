"""The leaves of a plan: which datasets each reads, read from the JVM's objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.spark.columns.source import OpaqueSource, Source
from headwater.spark.jvm import attempt, class_name, kind, option, seq
from headwater.spark.plan.rdds import datasets_of
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import files, kafka, relations
from headwater.spark.stores.catalog import identifier_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from headwater.spark.jvm import JvmSession
    from headwater.spark.plan.tree import Node

MAX_LEAVES = 300
_FIRST = re.compile(r"#(\d+)[A-Za-z]*\)?$")
_EMPTY = ("LocalRelation", "Range", "OneRowRelation", "CTERelationRef", "UnionLoopRef",
          "EmptyRelation", "CommandResult")  # fmt: skip


def read_leaves(
    session: JvmSession, plan: Any, known: Container[int] = frozenset(), tree: Node | None = None
) -> dict[int, Source]:
    """What the leaves of a plan and of the queries inside it read, by their first attribute.

    A leaf whose attributes are `known` from an earlier query is left out. The `tree` of the
    plan saves calls: its leaves stand in the same order.
    """
    found: dict[int, Source] = {}
    shown = _shown(tree) if tree is not None else []
    for place, leaf in enumerate(_leaves(session, plan, shown)):
        if place < len(shown):
            short, number = shown[place]
        else:
            short = kind(leaf)
            number = -1 if short in _EMPTY else first_number(leaf)
        if short in _EMPTY:
            continue
        if number < 0 or number in found or (short == "LogicalRDD" and number in known):
            continue
        try:
            source = _read(session, leaf, short)
        except Exception as error:  # noqa: BLE001
            session.problem(f"{short}: could not be read ({type(error).__name__})")
            source = None
        found[number] = source or OpaqueSource(())
    return found


def _shown(tree: Node) -> list[tuple[str, int]]:
    """The class and the first attribute of every leaf, from left to right."""
    found: list[tuple[str, int]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(node.children))
        if not node.children:
            outputs = node.nodes("output")
            found.append((node.kind, outputs[0].id if outputs else -1))
    return found


def _leaves(session: JvmSession, plan: Any, shown: list[tuple[str, int]]) -> Iterable[Any]:
    first = plan.collectLeaves()
    if first.size() != len(shown):
        # The tree is of another plan: its leaves are not these.
        shown.clear()
    groups = [first]
    inside = attempt(plan, "subqueriesAll")
    if inside is not None:
        groups += [one.collectLeaves() for one in seq(inside)]
    seen = 0
    for leaves in groups:
        for place in range(leaves.size()):
            seen += 1
            if seen > MAX_LEAVES:
                session.problem(f"only the first {MAX_LEAVES} leaves of the plan were read")
                return
            yield leaves.apply(place)


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
