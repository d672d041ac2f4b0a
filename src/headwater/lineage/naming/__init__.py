"""Store addresses to dataset names: one spelling for every producer, no credentials ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import identifier
from .canonical import canonical
from .errors import NamingError
from .jdbc import JdbcTarget, from_jdbc, parse_jdbc
from .redact import redact
from .registry import SCHEMES, STORES, table
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
    "kafka",
    "kafka_namespace",
    "parse_jdbc",
    "redact",
    "split_identifier",
    "table",
]

split_identifier = identifier.split


def build(store: str, **parts: str | int | None) -> DatasetName:
    """Name a dataset of the store with that key from its parts: `build("mongodb", host=...)`."""
    if store not in STORES:
        raise NamingError(f"no store is called {store!r}; the keys are in docs/naming.md")
    return STORES[store](**parts)


def kafka(bootstrap: str | Sequence[str], topic: str) -> DatasetName:
    """Name a topic; of a list of bootstrap servers the first names the cluster."""
    return STORES["kafka"](host=_listed(bootstrap), topic=topic)


def kafka_namespace(bootstrap: str | Sequence[str]) -> str:
    """The namespace of a cluster: `SASL_SSL://a:9093,b:9093` is `kafka://a:9093`."""
    return STORES["kafka"].at(host=_listed(bootstrap))


def _listed(bootstrap: str | Sequence[str]) -> str:
    servers = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    return ",".join(server.strip() for server in servers if server.strip())
