"""A dataset that a job is told to call otherwise."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from headwater.lineage.model import (
    ColumnLineage,
    ColumnSource,
    Dataset,
    Job,
    Symlink,
    Transformation,
)
from headwater.lineage.naming import DatasetName
from headwater.lineage.openlineage.writer import Writer
from headwater.spark import reporting
from headwater.spark.driver import config
from headwater.spark.model import PlanLineage

TOPIC = Dataset(
    "kafka://b:9092", "orders", type="TOPIC", cluster_id="abc", bootstrap=("b:9092", "c:9092")
)
TABLE = Dataset(
    "s3://warehouse",
    "default/orders",
    symlinks=(Symlink("http://c:8181", "lab.default.orders"),),
    columns=ColumnLineage(
        fields={"price": (ColumnSource(TOPIC.id, "price", (Transformation("DIRECT"),)),)}
    ),
)
LINEAGE = PlanLineage(inputs=(TOPIC,), outputs=(TABLE,))


def both(**conf: str) -> tuple[dict[str, Any], dict[str, Any]]:
    settings = config.read({f"spark.headwater.datasets.{k}": v for k, v in conf.items()})
    lineage = reporting.lineage(LINEAGE, settings)
    event = Writer("urn:test").job_event(datetime.now(timezone.utc), Job("n", "j"), lineage)
    (read,), (written,) = event["inputs"], event["outputs"]
    return read, written


def place(dataset: dict[str, Any]) -> DatasetName:
    return DatasetName(dataset["namespace"], dataset["name"])


def test_without_a_word_every_dataset_keeps_its_name() -> None:
    read, written = both()
    assert (place(read), place(written)) == (TOPIC.id, TABLE.id)
    assert "symlinks" in written["facets"]


def test_a_table_by_its_catalogs_name_loses_what_would_join_it_to_itself() -> None:
    read, written = both(**{"default.orders.namespace": "lake", "default.orders.name": "o2"})
    assert place(read) == TOPIC.id
    assert place(written) == ("lake", "o2")
    assert "symlinks" not in written["facets"]
    (source,) = written["facets"]["columnLineage"]["fields"]["price"]["inputFields"]
    assert place(source) == TOPIC.id


def test_columns_point_at_a_topic_by_the_name_it_is_told_by() -> None:
    read, written = both(**{"orders.namespace": "kafka://elsewhere:9092"})
    assert place(read) == ("kafka://elsewhere:9092", "orders")
    assert "headwater_cluster" not in read["facets"]
    (source,) = written["facets"]["columnLineage"]["fields"]["price"]["inputFields"]
    assert place(source) == place(read)


def test_a_password_in_a_name_is_masked() -> None:
    read, _ = both(**{"orders.namespace": "kafka://me:hunter2@b:9092"})
    assert "hunter2" not in str(read)
