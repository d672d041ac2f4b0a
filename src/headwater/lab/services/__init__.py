"""The registry of services: add a file with a `Service` in it, and its name here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.errors import UsageError
from headwater.lab.services.catalog import IcebergCatalog
from headwater.lab.services.connect import Connect
from headwater.lab.services.headwater import Agent, PageRedirect, Server
from headwater.lab.services.hive import Hive
from headwater.lab.services.kafka import Kafka
from headwater.lab.services.lake import LineageLake
from headwater.lab.services.pipeline_streams import IcebergIngestion, SupplierStats
from headwater.lab.services.postgres import Postgres
from headwater.lab.services.registry import Registry
from headwater.lab.services.s3 import S3
from headwater.lab.services.spark import SparkHistory, SparkMaster, SparkWorker1, SparkWorker2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lab.services.base import Service

SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        Kafka(),
        Connect(),
        Registry(),
        S3(),
        IcebergCatalog(),
        Postgres(),
        Hive(),
        SparkMaster(),
        SparkWorker1(),
        SparkWorker2(),
        SparkHistory(),
        Server(),
        PageRedirect(),
        Agent(),
        SupplierStats(),
        IcebergIngestion(),
        LineageLake(),
    )
}
DEFAULT = tuple(name for name, service in SERVICES.items() if not service.optional)

# One word for a cluster that is several processes.
COMPANIONS = {"spark": ("spark-worker-1", "spark-worker-2", "spark-history")}


def select(names: Iterable[str]) -> list[str]:
    """The services asked for, with their companions; the usual ones when none is named."""
    asked = list(names) or list(DEFAULT)
    for name in asked:
        if name not in SERVICES:
            raise UsageError(
                f"there is no service {name!r}", hint=f"services: {', '.join(SERVICES)}"
            )
    return in_order({c for name in asked for c in (name, *COMPANIONS.get(name, ()))})


def bundles(names: Iterable[str]) -> list[str]:
    """What the services need from the lock."""
    return [bundle for name in names for bundle in (name, *SERVICES[name].bundles)]


def with_needs(names: Iterable[str]) -> list[str]:
    """The services and everything they need."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += SERVICES[name].needs
    return in_order(found)


def with_dependants(names: Iterable[str]) -> list[str]:
    """The services and everything that needs them."""
    found = set(names)
    while more := {n for n, s in SERVICES.items() if n not in found and found & set(s.needs)}:
        found |= more
    return in_order(found)


def in_order(names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [name for name in SERVICES if name in wanted]
