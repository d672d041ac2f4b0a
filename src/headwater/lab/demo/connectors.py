"""The shop's connectors: database to Kafka, Kafka to S3, Iceberg and back to the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from headwater.connect.commands.connector_file import read_connector
from headwater.errors import HeadwaterError
from headwater.lab.services import SERVICES
from headwater.lab.services.connect import secrets_file
from headwater.lab.services.hive import WITHOUT_LOCKS, endpoint
from headwater.lab.services.logins import USER, connect_login
from headwater.lab.services.pipeline_streams import programs
from headwater.lab.services.registry import AVRO_CONVERTER
from headwater.lab.services.s3 import warehouse
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.services.base import LabContext

RUNNING_SECONDS = 90.0
CALM_SECONDS = 30.0
CONNECTORS = ("orders-source", "orders-s3-sink", "orders-iceberg-sink", "supplier-stats-jdbc-sink")
# Whose addresses and keys their configurations name.
NAMED = ("connect", "registry", "s3", "catalog", "postgres")
# The column by which the Iceberg sink distinguishes the records of two topics. It routes by a field
# of the value and by nothing else, and writes that field too as long as it adds new columns.
ORIGIN = "source_topic"
# As the pipeline's own jobs make theirs.
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "snappy",
    "write.target-file-size-bytes": str(128 << 20),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "3",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
}


class Shop:
    """What the demo deploys on a lab's Connect."""

    def __init__(self, lab: LabContext) -> None:
        self.lab = lab
        self.http = httpx.Client(
            base_url=lab.url("connect"), timeout=60, trust_env=False, auth=connect_login(lab)
        )

    def create_tables(self) -> None:
        """Make the tables of the Iceberg sink, which would make decimal(38,2) of a price."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import DayTransform
        from pyiceberg.types import DecimalType, NestedField, StringType, TimestamptzType

        catalog = load_catalog(
            self.lab.home.settings.catalog, type="rest", uri=self.lab.url("catalog")
        )
        catalog.create_namespace_if_not_exists("default")
        by_day = PartitionSpec(PartitionField(9, 1000, DayTransform(), "bid_time_day"))
        order, item = NestedField(1, "order_id", StringType()), NestedField(2, "item", StringType())
        rest = (
            NestedField(3, "price", DecimalType(10, 2)),
            NestedField(4, "supplier", StringType()),
            NestedField(9, "bid_time", TimestamptzType()),
            NestedField(10, ORIGIN, StringType()),
        )
        for table, fields in (("orders_landing", (order, item, *rest)), ("bids", (order, *rest))):
            catalog.create_table_if_not_exists(
                f"default.{table}",
                Schema(*fields),
                partition_spec=by_day,
                properties=TABLE_PROPERTIES,
            )

    def deploy(self, changed: Callable[[str, str], None] = lambda _name, _state: None) -> None:
        """Make the connectors and wait until they and their tasks run."""
        for name in CONNECTORS:
            self.apply(name)
        for name in CONNECTORS:
            self.resume(name)
            wait_until(
                lambda name=name: self._running(name),  # type: ignore[misc]
                seconds=RUNNING_SECONDS,
                what=f"{name} to run",
                interval=0.3,
            )
            changed(name, "running")

    def apply(self, name: str, **changes: str) -> None:
        """Give a connector its configuration, with some settings otherwise."""
        self._put(f"/connectors/{name}/config", {**self.configs()[name], **changes})

    def config(self, name: str) -> dict[str, str]:
        """A connector's configuration as Connect has it; none when it is not there."""
        answer = self.http.get(f"/connectors/{name}/config")
        return dict(answer.json()) if answer.status_code == 200 else {}

    def states(self, name: str) -> list[dict[str, Any]]:
        """The states of a connector and its tasks."""
        status = self.http.get(f"/connectors/{name}/status").json()
        return [status.get("connector", {}), *status.get("tasks", [])]

    def pause(self, name: str) -> None:
        self._put(f"/connectors/{name}/pause")

    def resume(self, name: str) -> None:
        """Let a paused or stopped connector go on; one that runs is left alone."""
        self._put(f"/connectors/{name}/resume")

    def stop(self) -> None:
        """Stop the connectors; their configurations stay."""
        for name in CONNECTORS:
            if self.config(name):
                self._put(f"/connectors/{name}/stop")

    def configs(self) -> dict[str, dict[str, str]]:
        """Every connector's configuration: its file of the pipeline, with this lab's addresses."""
        variables = {
            name: value
            for service in NAMED
            for name, value in SERVICES[service].env(self.lab).items()
        }
        files = programs() / "connectors"
        found = (read_connector(files / f"{name}.json", variables) for name in CONNECTORS)
        configs = {connector.name: dict(connector.config) for connector in found}
        if self.lab.home.settings.hive:
            configs["orders-iceberg-sink"] |= self._hive()
        if self.lab.home.settings.secure:
            configs = {name: {**config, **self._logins(config)} for name, config in configs.items()}
        return configs

    def _logins(self, config: dict[str, str]) -> dict[str, str]:
        """How converters log in to the registry."""
        secret = f"${{file:{secrets_file(self.lab)}:registry.password}}"
        login = {"username": USER, "password": secret}
        return {
            f"{converter}.apicurio.auth.{key}": value
            for converter in ("key.converter", "value.converter")
            if config.get(converter) == AVRO_CONVERTER
            for key, value in login.items()
        }

    def _hive(self) -> dict[str, str]:
        """How the Iceberg sink comes to its tables where a Hive metastore keeps them."""
        return {
            "iceberg.catalog.type": "hive",
            "iceberg.catalog.uri": endpoint(self.lab),
            "iceberg.catalog.warehouse": warehouse(self.lab),
            **{f"iceberg.hadoop.{key}": value for key, value in WITHOUT_LOCKS.items()},
        }

    def _put(self, path: str, body: dict[str, str] | None = None) -> None:
        """PUT, repeated while Connect rebalances and answers 409."""

        def answered() -> httpx.Response | None:
            answer = self.http.put(path, json=body)
            return None if answer.status_code == httpx.codes.CONFLICT else answer

        answer = wait_until(
            answered, seconds=CALM_SECONDS, what="the end of a rebalance of Connect", interval=0.3
        )
        if answer.is_error:
            raise HeadwaterError(f"Connect refused {path}: {answer.text}")

    def _running(self, name: str) -> bool:
        parts = self.states(name)
        for part in parts:
            if part.get("state") == "FAILED":
                output = (part.get("trace") or "no trace").splitlines()[0]
                raise HeadwaterError(f"{name} failed: {output}", hint="headwater lab logs connect")
        return len(parts) > 1 and all(part.get("state") == "RUNNING" for part in parts)
