"""A connector's lineage, from golden cases in tests/fixtures/connect."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.connect import families
from headwater.connect.derive.config_values import PLACEHOLDER
from headwater.connect.derive.context import Context, DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.metadata import NoMetadata, TopicSchema
from headwater.connect.families import BUILT_IN, topics_only
from headwater.connect.model import Connector, Derived
from headwater.lineage.model import Evidence, Owner
from headwater.lineage.schema import Field, Schema
from tests.properties import examples

from .cases import CaseMetadata, cases, connector, settings, summary

CASES = cases()


def label(case: dict[str, Any]) -> str:
    return f"{case['file']}: {case['case']}"


@pytest.mark.parametrize("case", CASES, ids=label)
def test_golden(case: dict[str, Any]) -> None:
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    assert summary(derived) == case["expected"]
    assert msgspec.json.decode(msgspec.json.encode(derived), type=Derived) == derived


def test_there_are_enough_golden_connectors() -> None:
    assert len(CASES) >= 120
    assert len({label(case) for case in CASES}) == len(CASES)


def test_every_plugin_has_a_golden_case() -> None:
    seen = {
        families.choose(connector(case).connector_class, connector(case).config) for case in CASES
    }
    missing = [p.classes for p in BUILT_IN if p not in seen and p not in topics_only.PLUGINS]
    assert missing == []


def test_every_class_is_found_once() -> None:
    names = [name for plugin in BUILT_IN for name in plugin.classes]
    assert len(names) == len(set(names))
    assert len(names) > 150


def test_every_key_that_is_read_is_published() -> None:
    for case in CASES:
        item = connector(case)
        plugin = families.choose(item.connector_class, item.config)
        if plugin is None or case.get("mappings") or plugin.role != item.type:
            continue
        context = Context(item, CaseMetadata(case), settings(case))
        context.assumed_role = plugin.role
        if plugin.source:
            reading = plugin.source(context)
            for topic in item.active_topics:
                if reading.reverse:
                    reading.reverse(topic)
        elif plugin.sink:
            for topic in str(item.config.get("topics", "")).split(","):
                plugin.sink(context, topic)
        published = (*plugin.keys, "topic.regex", "topic.replacement")
        odd = [k for k in context.read if not any(fnmatchcase(k, glob) for glob in published)]
        assert odd == [], label(case)


def test_edges_name_only_datasets_that_are_there() -> None:
    for case in CASES:
        derived = derive(connector(case), CaseMetadata(case), settings(case))
        inputs, outputs = (
            {d.id for d in derived.lineage.inputs},
            {d.id for d in derived.lineage.outputs},
        )
        assert all(e.input in inputs and e.output in outputs for e in derived.edges), label(case)
        assert all(e.evidence for e in derived.edges)
        assert all(d.evidence for d in (*derived.lineage.inputs, *derived.lineage.outputs))


def test_nothing_that_can_be_configured_raises() -> None:
    odd = (
        "",
        ",",
        "((",
        "${file:x:y}",
        "a.b.c.d.e.f",
        "\u0000",
        "x" * 5_000,
        "-1",
        "{",
        "[1]",
        "::",
    )
    for plugin in BUILT_IN:
        for value in odd:
            config = {"connector.class": plugin.classes[0].replace("*", "X")}
            config |= {key.replace("*", "t"): value for key in plugin.keys}
            config |= {"topics": value, "transforms": "r"} | {
                "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.r.regex": value,
                "transforms.r.replacement": "$9",
            }
            derived = derive(
                Connector("c", plugin.role, config, ("t", value)), NoMetadata(), DeriveSettings()
            )
            assert not [p for p in derived.lineage.problems if "could not be read:" in p], (
                plugin,
                value,
            )


VALUES = st.sampled_from([
    "", ".", "a", "A", "a.b", "a.b.c", "a,b", "a:b,c:d", "a=b", "a#b", "${topic}", "${file:x:y}",
    "x${env:Y}z", "jdbc:postgresql://h/d", "jdbc:oracle:thin:@h:1:S", "https://h/p", "/x/y",
    "INSERT INTO a SELECT * FROM a", "select * from a.b, c", "true", "5432", "(a|b)", "a.*", "[",
    "`a`.b.c", '{"/a.*":"{db}{x"}', "arn:aws:sqs:eu:1:q", "Endpoint=sb://x/;", "*", "record_key",
])  # fmt: skip
ROUTERS = st.sampled_from([
    "RegexRouter", "TimestampRouter", "Filter", "io.debezium.transforms.outbox.EventRouter",
    "io.debezium.transforms.ExtractNewRecordState", "com.acme.Unknown",
])  # fmt: skip


@examples(200)
@given(
    plugin=st.sampled_from(BUILT_IN),
    values=st.lists(VALUES, min_size=30, max_size=30),
    router=ROUTERS,
    seen=st.sampled_from([(), ("a",), ("a", "a.b.c", "x.a.b")]),
)
def test_no_mixture_of_values_raises_or_names_what_nobody_can_know(
    plugin: Any, values: list[str], router: str, seen: tuple[str, ...]
) -> None:
    config = {"connector.class": plugin.classes[0].replace("*", "X"), "topics": "a,a.b.c"}
    config |= {
        key.replace("*", "a"): value for key, value in zip(plugin.keys, values, strict=False)
    }
    config |= {"transforms": "t", "transforms.t.type": router, "transforms.t.regex": values[-1]}
    derived = derive(Connector("c", plugin.role, config, seen), CaseMetadata({}), DeriveSettings())
    assert not [p for p in derived.lineage.problems if "could not be read:" in p]
    names = [part for d in (*derived.lineage.inputs, *derived.lineage.outputs) for part in d.id]
    assert all(name and PLACEHOLDER not in name and "${env:" not in name for name in names)


def test_an_empty_configuration_is_said_to_be_unknown() -> None:
    derived = derive(Connector("c", None, {}), NoMetadata(), DeriveSettings())
    assert (derived.family, derived.lineage.inputs, derived.lineage.outputs) == ("unknown", (), ())
    assert derived.lineage.problems


def test_the_job_is_named_by_whom_the_user_says() -> None:
    by_name = {label(case): case for case in CASES}
    case = by_name["generic: names of one's own"]
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    assert (derived.job.namespace, derived.job.name) == ("prod", "a-and-b")
    assert derived.job.documentation == "copies a and b"
    assert derived.job.owners == (Owner("team:data", "OWNER"),)
    assert [(tag.key, tag.value) for tag in derived.job.tags] == [("pii", "true"), ("tier", "1")]

    case = by_name["debezium: its own lineage is on"]
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    assert (derived.job.namespace, derived.job.name, derived.joined) == ("cdc", "srv.0", "debezium")
    assert [(tag.key, tag.value) for tag in derived.job.tags] == [("env", "prod"), ("pii", "true")]

    case = by_name["lab: orders-s3-sink"]
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    assert (derived.job.namespace, derived.job.name) == ("default", "orders-s3-sink")


@pytest.mark.parametrize(
    ("names", "links"),
    [("db.a", {"db.a": []}), ("db.a,db.b", {"db.a": [], "db.b": ["topics/b"]}),
     ("db.a,db.b,db.c", {"db.a": ["topics/a"], "db.b": ["topics/b"], "db.c": ["topics/c"]})],
)  # fmt: skip
def test_a_declared_name_of_several_datasets_makes_none_of_them_the_other(
    names: str, links: dict[str, list[str]]
) -> None:
    config = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "a,b,c",
              "s3.bucket.name": "lake", "headwater.dataset.namespace": "hive://m:9083",
              "headwater.dataset.names": names}  # fmt: skip
    found = derive(Connector("c", "sink", config), NoMetadata(), DeriveSettings()).lineage
    assert {one.name: [link.name for link in one.symlinks] for one in found.outputs} == links


def test_a_topic_says_which_subject_its_columns_come_from() -> None:
    class Registry(NoMetadata):
        def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
            return TopicSchema(Schema((Field("id", "long"),)), value_subject=f"{topic}-value")

    config = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "orders",
              "s3.bucket.name": "lake"}  # fmt: skip
    lineage = derive(Connector("c", "sink", config), Registry(), DeriveSettings()).lineage
    assert Evidence("schema registry", "orders-value", observed=True) in lineage.inputs[0].evidence
    assert lineage.edges is not None
    assert Evidence("config key", "s3.bucket.name") in lineage.edges[0].evidence


def test_a_new_schema_version_is_a_new_version() -> None:
    case = next(c for c in CASES if label(c) == "jdbc: a table for each topic")
    first = derive(connector(case), CaseMetadata(case), settings(case))
    more = {**case, "schemas": {"orders": ["id:long", "name", "price:double", "note"]}}
    second = derive(connector(case), CaseMetadata(more), settings(case))
    assert first.version != second.version
    table = next(d for d in second.lineage.outputs if d.name == "shop.public.orders")
    assert table.schema is not None
    assert [f.name for f in table.schema.fields] == ["id", "name", "price", "note"]


def test_each_output_gets_its_own_topics_schema() -> None:
    case = next(c for c in CASES if label(c) == "jdbc: a table for each topic")
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    fields = {
        d.name: [f.name for f in d.schema.fields] for d in derived.lineage.outputs if d.schema
    }
    assert fields == {
        "shop.public.orders": ["id", "name", "price"],
        "shop.public.items": ["sku"],
    }


def test_the_tables_columns_are_seen_through_the_topic() -> None:
    case = next(c for c in CASES if label(c) == "debezium: PostgreSQL as the lab runs it")
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    (table,) = derived.lineage.inputs
    assert table.schema is not None
    assert [(f.name, f.type) for f in table.schema.fields] == [
        ("order_id", "long"),
        ("item", "string"),
    ]
