"""Every family of connectors: one file each, found by the connector's class."""

from __future__ import annotations

import logging
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.metadata import entry_points
from operator import itemgetter
from typing import TYPE_CHECKING

from headwater.connect.derive.family import (
    UNKNOWN,
    ColumnProjection,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)

from . import (
    analytics,
    bigquery,
    camel,
    cassandra,
    clickhouse,
    cosmos,
    couchbase,
    debezium,
    files,
    generators,
    http,
    iceberg,
    jdbc,
    lenses,
    mirror,
    mongodb,
    neo4j,
    object_stores,
    oracle_cdc,
    queues,
    redis,
    redshift,
    search,
    snowflake,
    spanner,
    topics_only,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = [
    "GROUP",
    "UNKNOWN",
    "ColumnProjection",
    "ExternalDataset",
    "Plugin",
    "SourceLineage",
    "SourceTopic",
    "choose",
    "find",
    "plugins",
]  # fmt: skip

GROUP = "headwater.connect.families"
"""The entry point under which others add families: each names a sequence of `Plugin`."""

BUILT_IN: tuple[Plugin, ...] = (
    *jdbc.PLUGINS,
    *debezium.PLUGINS,
    *oracle_cdc.PLUGINS,
    *object_stores.PLUGINS,
    *iceberg.PLUGINS,
    *snowflake.PLUGINS,
    *bigquery.PLUGINS,
    *redshift.PLUGINS,
    *spanner.PLUGINS,
    *clickhouse.PLUGINS,
    *cassandra.PLUGINS,
    *analytics.PLUGINS,
    *mongodb.PLUGINS,
    *redis.PLUGINS,
    *couchbase.PLUGINS,
    *neo4j.PLUGINS,
    *cosmos.PLUGINS,
    *search.PLUGINS,
    *mirror.PLUGINS,
    *http.PLUGINS,
    *files.PLUGINS,
    *generators.PLUGINS,
    *queues.PLUGINS,
    *lenses.PLUGINS,
    *camel.PLUGINS,
    *topics_only.PLUGINS,
)


@lru_cache(maxsize=1)
def plugins() -> tuple[Plugin, ...]:
    """The built-in plug-ins and those of other packages, which come first."""
    return (*_announced(), *BUILT_IN)


@lru_cache(maxsize=4_096)
def find(connector_class: str) -> Plugin | None:
    """The plug-in for a class, or for the name of one of Confluent Cloud's managed ones."""
    exact = _by_class().get(connector_class)
    if exact or not connector_class:
        return exact
    return next((p for glob, p in _globs() if fnmatchcase(connector_class, glob)), None)


def choose(connector_class: str, keys: Collection[str]) -> Plugin | None:
    """As `find`, also for a class without its package, as Connect takes it: `FileStreamSource`.

    Of several that share the name, the one whose keys are there.
    """
    if (found := find(connector_class)) or "." in connector_class:
        return found
    several = [
        (sum(key in keys for key in plugin.keys), plugin)
        for plugin in _by_alias().get(connector_class, ())
    ]
    best = [plugin for score, plugin in several if score == max(several, key=itemgetter(0))[0]]
    return best[0] if len({plugin.family for plugin in best}) == 1 else None


@lru_cache(maxsize=1)
def _by_class() -> dict[str, Plugin]:
    return {name: plugin for plugin in reversed(plugins()) for name in plugin.classes}


@lru_cache(maxsize=1)
def _by_alias() -> dict[str, list[Plugin]]:
    found: dict[str, list[Plugin]] = {}
    for plugin in plugins():
        simple = {name.rpartition(".")[2] for name in plugin.classes if "." in name}
        for alias in simple | {name.removesuffix("Connector") for name in simple}:
            found.setdefault(alias, []).append(plugin)
    return found


@lru_cache(maxsize=1)
def _globs() -> tuple[tuple[str, Plugin], ...]:
    return tuple((name, plugin) for plugin in plugins() for name in plugin.classes if "*" in name)


def _announced() -> Iterable[Plugin]:
    for point in entry_points(group=GROUP):
        try:
            found: tuple[object, ...] = tuple(point.load())
        except Exception:  # noqa: BLE001  (another package's fault must not cost the others)
            logging.getLogger(__name__).warning("the families of %s cannot be loaded", point.value)
            found = ()
        yield from (plugin for plugin in found if isinstance(plugin, Plugin))
