"""Collects the datasets of one connector and which feeds which, and makes its lineage of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from headwater.connect.derive.config_values import PLACEHOLDER, split
from headwater.connect.derive.named_columns import named_columns
from headwater.lineage import naming
from headwater.lineage.model import (
    ColumnLineage,
    ColumnSource,
    Dataset,
    Edge,
    Evidence,
    Lineage,
    Symlink,
)
from headwater.lineage.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.connect.derive.columns import Columns
    from headwater.connect.derive.context import Context
    from headwater.connect.derive.family import ExternalDataset
    from headwater.connect.derive.overrides import Overrides
    from headwater.connect.model import Role
    from headwater.lineage.naming import DatasetName

Pair = tuple["DatasetName", "DatasetName"]


class _Flow(NamedTuple):
    """One input that feeds one output, with the columns of this pair; None when not known."""

    input: DatasetName
    output: DatasetName
    columns: Columns
    evidence: tuple[Evidence, ...]


class Builder:
    """Datasets and pairs as they are found; a dataset that is named twice is one."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.sql = ""
        self._inputs: dict[DatasetName, Dataset] = {}
        self._outputs: dict[DatasetName, Dataset] = {}
        self._flows: dict[Pair, _Flow] = {}

    def lineage(self, problems: Iterable[str]) -> Lineage:
        """All that was found, in the order in which it was found."""
        return Lineage(
            inputs=tuple(self._inputs.values()),
            outputs=tuple(
                replace(output, columns=self._columns(output.id))
                for output in self._outputs.values()
            ),
            edges=tuple(
                Edge(
                    flow.input,
                    flow.output,
                    flow.evidence,
                    flow.columns is not None,
                    named_columns(
                        self.context.config, ((one.input, one.output) for one in flow.columns or ())
                    ),
                )
                for flow in self._flows.values()
            ),
            sql=self.sql,
            problems=tuple(problems),
        )

    def _columns(self, output: DatasetName) -> ColumnLineage | None:
        fields: dict[str, list[ColumnSource]] = {}
        for flow in self._flows.values():
            if flow.output != output:
                continue
            for pair in flow.columns or ():
                # `combine` gives False where neither step masks, which means the same as None.
                how = replace(pair.transformation, masking=pair.transformation.masking or None)
                source = ColumnSource(flow.input, pair.input, (how,))
                fields.setdefault(pair.output, []).append(source)
        if not fields:
            return None
        return ColumnLineage({name: tuple(sources) for name, sources in fields.items()})

    def add_input(self, dataset: Dataset) -> Dataset:
        """A dataset read."""
        return _merge_into(self._inputs, dataset)

    def add_output(self, dataset: Dataset) -> Dataset:
        """A dataset written."""
        return _merge_into(self._outputs, dataset)

    def add_place(
        self,
        place: ExternalDataset,
        role: Role,
        schema: Schema | None,
        evidence: tuple[Evidence, ...],
    ) -> Dataset:
        """The dataset outside Kafka: what a source reads, or a sink writes."""
        found = place.dataset
        dataset = replace(found, schema=found.schema or schema, evidence=evidence)
        return self.add_input(dataset) if role == "source" else self.add_output(dataset)

    def add_edge(
        self, source: Dataset, target: Dataset, columns: Columns, evidence: tuple[Evidence, ...]
    ) -> None:
        """One feeds the other; columns of the same pair add up."""
        key = (source.id, target.id)
        before = self._flows.get(key)
        if before and before.columns is not None:
            columns = tuple(dict.fromkeys((*before.columns, *(columns or ()))))
        self._flows[key] = _Flow(*key, columns, tuple(dict.fromkeys(evidence)))

    def declare(self, given: Overrides) -> None:
        """Let the names that a user declares win; the derived ones become symlinks."""
        namespace, names = given.dataset_namespace, given.dataset_names
        role = self.context.role
        if not (namespace or names) or role is None:
            return
        topics = given.topics or split(self.context.config.get("topics", ""))
        stores = self._outputs if role == "sink" else self._inputs
        found_topics = list((self._inputs if role == "sink" else self._outputs).values())
        derived = list(stores.values())
        flows = list(self._flows.values())
        stores.clear()
        self._flows.clear()
        stands_for: dict[DatasetName, set[DatasetName]] = {}
        for number, topic in enumerate(found_topics):
            of_topic = [flow for flow in flows if topic.id in (flow.input, flow.output)]
            position = topics.index(topic.name) if topic.name in topics else number
            known = _paired(of_topic, derived, position, names, role)
            declared = self._declared(namespace, names, topic, position, known)
            if declared is None:
                continue
            where = given.where("dataset.namespace" if namespace else "dataset.names")
            why = Evidence("user mapping", where)
            dataset = _merge_into(stores, replace(declared, evidence=(why,)))
            if known is not None:
                stands_for.setdefault(dataset.id, set()).add(known.id)
            flow = next((f for f in of_topic if known and known.id in (f.input, f.output)), None)
            columns = flow.columns if flow else None
            kept = [e for e in flow.evidence if e.source in ("catalog", "rule")] if flow else ()
            ends = (topic, dataset) if role == "sink" else (dataset, topic)
            self.add_edge(*ends, columns, (*topic.evidence[:1], why, *kept))
        for name, several in stands_for.items():
            if len(several) > 1:  # what stands for several datasets is another name of none
                stores[name] = replace(stores[name], symlinks=())

    def _declared(
        self, namespace: str, names: list[str], topic: Dataset, position: int, known: Dataset | None
    ) -> Dataset | None:
        name = names[position] if position < len(names) else names[0] if names else topic.name
        space = namespace or (known.namespace if known else "")
        if not space or PLACEHOLDER in space or PLACEHOLDER in name:
            self.context.problem("dataset.names: no namespace is known for them")
            return known
        ident = naming.canonical(space, name)
        base = known or Dataset(*ident)
        links = [link for link in base.symlinks if (link.namespace, link.name) != ident]
        if base.id != ident:
            links.insert(0, Symlink(*base.id, type=base.type or "TABLE"))
        return replace(base, namespace=ident.namespace, name=ident.name, symlinks=tuple(links))


def _paired(
    flows: list[_Flow], derived: list[Dataset], position: int, names: list[str], role: Role
) -> Dataset | None:
    """The derived dataset that a topic's declared name stands for, when there is one choice."""
    ids = {flow.output if role == "sink" else flow.input for flow in flows}
    candidates = [dataset for dataset in derived if dataset.id in ids]
    if len(candidates) == 1:
        return candidates[0]
    if len(candidates) == len(names) and position < len(candidates):
        return candidates[position]
    return None


def _merge_into(datasets: dict[DatasetName, Dataset], dataset: Dataset) -> Dataset:
    if dataset.schema is not None and not dataset.schema.fields:
        dataset = replace(
            dataset, schema=None
        )  # a record without fields is not a schema worth reporting
    before = datasets.get(dataset.id)
    if before is not None:
        dataset = replace(
            before,
            schema=_union(before.schema, dataset.schema),
            symlinks=tuple(dict.fromkeys((*before.symlinks, *dataset.symlinks))),
            evidence=tuple(dict.fromkeys((*before.evidence, *dataset.evidence))),
        )
    datasets[dataset.id] = dataset
    return dataset


def _union(first: Schema | None, second: Schema | None) -> Schema | None:
    if first is None or second is None:
        return first or second
    have = {field.name for field in first.fields}
    extra = tuple(field for field in second.fields if field.name not in have)
    return Schema((*first.fields, *extra), first.type, first.description) if extra else first
