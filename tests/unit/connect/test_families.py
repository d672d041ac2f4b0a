"""Families from other packages, mappings of users, and the published table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect import families
from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.mapping import read_rules
from headwater.connect.families import ExternalDataset, Plugin
from headwater.connect.families.kcql import Statement, parse
from headwater.connect.model import Connector
from headwater.errors import UsageError
from headwater.lineage.naming import DatasetName

from .cases import CaseMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.connect.derive.context import Context


def _sink(context: Context, topic: str) -> list[ExternalDataset]:
    return [ExternalDataset.of(DatasetName("acme://h", f"{context.get('acme.space')}/{topic}"))]


PLUGINS = (Plugin("acme", ("com.acme.*SinkConnector",), "sink", ("acme.space",), sink=_sink),)


class Point:
    def __init__(self, value: str, loaded: Any) -> None:
        self.value = value
        self.loaded = loaded

    def load(self) -> Any:
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = [Point("broken", ImportError("no")), Point("acme", PLUGINS)]
    monkeypatch.setattr(families, "entry_points", lambda group: points)
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for cached in (families.plugins, families.find, families._by_class, families._globs):
        cached.cache_clear()


@pytest.mark.usefixtures("announced")
def test_another_package_adds_a_family() -> None:
    config = {"connector.class": "com.acme.FastSinkConnector", "topics": "a", "acme.space": "s"}
    derived = derive(Connector("c", "sink", config), CaseMetadata({}), DeriveSettings())
    assert derived.family == "acme"
    assert [d.id for d in derived.lineage.outputs] == [("acme://h", "s/a")]


@pytest.mark.usefixtures("announced")
def test_a_broken_package_costs_nothing_else() -> None:
    assert families.find("S3_SINK") is not None


def test_a_family_that_raises_is_a_problem_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: Context, topic: str) -> list[ExternalDataset]:
        raise KeyError("hunter22")

    plugin = Plugin("bad", ("x.Bad",), "sink", (), sink=broken)
    monkeypatch.setattr(families, "find", lambda name: plugin)
    derived = derive(Connector("c", "sink", {"topics": "a"}), CaseMetadata({}), DeriveSettings())
    assert derived.lineage.problems == ("the configuration could not be read: KeyError",)
    assert [d.name for d in derived.lineage.inputs] == ["a"]


def test_a_mapping_file() -> None:
    rules = read_rules(
        """
        mappings:
          com.acme.*:
            family: acme
            topics: "{acme.topic}"
            input:
              - {namespace: "acme://{acme.host}", name: "{topic}"}
        """
    )
    config = {"connector.class": "com.acme.X", "acme.topic": "a,b", "acme.host": "u:pw@h"}
    derived = derive(
        Connector("c", "source", config), CaseMetadata({}), DeriveSettings(rules=rules)
    )
    assert [(e.input, e.output.name) for e in derived.edges] == [
        (("acme://h", "a"), "a"),
        (("acme://h", "b"), "b"),
    ]
    assert derived.edges[0].evidence[-1].source == "user mapping"


@pytest.mark.parametrize(
    "text",
    ["a: [", "mappings: [1]", "x.*: 1", "x.*: {outpt: 1}", "x.*: {output: {name: a}}"],
)
def test_a_mapping_file_that_is_wrong_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        read_rules(text)


def test_an_empty_mapping_file_maps_nothing() -> None:
    assert read_rules("") == ()


def test_kcql() -> None:
    text = "INSERT INTO a SELECT * FROM b PK id; upsert into `c:d` select x, y.z as w from `e.f`"
    assert parse(text) == [
        Statement("a", "b"),
        Statement("c:d", "e.f", (("x", "x"), ("w", "y.z"))),
    ]
    assert parse("nonsense; SELECT * FROM x") == []
    assert parse("INSERT INTO a SELECT * FROM b IGNORE x, y STOREAS JSON")[0].ignored == ("x", "y")
