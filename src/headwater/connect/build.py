"""The datasets and edges of one connector as they are found, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.lineage import naming
from headwater.lineage.schema import Schema

from .model import Dataset, Edge, Evidence, Symlink
from .values import PLACEHOLDER, split

if TYPE_CHECKING:
    from headwater.lineage.naming import DatasetName

    from .columns import Columns
    from .families.base import Place
    from .overrides import Overrides
    from .plan import Plan

Key = tuple[str, str]


class Builder:
    """Collects datasets and edges; the same dataset named twice is one."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sql = ""
        self._inputs: dict[Key, Dataset] = {}
        self._outputs: dict[Key, Dataset] = {}
        self._edges: dict[tuple[Key, Key], Edge] = {}
        self._topics: dict[tuple[Key, Key], str] = {}

    @property
    def inputs(self) -> tuple[Dataset, ...]:
        """The datasets read, in the order they were found."""
        return tuple(self._inputs.values())

    @property
    def outputs(self) -> tuple[Dataset, ...]:
        """The datasets written, in the order they were found."""
        return tuple(self._outputs.values())

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Which feeds which."""
        return tuple(self._edges.values())

    def add_input(self, dataset: Dataset) -> Dataset:
        """A dataset read."""
        return _put(self._inputs, dataset)

    def add_output(self, dataset: Dataset) -> Dataset:
        """A dataset written."""
        return _put(self._outputs, dataset)

    def add_place(
        self, place: Place, side: str, schema: Schema | None, evidence: tuple[Evidence, ...]
    ) -> Dataset:
        """A dataset outside Kafka."""
        dataset = Dataset(
            *place.id,
            kind=place.kind,
            sub_kind=place.sub_kind,
            schema=place.schema or schema,
            symlinks=place.symlinks,
            catalog=place.catalog,
            evidence=evidence,
        )
        return _put(self._inputs if side == "input" else self._outputs, dataset)

    def add_edge(
        self, source: Dataset, target: Dataset, columns: Columns, evidence: tuple[Evidence, ...],
        topic: str,
    ) -> None:  # fmt: skip
        """One feeds the other."""
        key = (source.id, target.id)
        before = self._edges.get(key)
        if before and before.columns is not None:
            columns = tuple(dict.fromkeys((*before.columns, *(columns or ()))))
        self._edges[key] = Edge(source.id, target.id, columns, tuple(dict.fromkeys(evidence)))
        self._topics[key] = topic

    def declare(self, given: Overrides) -> None:
        """Let the names that a user declares win; the derived ones become symlinks."""
        namespace, names = given.dataset_namespace, given.dataset_names
        role = self.plan.role
        if not (namespace or names) or role not in ("source", "sink"):
            return
        topics = given.topics or split(self.plan.config.get("topics", ""))
        ours = self._outputs if role == "sink" else self._inputs
        theirs = list((self._inputs if role == "sink" else self._outputs).values())
        derived = list(ours.values())
        old = dict(self._edges)
        ours.clear()
        self._edges.clear()
        for topic in theirs:
            mine = [e for e in old.values() if topic.id in (e.input, e.output)]
            position = topics.index(topic.name) if topic.name in topics else theirs.index(topic)
            place = _paired(mine, derived, position, names, role)
            target = self._declared(namespace, names, topic, position, place)
            if target is None:
                continue
            where = given.where("dataset.namespace" if namespace else "dataset.names")
            why = Evidence("user mapping", where)
            dataset = _put(ours, msgspec.structs.replace(target, evidence=(why,)))
            edge = next((e for e in mine if place and place.id in (e.input, e.output)), None)
            columns = edge.columns if edge else None
            known = [e for e in edge.evidence if e.source in ("catalog", "rule")] if edge else ()
            ends = (topic, dataset) if role == "sink" else (dataset, topic)
            self.add_edge(*ends, columns, (*topic.evidence[:1], why, *known), topic.name)

    def _declared(
        self, namespace: str, names: list[str], topic: Dataset, position: int, place: Dataset | None
    ) -> Dataset | None:
        name = names[position] if position < len(names) else names[0] if names else topic.name
        space = namespace or (place.namespace if place else "")
        if not space or PLACEHOLDER in space or PLACEHOLDER in name:
            self.plan.problem("dataset.names: no namespace is known for them")
            return place
        ident = naming.canonical(space, name)
        base = place or Dataset(*ident)
        links = [link for link in base.symlinks if (link.namespace, link.name) != ident]
        if base.id != ident:
            links.insert(0, Symlink(*base.id, type=base.kind or "TABLE"))
        return msgspec.structs.replace(
            base, namespace=ident.namespace, name=ident.name, symlinks=tuple(links)
        )


def _paired(
    edges: list[Edge], derived: list[Dataset], position: int, names: list[str], role: str
) -> Dataset | None:
    """The derived dataset that a topic's declared name stands for, when that is plain."""
    ids: set[DatasetName] = {edge.output if role == "sink" else edge.input for edge in edges}
    mine = [dataset for dataset in derived if dataset.id in ids]
    if len(mine) == 1:
        return mine[0]
    if len(mine) == len(names) and position < len(mine):
        return mine[position]
    return None


def _put(where: dict[Key, Dataset], dataset: Dataset) -> Dataset:
    before = where.get(dataset.id)
    if before is not None:
        dataset = msgspec.structs.replace(
            before,
            schema=_merged(before.schema, dataset.schema),
            symlinks=tuple(dict.fromkeys((*before.symlinks, *dataset.symlinks))),
            evidence=tuple(dict.fromkeys((*before.evidence, *dataset.evidence))),
        )
    where[dataset.id] = dataset
    return dataset


def _merged(first: Schema | None, second: Schema | None) -> Schema | None:
    if first is None or second is None:
        return first or second
    have = {field.name for field in first.fields}
    extra = tuple(field for field in second.fields if field.name not in have)
    return Schema((*first.fields, *extra), first.type, first.description) if extra else first
