"""Store addresses to dataset names: one spelling for every producer, no credentials ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.secrets import redact

from . import identifier
from .address import NamingError
from .canonical import canonical
from .jdbc import JdbcTarget, from_jdbc, parse_jdbc
from .registry import SCHEMES, STORES
from .store import DatasetName, Store
from .uri import from_arn, from_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "SCHEMES",
    "STORES",
    "DatasetName",
    "JdbcTarget",
    "NamingError",
    "Store",
    "build",
    "canonical",
    "from_arn",
    "from_jdbc",
    "from_uri",
    "hive_location",
    "hive_namespace",
    "kafka",
    "kafka_namespace",
    "parse_jdbc",
    "redact",
    "split_identifier",
]

split_identifier = identifier.split


def build(store: str, **parts: str | int | None) -> DatasetName:
    """Name a dataset of the store with that key from its parts: `build("mongodb", host=...)`."""
    if store not in STORES:
        raise NamingError(f"no store is called {store!r}; the keys are in docs/naming.md")
    return STORES[store](**parts)


def hive_location(warehouse: str, database: str, table: str) -> str:
    """Where Hive keeps a managed table: the database `default` lies at the warehouse itself.

    Its name may be written in any case. Other databases keep theirs: Iceberg makes the folder as it is asked.
    """
    folder = "" if database.lower() == "default" else f"/{database}.db"
    return f"{warehouse.rstrip('/')}{folder}/{table}"


def hive_namespace(uris: str) -> str:
    """The namespace of a metastore's tables: `thrift://a:9083,thrift://b:9083` is `hive://a:9083`."""
    first = uris.split(",", 1)[0].strip()
    return canonical(first if "://" in first else f"thrift://{first}", "-").namespace


def kafka(bootstrap: str | Sequence[str], topic: str) -> DatasetName:
    """Name a topic; of a list of bootstrap servers the first names the cluster."""
    return STORES["kafka"](host=_listed(bootstrap), topic=topic)


def kafka_namespace(bootstrap: str | Sequence[str]) -> str:
    """The namespace of a cluster: `SASL_SSL://a:9093,b:9093` is `kafka://a:9093`."""
    return STORES["kafka"].at(host=_listed(bootstrap))


def _listed(bootstrap: str | Sequence[str]) -> str:
    servers = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    return ",".join(server.strip() for server in servers if server.strip())
