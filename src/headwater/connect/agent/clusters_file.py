"""The file of many clusters: read, checked, and read again when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from headwater.connect.config import (
    ClusterConfig,
    read_openlineage,
    read_text,
    read_worker,
    secret,
)
from headwater.connect.life.intervals import Intervals
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.rest import CLOUD
from headwater.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_TOP = {
    "clusters", "state", "transport", "mappings", "namespace", "consumer_groups", "skip_groups",
    "producers", "skip_producers", *Intervals.__struct_fields__,
}  # fmt: skip
_CLUSTER = {
    "name", "url", "urls", "namespace", "auth", "tls", "kafka", "registry", "worker_properties",
    "sample", "mappings", "internal", "confluent_cloud", "consumer_groups", "skip_groups",
    "producers", "skip_producers", *Intervals.__struct_fields__,
}  # fmt: skip
_REGISTRY = {"url", "auth", "tls"}


class AgentConfig(msgspec.Struct, frozen=True):
    """Everything that one agent watches, and where it keeps and sends what it sees."""

    clusters: tuple[ClusterConfig, ...]
    state: str = ""
    transport: dict[str, Any] | None = None


def read_agent_config(path: Path) -> AgentConfig:
    """The clusters of a YAML file; raises UsageError that names the key that is wrong."""
    import yaml

    try:
        found = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        at = getattr(error, "problem_mark", None)
        line = f" line {at.line + 1}" if at else ""
        raise UsageError(f"{path}{line}: not YAML") from None
    if not isinstance(found, dict) or not isinstance(found.get("clusters"), list):
        raise UsageError(f"{path}: has no list called clusters", hint="see docs/connect.md")
    _known(found, _TOP, str(path))
    clusters = tuple(
        _cluster(item, found, f"{path}: clusters[{at}]", path.parent)
        for at, item in enumerate(found["clusters"])
    )
    names = [cluster.name for cluster in clusters]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two clusters are called {name}", hint="give each a name")
    state = secret(found["state"], f"{path}: state") if "state" in found else ""
    return AgentConfig(clusters, state, found.get("transport"))


def _cluster(item: Any, top: dict[str, Any], where: str, folder: Path) -> ClusterConfig:
    if not isinstance(item, dict):
        raise UsageError(f"{where}: not a cluster", hint="each has at least a url")
    _known(item, _CLUSTER, where)
    worker = None
    if "worker_properties" in item:
        worker = read_worker(folder / str(item["worker_properties"]))
    asked = read_openlineage(worker.openlineage if worker else {})
    kafka = _kafka(item.get("kafka"), where)
    if worker and not kafka and worker.bootstrap:
        kafka = {"bootstrap.servers": worker.bootstrap, **worker.kafka}
    endpoint = _endpoint(item, where)
    merged = {**top, **item}
    return ClusterConfig(
        name=str(item.get("name") or urlsplit(endpoint.urls[0]).netloc.rpartition("@")[2]),
        endpoint=endpoint,
        namespace=str(merged.get("namespace") or asked.namespace or "default"),
        kafka=kafka,
        registry=_registry(item.get("registry"), where),
        defaults=worker.defaults if worker else {},
        times=_times(merged, where, asked.poll, asked.heartbeat),
        sample=bool(item.get("sample", False)),
        mappings=tuple(str(folder / name) for name in _listed(merged.get("mappings"))),
        internal=bool(item.get("internal", False)),
        consumer_groups=bool(merged.get("consumer_groups", True)),
        skip_groups=tuple(_listed(merged.get("skip_groups"))),
        producers=bool(merged.get("producers", True)),
        skip_producers=tuple(_listed(merged.get("skip_producers"))),
    )


def _known(item: dict[str, Any], names: set[str], where: str) -> None:
    for key in item:
        if key not in names:
            raise UsageError(
                f"{where}: {key} is not known", hint=f"known: {', '.join(sorted(names))}"
            )


def _listed(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _times(
    item: dict[str, Any], where: str, poll: float | None, heartbeat: float | None
) -> Intervals:
    asked = {"poll": poll, "heartbeat": heartbeat}
    found = {key: value for key, value in asked.items() if value is not None}
    for key in Intervals.__struct_fields__:
        if key in item:
            value = item[key]
            if not isinstance(value, (int, float)) or value <= 0:
                raise UsageError(f"{where}: {key}: not a number of seconds")
            found[key] = float(value)
    return Intervals(**found)


def _endpoint(item: dict[str, Any], where: str) -> Endpoint:
    cloud = item.get("confluent_cloud")
    if cloud:
        try:
            url = (
                f"https://{CLOUD}/connect/v1/environments/{cloud['environment']}"
                f"/clusters/{cloud['cluster']}"
            )
            key, word = cloud["api_key"], cloud["api_secret"]
        except (KeyError, TypeError):
            raise UsageError(
                f"{where}: confluent_cloud needs environment, cluster, api_key and api_secret"
            ) from None
        return Endpoint((url,), username=secret(key, where), password=secret(word, where))
    urls = _listed(item.get("urls")) or _listed(item.get("url"))
    if not urls:
        raise UsageError(f"{where}: has no url", hint="url: http://connect:8083")
    return endpoint_of(urls, item.get("auth") or {}, item.get("tls") or {}, where)


def endpoint_of(urls: list[str], auth: dict[str, Any], tls: dict[str, Any], where: str) -> Endpoint:
    """Addresses with what they want to see; a user inside a URL is taken out of it."""
    clean, user, password = [], "", ""
    for url in urls:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{where}: not an http address", hint="url: http://HOST:PORT")
        if parts.username:
            user, password = parts.username, parts.password or ""
        netloc = parts.netloc.rpartition("@")[2]
        clean.append(parts._replace(netloc=netloc, query="", fragment="").geturl())
    try:
        return Endpoint(
            tuple(clean),
            username=secret(auth.get("username", user), f"{where}: auth.username"),
            password=secret(auth.get("password", password), f"{where}: auth.password"),
            token=secret(auth.get("token", ""), f"{where}: auth.token"),
            ca=secret(tls.get("ca", ""), f"{where}: tls.ca"),
            cert=secret(tls.get("cert", ""), f"{where}: tls.cert"),
            key=secret(tls.get("key", ""), f"{where}: tls.key"),
            verify=bool(tls.get("verify", True)),
        )
    except AttributeError:
        raise UsageError(f"{where}: auth and tls are mappings") from None


def _kafka(value: Any, where: str) -> dict[str, str]:
    if not value:
        return {}
    if isinstance(value, str):
        return {"bootstrap.servers": value}
    if not isinstance(value, dict) or "bootstrap.servers" not in value:
        raise UsageError(f"{where}: kafka has no bootstrap.servers", hint="kafka: HOST:PORT")
    return {str(key): secret(one, f"{where}: kafka.{key}") for key, one in value.items()}


def _registry(value: Any, where: str) -> Endpoint | None:
    if not value:
        return None
    if isinstance(value, str):
        return endpoint_of([value], {}, {}, f"{where}: registry")
    if not isinstance(value, dict) or "url" not in value:
        raise UsageError(f"{where}: registry has no url")
    _known(value, _REGISTRY, f"{where}: registry")
    return endpoint_of(
        [str(value["url"])], value.get("auth") or {}, value.get("tls") or {}, f"{where}: registry"
    )
