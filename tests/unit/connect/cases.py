"""Golden cases: a connector's configuration, the world around it, and the lineage expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.connect.derive.config_values import normalise
from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.mapping import rules_from
from headwater.connect.derive.metadata import CatalogTable, NoMetadata, TopicSchema
from headwater.connect.model import Connector, Derived
from headwater.lineage.schema import read_avro

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.lineage.model import Edge
    from headwater.lineage.schema import Schema

FIXTURES = Path(__file__).parents[2] / "fixtures" / "connect"
BOOTSTRAP = "k1:9092"


class CaseMetadata(NoMetadata):
    """The world of one case: what its file says, and nothing else."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.bootstrap = case.get("bootstrap", BOOTSTRAP)
        self.bootstraps = (self.bootstrap,) if self.bootstrap else ()
        self.cluster_id = case.get("cluster_id")
        self._case = case

    def topics(self) -> Collection[str] | None:
        found: list[str] | None = self._case.get("broker")
        return found

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        schema = self._case.get("schemas", {}).get(topic)
        if schema is None:
            return None
        halves = schema if isinstance(schema, dict) else {"value": schema}
        return TopicSchema(
            avro(halves.get("value")), avro(halves.get("key")), value_version="1",
            value_subject=f"{topic}-value",
        )  # fmt: skip

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        found = self._case.get("tables", {}).get(name)
        return CatalogTable(found["location"], avro(found["columns"])) if found else None


def avro(fields: Any) -> Schema | None:
    """`["id:long", {...}]` as the record with those fields, `"string"` as that type alone."""
    if fields is None:
        return None
    if isinstance(fields, str):
        return read_avro(f'"{fields}"')
    return read_avro({"type": "record", "name": "R", "fields": [_field(f) for f in fields]})


def _field(field: Any) -> dict[str, Any]:
    if isinstance(field, str):
        name, _, kind = field.partition(":")
        return {"name": name, "type": kind or "string"}
    ((name, inner),) = field.items()
    record = {
        "type": "record",
        "name": f"R_{name}_{id(inner)}",
        "fields": [_field(f) for f in inner],
    }
    return {"name": name, "type": record}


def cases() -> list[dict[str, Any]]:
    """Every case of every file, in order; `{name}` in what is expected is the connector's."""
    return [
        {**case, "file": path.stem, "expected": _filled(case)}
        for path in sorted(FIXTURES.glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
    ]


def _filled(case: Mapping[str, Any]) -> Any:
    place = "/connectors/{name}/topics"
    text = json.dumps(case["expected"]).replace(place, place.format(name=_name(case)))
    return json.loads(text)


def _name(case: Mapping[str, Any]) -> str:
    return str(case.get("name", case["case"].replace(" ", "-")))


def connector(case: Mapping[str, Any]) -> Connector:
    """The case's connector."""
    return Connector(
        _name(case), case.get("type"), normalise(case["config"]), tuple(case.get("topics", ()))
    )


def settings(case: Mapping[str, Any]) -> DeriveSettings:
    """The case's settings."""
    return DeriveSettings(
        rules=rules_from(case.get("mappings")), internal=bool(case.get("internal", False))
    )


def summary(derived: Derived) -> dict[str, Any]:
    """A lineage in the words of the fixtures: what a reader can check by eye."""
    found: dict[str, Any] = {
        "family": derived.family,
        "inputs": [_dataset(d) for d in derived.lineage.inputs],
        "outputs": [_dataset(d) for d in derived.lineage.outputs],
        "edges": [
            {
                "from": _id(edge.input),
                "to": _id(edge.output),
                "why": [_why(e) for e in edge.evidence],
                "columns": _columns(derived, edge),
            }
            for edge in derived.edges
        ],
    }
    paired = {name for edge in derived.edges for name in (edge.input, edge.output)}
    alone = {
        _id(d.id): [_why(e) for e in d.evidence]
        for d in (*derived.lineage.inputs, *derived.lineage.outputs)
        if d.id not in paired
    }
    if alone:
        found["alone"] = alone
    links = {
        _id(d.id): [f"{s.namespace} {s.name}" for s in d.symlinks]
        for d in (*derived.lineage.inputs, *derived.lineage.outputs)
        if d.symlinks
    }
    if links:
        found["symlinks"] = links
    if derived.lineage.problems:
        found["problems"] = list(derived.lineage.problems)
    return found


def _columns(derived: Derived, edge: Edge) -> list[str] | None:
    found = derived.columns_of(edge)
    if found is None:
        return None
    return [
        f"{source.field} -> {output}{_how(source.transformations[0])}" for source, output in found
    ]


def _dataset(dataset: Any) -> str:
    return f"{dataset.type or '?'} {_id(dataset.id)}"


def _id(name: Any) -> str:
    return f"{name.namespace} {name.name}"


def _why(item: Any) -> str:
    return f"{item.source}{' (seen)' if item.observed else ''}: {item.detail}"


def _how(how: Any) -> str:
    if how.subtype == "IDENTITY":
        return ""
    return f" [{how.description or how.subtype}{', masked' if how.masking else ''}]"
