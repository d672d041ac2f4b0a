"""The one writer: lineage as an event, valid, masked and bounded."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from headwater.lineage.model import (
    Ancestors,
    Catalog,
    ColumnLineage,
    ColumnSource,
    Dataset,
    DatasetName,
    Edge,
    End,
    Engine,
    Evidence,
    Failure,
    Job,
    JobName,
    LifecycleChange,
    Lineage,
    Owner,
    Run,
    RunRef,
    SourceCode,
    Statistics,
    Symlink,
    Tag,
    Transformation,
)
from headwater.lineage.openlineage import events, writer
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.openlineage.writer import Writer, client_event, encode, stamp
from headwater.lineage.schema import Field, Schema, SchemaOrigin

ROOT = Path(__file__).parents[3]
PRODUCER = "urn:headwater:test:1"
TIME = datetime(2026, 8, 1, 12, tzinfo=timezone.utc)
RAW = DatasetName("s3://raw", "orders")
TOPIC = DatasetName("kafka://k:9092", "orders")
PARENT = RunRef("shop", "nightly", "01a1e237-b8ae-70df-b35d-2ffa4216251a")
RUN = Run(
    "01a1e237-b8ae-70df-b35d-2ffa4216251b",
    Ancestors(PARENT, PARENT),
    Engine("spark", "4.0.1", "0.1.0"),
    (Tag("team", "shop", "CONFIG"),),
    {"headwater_spark": {"properties": {"spark.app.name": "orders"}}},
)
JOB = Job(
    "shop", "orders", "STREAMING", "SPARK", "JOB", 300.4, "Copies orders.",
    (Owner("ada", "team"), Owner("bo")), (Tag("tier", "gold", "CONFIG"),),
    SourceCode("git", "https://u:p@git.example/shop", path="orders.py", version="abc"),
)  # fmt: skip
STEPS = (Transformation("DIRECT", "IDENTITY"), Transformation("INDIRECT", "FILTER", "", False))
COLUMNS = ColumnLineage(
    {"id": (ColumnSource(RAW, "id", STEPS),), "rows": ()},
    (ColumnSource(RAW, "day", (Transformation("INDIRECT", "JOIN"),)),),
    ("blob",),
)
SCHEMA = Schema((Field("id", "long"), Field("at", "struct", fields=(Field("day", "date"),))))
INPUT = Dataset(
    *RAW, "TABLE", "ICEBERG", SCHEMA, "12", (Symlink("hive://h:9083", "shop.orders"),),
    Catalog("iceberg", "rest", "lake", "http://u:p@c:8181", "s3://raw", "spark"),
    "jdbc:postgresql://u:p@h:5432/shop", "iceberg", "parquet",
    evidence=(Evidence("iceberg table", "lake.shop.orders", observed=True),),
    statistics=Statistics(3, 400, 2),
)  # fmt: skip
OUTPUT = Dataset(
    *TOPIC, "TOPIC", cluster_id="c1", bootstrap=("k:9092",), columns=COLUMNS,
    change=LifecycleChange("RENAME", DatasetName("kafka://k:9092", "old")),
    statistics=Statistics(3),
)  # fmt: skip
LINEAGE = Lineage(
    (INPUT,), (OUTPUT,), sql="SELECT id FROM orders -- password=hunter2", dialect="spark",
    problems=("cannot reach http://u:p@c:8181",),
)  # fmt: skip


def run_event(lineage: Lineage = LINEAGE, disabled: tuple[str, ...] = (), **more: Any) -> Any:
    return Writer(PRODUCER, disabled).run_event(EventType.RUNNING, TIME, JOB, RUN, lineage, **more)


def test_the_whole_event_is_the_one_written_down() -> None:
    event = run_event(
        replace(LINEAGE, edges=(Edge(RAW, TOPIC, (Evidence("plan node", "Project"),), True),)),
        end=End("exception"),
        failure=Failure("boom", "at line 1", "PYTHON"),
    )
    path = ROOT / "tests" / "fixtures" / "lineage" / "event.json"
    assert json.loads(encode(event)) == json.loads(path.read_text())


def test_the_server_reads_what_is_written() -> None:
    event = events.read(encode(run_event()), now=TIME)
    assert event.type is EventType.RUNNING
    assert [(d.namespace, d.name) for d in event.datasets] == [RAW, TOPIC]


@pytest.mark.parametrize("name", sorted(writer._SCHEMAS))
def test_facets_follow_the_schemas_of_the_installed_client(name: str) -> None:
    url = writer.facet(PRODUCER, name)["_schemaURL"]
    kind = url.rpartition("/")[2]
    from openlineage.client import generated

    modules = sorted(Path(generated.__path__[0]).glob("*.py"))
    known = [
        found
        for path in modules
        if (found := getattr(import_module(f"{generated.__name__}.{path.stem}"), kind, None))
    ]
    assert url in {found._get_schema() for found in known}


def test_an_overwrite_of_a_part_says_so_of_this_write_alone() -> None:
    def own(change: LifecycleChange, disabled: tuple[str, ...] = ()) -> Any:
        event = run_event(Lineage((), (replace(OUTPUT, change=change),)), disabled)
        return event["outputs"][0].get("outputFacets", {}).get("headwater_overwrite")

    made = own(LifecycleChange("OVERWRITE", partial=True))
    path = ROOT / "docs" / "facets" / "headwater_overwrite.json"
    Draft202012Validator(json.loads(path.read_text())).validate(made)
    assert made["partial"] is True
    assert own(LifecycleChange("OVERWRITE")) is None
    assert own(LifecycleChange("OVERWRITE", partial=True), ("headwater_overwrite",)) is None


def test_the_registry_that_was_asked_stands_beside_the_schema() -> None:
    other = SchemaOrigin("registry", "orders-key", "1", "key")
    origin = SchemaOrigin("registry", "orders-value", "3", "value", others=(other,))
    asked = replace(OUTPUT, schema=SCHEMA, schema_source=origin)
    made = run_event(Lineage((), (asked,)))["outputs"][0]["facets"]["headwater_schemaSource"]
    path = ROOT / "docs" / "facets" / "headwater_schemaSource.json"
    Draft202012Validator(json.loads(path.read_text())).validate(json.loads(json.dumps(made)))
    assert (made["subject"], made["version"], made["others"][0]["part"]) == (
        "orders-value",
        "3",
        "key",
    )
    guessed = run_event(Lineage((), (replace(asked, schema=None),)))
    assert "headwater_schemaSource" not in guessed["outputs"][0]["facets"]


def test_credentials_are_masked_wherever_free_text_stands() -> None:
    failure = Failure("password=hunter2", "jdbc:mysql://u:hunter2@h/db")
    job = replace(JOB, documentation="see http://u:hunter2@h")
    run = replace(RUN, facets={"headwater_flow": {"api_key": "hunter2", "u": "http://u:hunter2@h"}})
    lineage = replace(
        LINEAGE, edges=(Edge(RAW, TOPIC, (Evidence("rule", "token=hunter2"),)),),
        problems=("password: hunter2",),
    )  # fmt: skip
    made = Writer(PRODUCER).run_event(EventType.FAIL, TIME, job, run, lineage, failure=failure)
    text = encode(made).decode()
    assert "hunter2" not in text
    assert "u:p@" not in text
    assert text.count("***") >= 9


def test_an_output_without_a_place_is_not_written() -> None:
    lineage = replace(LINEAGE, outputs=(OUTPUT, Dataset("x", "y", placed=False)), edges=())
    found = run_event(lineage)
    assert [item["name"] for item in found["outputs"]] == ["orders"]
    assert [item["name"] for item in found["job"]["facets"]["lineage"]["entries"]] == ["orders"]


def test_evidence_has_one_shape_with_and_without_pairs() -> None:
    known = {"source": "iceberg table", "detail": "lake.shop.orders", "observed": True}
    found = run_event()
    facet = found["job"]["facets"]["headwater_evidence"]
    assert facet["edges"] == []
    assert facet["datasets"] == [{**RAW._asdict(), "evidence": [known]}]
    assert "headwater_evidence" not in found["inputs"][0]["facets"]
    pairs = run_event(replace(LINEAGE, edges=(Edge(RAW, TOPIC, INPUT.evidence),)))
    facet = pairs["job"]["facets"]["headwater_evidence"]
    assert [edge["evidence"] for edge in facet["edges"]] == [[known]]
    assert "named" not in facet["edges"][0]
    names = run_event(replace(LINEAGE, edges=(Edge(RAW, TOPIC, INPUT.evidence, True, ("id",)),)))
    assert names["job"]["facets"]["headwater_evidence"]["edges"][0]["named"] == ["id"]
    assert [item["evidence"] for item in facet["datasets"]] == [[known], []]
    assert "headwater_evidence" not in run_event(Lineage((OUTPUT,)))["job"]["facets"]


def test_disabled_facets_are_left_out_everywhere() -> None:
    names = ("columnLineage", "schema", "inputStatistics", "sql", "headwater_spark", "dataSource")
    found = run_event(disabled=names)
    text = encode(found).decode()
    for name in names:
        assert f'"{name}"' not in text
    assert "headwater_columns" not in text


def test_an_address_is_written_only_where_the_namespace_is_one() -> None:
    def uri(dataset: Dataset) -> str | None:
        found = run_event(Lineage((dataset,)))["inputs"][0]["facets"]["dataSource"]
        value: str | None = found.get("uri")
        return value

    assert uri(Dataset("s3://b", "x")) == "s3://b"
    assert uri(Dataset("spanner://project:instance", "x")) is None
    assert uri(Dataset("file", "/x")) is None
    assert uri(Dataset("file", "/x", source="file:/x")) == "file:/x"


def test_a_job_that_others_run_and_a_job_that_is_a_part() -> None:
    job = Job("shop", "orders.1", part_of=JobName("shop", "orders"))
    found = Writer(PRODUCER).job_event(TIME, job, Lineage())
    assert found["schemaURL"].endswith("/JobEvent")
    assert "run" not in found
    assert set(found["job"]["facets"]) == {"headwater_partOf"}
    assert events.read(encode(found), now=TIME).kind is events.EventKind.JOB


def test_a_job_that_is_deleted_says_since_when() -> None:
    found = Writer(PRODUCER).job_event(TIME, Job("shop", "orders", deleted=TIME), Lineage())
    assert found["job"]["facets"]["headwater_deleted"]["at"] == stamp(TIME)


def test_times_are_in_utc_and_microseconds() -> None:
    zone = timezone(timedelta(hours=2))
    assert stamp(datetime(2026, 8, 1, 14, tzinfo=zone)) == "2026-08-01T12:00:00.000000Z"
    with pytest.raises(ValueError, match="time zone"):
        stamp(datetime(2026, 8, 1))  # noqa: DTZ001


def test_an_event_that_is_too_large_is_trimmed_in_order() -> None:
    failure = Failure("boom", "x" * 200_000)
    whole = run_event(failure=failure)
    some = json.loads(encode(whole, 100_000))
    assert some["run"]["facets"]["headwater_trimmed"]["parts"] == ["stack traces"]
    assert "dataset" in some["outputs"][0]["facets"]["columnLineage"]
    least = json.loads(encode(whole, 1))
    parts = least["run"]["facets"]["headwater_trimmed"]["parts"]
    assert parts[:2] == ["stack traces", "sql"]
    assert parts[-1] == "datasets"
    assert "columnLineage" not in least["outputs"][0]["facets"]


def test_lineage_is_trimmed_in_the_stated_order() -> None:
    fields = {
        f"c{n}": tuple(
            ColumnSource(RAW, "f", (Transformation(kind, "X", "", False),))
            for kind in ("DIRECT", "INDIRECT")
        )
        for n in range(300)
    }
    schema = Schema(tuple(Field(f"c{n}", "string") for n in range(300)))
    read = Dataset(*RAW, schema=schema)
    made = Dataset(*TOPIC, schema=schema, columns=ColumnLineage(fields, fields["c0"]))
    whole = run_event(Lineage((read,), (made,)))
    size = len(encode(whole))

    def left(most: int) -> tuple[dict[str, Any], list[str]]:
        raw = encode(whole, most)
        assert len(raw) <= most
        found = json.loads(raw)
        return found, found["run"]["facets"]["headwater_trimmed"]["parts"]

    found, parts = left(size - 1000)
    assert parts == ["stack traces", "sql", "indirect columns"]
    kept = found["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert all(len(entry["inputFields"]) == 1 for entry in kept.values())
    found, parts = left(30_000)
    assert parts[-1] == "columns"
    assert "schema" in found["outputs"][0]["facets"]
    assert "schema" not in found["inputs"][0]["facets"]
    found, parts = left(7_000)
    assert parts[-1] == "schemas of outputs"
    assert len(encode(whole)) == size, "what fits is not touched"


@pytest.mark.parametrize(
    "name",
    [
        "streaming",
        "end",
        "spark",
        "trimmed",
        "columns",
        "problems",
        "evidence",
        "partOf",
        "deleted",
    ],
)
def test_own_facets_have_a_published_schema(name: str) -> None:
    schema = json.loads((ROOT / "docs" / "facets" / f"headwater_{name}.json").read_text())
    assert schema["$id"] == writer.facet(PRODUCER, f"headwater_{name}")["_schemaURL"]


def test_a_job_event_is_trimmed_too() -> None:
    many = tuple(Dataset("s3://b", f"{n:06}" * 50) for n in range(3000))
    raw = encode(Writer(PRODUCER).job_event(TIME, JOB, Lineage(many)))
    found = json.loads(raw)
    assert len(raw) < writer.MAX_BYTES
    assert len(found["inputs"]) == writer.TRIMMED_DATASETS
    assert "datasets" in found["job"]["facets"]["headwater_trimmed"]["parts"]


def test_pairs_and_their_columns_are_trimmed_too() -> None:
    """The `lineage` facet holds each column once more, so it must not be what is left."""
    sources = (
        ColumnSource(RAW, "f", (Transformation("DIRECT", "X", "", False),)),
        ColumnSource(RAW, "g", (Transformation("INDIRECT", "JOIN", "", False),)),
    )
    columns = ColumnLineage({f"c{n}": sources for n in range(300)}, sources[1:])
    edges = (Edge(RAW, TOPIC),)
    whole = run_event(Lineage((Dataset(*RAW),), (Dataset(*TOPIC, columns=columns),), edges=edges))
    size = len(encode(whole))

    def left(max_bytes: int) -> tuple[dict[str, Any], list[str]]:
        raw = encode(whole, max_bytes)
        assert len(raw) <= max_bytes
        found = json.loads(raw)
        return found["job"]["facets"], found["run"]["facets"]["headwater_trimmed"]["parts"]

    facets, parts = left(size - 1000)
    assert parts[-1] == "indirect columns"
    (entry,) = facets["lineage"]["entries"]
    assert entry["inputs"] == [{**RAW._asdict(), "type": "DATASET"}]
    assert all(len(field["inputs"]) == 1 for field in entry["fields"].values())
    facets, parts = left(5_000)
    assert parts[-1] == "columns"
    assert "fields" not in facets["lineage"]["entries"][0]

    outputs = tuple(Dataset("s3://b", f"{n:06}" * 20) for n in range(6_000))
    many = tuple(Edge(RAW, output.id) for output in outputs)
    raw = encode(
        Writer(PRODUCER).job_event(TIME, JOB, Lineage((Dataset(*RAW),), outputs, many[:9]))
    )
    assert len(raw) < writer.MAX_BYTES
    assert "lineage" not in json.loads(raw)["job"]["facets"]


def test_transports_of_the_client_get_its_own_class() -> None:
    from openlineage.client.serde import Serde

    made = json.loads(encode(run_event()))
    sent = Serde.to_dict(client_event(made))
    assert sent["run"] == made["run"]
    assert sent["job"] == made["job"]
    assert sent["inputs"] == made["inputs"]
    assert sent["outputs"] == made["outputs"]
    assert client_event({"dataset": {}}) == {"dataset": {}}


def test_only_the_writer_knows_the_format_of_events() -> None:
    source = ROOT / "src" / "headwater"
    words = (
        "_schemaURL", "facet_v2", "event_v2", "openlineage.client.generated", "openlineage.io/spec",
    )  # fmt: skip
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in words)
    }
    assert {name for name in found if not name.startswith("lineage/")} == set()
