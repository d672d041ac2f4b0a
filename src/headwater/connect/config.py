"""How a cluster is to be watched: options, environment, a worker's own properties, secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.life.intervals import Intervals
from headwater.connect.services.endpoint import Endpoint
from headwater.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_JAAS = re.compile(r"""(username|password)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""")
_CONVERTER = re.compile(r"^(key|value|header)\.converter(\.|$)")


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One Connect cluster and what belongs to it."""

    name: str
    endpoint: Endpoint
    namespace: str = "default"
    kafka: dict[str, str] = {}
    registry: Endpoint | None = None
    defaults: dict[str, str] = {}
    """Converter settings of the workers, which hold where a connector has none of its own."""
    times: Intervals = Intervals()
    sample: bool = False
    mappings: tuple[str, ...] = ()
    internal: bool = False
    consumer_groups: bool = True
    """Whether consumer groups that no connector accounts for are reported; needs `kafka`."""
    skip_groups: tuple[str, ...] = ()
    """Patterns of the names of groups that are not."""
    producers: bool = True
    """Whether transactional producers that no connector accounts for are reported; needs `kafka`."""
    skip_producers: tuple[str, ...] = ()
    """Patterns of the transactional ids of producers that are not."""

    def __repr__(self) -> str:
        return f"ClusterConfig({self.name!r}, {self.endpoint!r})"


class WorkerConfig(msgspec.Struct, frozen=True):
    """Settings of a worker's properties file that REST does not show."""

    bootstrap: str = ""
    kafka: dict[str, str] = {}
    defaults: dict[str, str] = {}
    openlineage: dict[str, str] = {}


def secret(value: Any, where: str) -> str:
    """A value, or the content of the variable or file that it names: `{env: X}`, `{file: PATH}`."""
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, dict) and len(value) == 1:
        kind, name = next(iter(value.items()))
        if kind == "env":
            if name not in os.environ:
                raise UsageError(f"{where}: the variable {name} is not set")
            return os.environ[name]
        if kind == "file":
            return read_text(Path(name).expanduser(), f"{where}: ").strip()
    raise UsageError(
        f"{where}: not a value", hint="a text, {env: VARIABLE} or {file: PATH}"
    ) from None


def read_text(path: Path, where: str = "") -> str:
    """What stands in a file that a person has named; raises UsageError that names it too."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{where}{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{where}{path}: not a text in UTF-8") from None


def read_properties(text: str) -> dict[str, str]:
    """Java properties: comments, continued lines, `=`, `:` or space between key and value."""
    found: dict[str, str] = {}
    logical = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t]*", r"\1", text)
    for line in logical.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        match = re.match(r"((?:\\.|[^\\=:\s])+)\s*[=:]?\s*(.*)", stripped)
        if match:
            key, value = (re.sub(r"\\(.)", r"\1", part) for part in match.groups())
            found[key] = value
    return found


def read_worker(path: Path) -> WorkerConfig:
    """What counts in a worker's properties file."""
    found = read_properties(read_text(path, "--worker-properties "))
    kafka = {
        key: value
        for key, value in found.items()
        if key == "security.protocol" or key.startswith(("sasl.", "ssl."))
    }
    return WorkerConfig(
        bootstrap=found.get("bootstrap.servers", ""),
        kafka=_for_librdkafka(kafka),
        defaults={key: value for key, value in found.items() if _CONVERTER.match(key)},
        openlineage={k: v for k, v in found.items() if k.startswith("openlineage.")},
    )


def _for_librdkafka(found: Mapping[str, str]) -> dict[str, str]:
    """The Java client's security settings as librdkafka knows them."""
    names = {
        "security.protocol": "security.protocol",
        "sasl.mechanism": "sasl.mechanism",
        "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    }
    config = {names[key]: value for key, value in found.items() if key in names and value}
    for match in _JAAS.finditer(found.get("sasl.jaas.config", "")):
        value = next(part for part in match.groups()[1:] if part is not None)
        if "${" not in value:
            config[f"sasl.{match[1]}"] = value
    if found.get("ssl.truststore.type", "").upper() == "PEM" and "ssl.truststore.location" in found:
        config["ssl.ca.location"] = found["ssl.truststore.location"]
    return config


class OpenLineageSettings(msgspec.Struct, frozen=True):
    """What `openlineage.*` properties, as others wrote them, ask for."""

    transport: dict[str, Any] | None = None
    namespace: str = ""
    poll: float | None = None
    heartbeat: float | None = None


def read_openlineage(properties: Mapping[str, str]) -> OpenLineageSettings:
    """`openlineage.*` properties as openlineage-python's configuration and ours."""
    found = {key.removeprefix("openlineage."): value for key, value in properties.items()}

    def get(*names: str) -> str:
        keys = [f"{prefix}{name}" for name in names for prefix in ("transport.", "")]
        return next((found[key] for key in keys if found.get(key)), "")

    def seconds(key: str) -> float | None:
        value = found.get(key, "")
        if not value:
            return None
        if not value.isdigit() or int(value) <= 0:
            raise UsageError(f"openlineage.{key}={value}: not a number of milliseconds")
        return int(value) / 1000

    return OpenLineageSettings(
        transport=_transport(get, found),
        namespace=found.get("namespace", ""),
        poll=seconds("poll.interval.ms"),
        heartbeat=seconds("running.interval.ms"),
    )


def _transport(get: Any, found: Mapping[str, str]) -> dict[str, Any] | None:
    kind = found.get("transport.type") or ("http" if get("url") else "")
    if not kind:
        return None
    if kind == "http":
        config: dict[str, Any] = {"type": "http", "url": get("url")}
        if get("endpoint"):
            config["endpoint"] = get("endpoint").lstrip("/")
        key = get("auth.api_key", "auth.apiKey", "auth.apikey", "api_key", "apiKey")
        if key:
            config["auth"] = {"type": "api_key", "apiKey": key}
        return config
    if kind == "file":
        location = get("location", "log_file_path")
        if not location:
            raise UsageError("openlineage.transport.type=file needs openlineage.transport.location")
        return {"type": "file", "log_file_path": location, "append": True}
    if kind == "kafka":
        prefix = "transport.properties."
        client = {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}
        if get("bootstrap.servers"):
            client.setdefault("bootstrap.servers", get("bootstrap.servers"))
        for serializer in ("key.serializer", "value.serializer"):
            client.pop(serializer, None)
        topic = get("topicName", "topic.name", "topic") or "openlineage.events"
        return {"type": "kafka", "topic": topic, "config": client}
    if kind in ("console", "noop"):
        return {"type": kind}
    raise UsageError(
        f"openlineage.transport.type={kind}: not known", hint="http, file, console or kafka"
    )


def default_state() -> str:
    """The state's file when none is configured."""
    folder = os.environ.get("HEADWATER_STATE_DIR")
    if folder:
        return str(Path(folder) / "connect.db")
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return str(Path(base) / "headwater" / "connect.db")
