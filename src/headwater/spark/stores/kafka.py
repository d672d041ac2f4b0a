"""Kafka topics: subscribed, assigned or matched by a pattern, and the topics written to."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from headwater.lineage.model import Dataset
from headwater.lineage.naming import NamingError, kafka
from headwater.spark.model import observed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.spark.jvm import JvmSession

_SECONDS = 5
_KEPT_SECONDS = 60.0
_clusters: dict[str, tuple[float, str, tuple[str, ...]]] = {}


def is_kafka(name: str) -> bool:
    """Whether a class belongs to Spark's Kafka source."""
    return "kafka010.Kafka" in name


def read(session: JvmSession, options: Mapping[str, str]) -> tuple[Dataset, ...]:
    """The topics that a reader's options name."""
    given = {key.lower(): value for key, value in options.items()}
    bootstrap = given.get("kafka.bootstrap.servers", "")
    if topics := given.get("subscribe"):
        names: Iterable[str] = [topic.strip() for topic in topics.split(",")]
    elif assigned := given.get("assign"):
        names = assigned_topics(assigned)
    elif pattern := given.get("subscribepattern"):
        names = matching(session, given, pattern)
    else:
        return ()
    groups = _groups(given)
    return tuple(
        replace(made, groups=groups)
        for name in names
        if (made := topic(session, bootstrap, name, given)) is not None
    )


def _groups(options: Mapping[str, str]) -> tuple[str, ...]:
    """The consumer groups that a reader's options name; Spark's own are known by their names."""
    if group := options.get("kafka.group.id"):
        return (group,)
    prefix = options.get("groupidprefix")
    return (f"{prefix}-*",) if prefix else ()


def topic(
    session: JvmSession, bootstrap: str, name: str, options: Mapping[str, str]
) -> Dataset | None:
    """One topic; all addresses of its cluster are kept, since the first names it."""
    try:
        place = kafka(bootstrap, name)
    except NamingError as error:
        session.problem(f"topic {name}: {error}")
        return None
    cluster, _ = describe(session, options, topics=False)
    servers = tuple(part.strip() for part in bootstrap.split(",") if part.strip())
    return Dataset(
        *place,
        type="TOPIC",
        source=place.namespace,
        cluster_id=cluster,
        bootstrap=tuple(server.rpartition("://")[2] for server in servers),
        evidence=observed("kafka options", name),
    )


def assigned_topics(text: str) -> list[str]:
    """The topics in `{"a":[0,1]}`."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return []
    return list(found) if isinstance(found, dict) else []


def matching(session: JvmSession, options: Mapping[str, str], pattern: str) -> list[str]:
    """The topics that a pattern stands for now, as the broker knows them."""
    _, names = describe(session, options, topics=True)
    try:
        wanted = re.compile(pattern)
    except re.error:
        session.problem(f"subscribePattern {pattern}: not a pattern that Python can read")
        return []
    found = [name for name in names if wanted.fullmatch(name)]
    if not found:
        session.problem(f"subscribePattern {pattern}: no topic matches it, or no broker answered")
    return sorted(found)


def describe(
    session: JvmSession, options: Mapping[str, str], *, topics: bool
) -> tuple[str, tuple[str, ...]]:
    """The id of the cluster and the names of its topics, as the broker answers within a time limit."""
    if session.jvm is None:  # a client of Spark Connect cannot reach the broker through the JVM
        return "", ()
    settings = {key[6:]: value for key, value in options.items() if key.startswith("kafka.")}
    bootstrap = settings.get("bootstrap.servers", "")
    known = _clusters.get(bootstrap)
    now = time.monotonic()
    if known is not None and now - known[0] < _KEPT_SECONDS and not topics:
        return known[1], known[2]
    cluster, names = _ask(session, settings)
    _clusters[bootstrap] = (now, cluster, names)
    return cluster, names


def _ask(session: JvmSession, settings: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    given: Any = session.jvm.java.util.HashMap()
    limit = str(_SECONDS * 1000)
    bounds = {"request.timeout.ms": limit, "default.api.timeout.ms": limit}
    for key, value in {**settings, **bounds}.items():
        given.put(key, value)
    client: Any = None
    try:
        client = session.jvm.org.apache.kafka.clients.admin.AdminClient.create(given)
        unit = session.jvm.java.util.concurrent.TimeUnit.SECONDS
        cluster = client.describeCluster().clusterId().get(_SECONDS, unit) or ""
        names = client.listTopics().names().get(_SECONDS, unit)
        return str(cluster), tuple(str(name) for name in names)
    except Exception:  # noqa: BLE001
        return "", ()
    finally:
        if client is not None:
            client.close(session.jvm.java.time.Duration.ofSeconds(1))
