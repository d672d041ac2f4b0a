"""Where events go: openlineage-python's transports, each made to say whether an event arrived."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from headwater.errors import HeadwaterError, UsageError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# These say that the event is wrong; any other refusal (a token, a path, a full server) may pass.
REFUSALS = frozenset({400, 413, 415, 422})
KAFKA_SECONDS = 30.0


class RefusedError(HeadwaterError):
    """The destination will never take this event."""


class Destination:
    """One place that events go to, with a name that is stable as long as its address is."""

    def __init__(
        self, name: str, shown: str, send: Callable[[bytes], None], transport: Any
    ) -> None:
        self.name = name
        self.shown = shown
        self.send = send
        self.transport = transport

    def flush(self) -> None:
        """Make sure that what was sent is there to stay."""
        if isinstance(self.send, _Lines):
            self.send.flush()

    @property
    def server(self) -> tuple[str, Mapping[str, str]] | None:
        """The base URL and headers of an HTTP destination, for what is not lineage."""
        if getattr(self.transport, "kind", "") != "http":
            return None
        bearer = self.transport.config.auth.get_bearer()
        headers = {**self.transport.config.custom_headers}
        if bearer:
            headers["Authorization"] = bearer
        return self.transport.url, headers

    def close(self) -> None:
        """Let go of connections."""
        self.transport.close(1.0)


def destinations(config: Mapping[str, Any] | None = None) -> list[Destination]:
    """Every destination that openlineage-python's own configuration, or `config`, names.

    A composite transport is taken apart, so that one that is down does not cost the others.
    """
    from openlineage.client import OpenLineageClient

    wanted = {"transport": dict(config)} if config else None
    try:
        with _environment_kept():
            transport = OpenLineageClient(config=wanted).transport
    except Exception as error:
        raise UsageError(
            f"where events go is not understood: {redact(str(error))}",
            hint="OPENLINEAGE_URL, OPENLINEAGE_CONFIG or OPENLINEAGE__TRANSPORT__TYPE and its kin",
        ) from error
    found = [_destination(leaf) for leaf in _leaves(transport)]
    for at, one in enumerate(found):
        if any(other.name == one.name for other in found[:at]):
            one.name = f"{one.name}#{at}"
    return found


@contextmanager
def _environment_kept() -> Iterator[None]:
    """The client notes what it read under other names in the environment, an API key too.

    The job's children would inherit that, and a second client would add it to its own.
    """
    before = set(os.environ)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
            if name not in before:
                del os.environ[name]


def _leaves(transport: Any) -> list[Any]:
    if getattr(transport, "kind", "") != "composite":
        return [transport]
    if not transport.config.continue_on_success:
        return [transport]
    return [leaf for child in transport.transports for leaf in _leaves(child)]


def _destination(transport: Any) -> Destination:
    kind = getattr(transport, "kind", "") or type(transport).__name__
    if kind == "async_http":
        transport, kind = _plain_http(transport), "http"
    shown = _shown(kind, transport)
    digest = hashlib.sha256(shown.encode()).hexdigest()[:12]
    makers: dict[str, Callable[[Any], Callable[[bytes], None]]] = {
        "http": _http,
        "kafka": _kafka,
        "msk-iam": _kafka,
        "file": _file,
        "console": _console,
        "noop": lambda _: lambda _body: None,
    }
    return Destination(f"{kind}:{digest}", shown, makers.get(kind, _other)(transport), transport)


def _shown(kind: str, transport: Any) -> str:
    if kind == "http":
        return redact(f"http {urljoin(transport.url, transport.endpoint)}")
    if kind in ("kafka", "msk-iam"):
        servers = transport.kafka_config.config.get("bootstrap.servers", "")
        return f"kafka {servers} {transport.topic}"
    if kind == "file":
        return f"file {transport.config.log_file_path}"
    return f"{kind} {transport.name or ''}".strip()


def _plain_http(transport: Any) -> Any:
    # The outbox waits for each answer itself; a transport that answers before would lose events.
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    config = transport.config
    names = ("url", "endpoint", "timeout", "verify", "auth", "compression", "custom_headers")
    return HttpTransport(HttpConfig(**{n: getattr(config, n) for n in names if hasattr(config, n)}))


def _http(transport: Any) -> Callable[[bytes], None]:
    import requests

    # Retrying is the outbox's business: it keeps order and does not give up.
    transport.config.retry = {"total": 0}

    def send(body: bytes) -> None:
        try:
            transport.emit(json.loads(body))
        except requests.HTTPError as error:
            answer = error.response
            status = answer.status_code if answer is not None else 0
            said = redact(answer.text[:500].strip()) if answer is not None else ""
            if status in REFUSALS:
                raise RefusedError(f"HTTP {status}: {said}") from None
            raise HeadwaterError(f"HTTP {status}: {said}") from None
        except requests.RequestException as error:
            raise HeadwaterError(redact(_short(error))) from None

    return send


def _kafka(transport: Any) -> Callable[[bytes], None]:
    def send(body: bytes) -> None:
        from confluent_kafka import KafkaError

        job = json.loads(body).get("job") or {}
        key = transport.message_key or f"run:{job.get('namespace')}/{job.get('name')}"
        done = threading.Event()
        failed: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failed.append(error)
            done.set()

        transport.producer.produce(transport.topic, body, key, on_delivery=delivered)
        transport.producer.flush(KAFKA_SECONDS)
        if not done.is_set():
            transport.producer.purge()
            raise HeadwaterError(f"no answer from Kafka in {KAFKA_SECONDS:g} s")
        if failed:
            error = failed[0]
            if error.code() in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG):
                raise RefusedError(error.str())
            raise HeadwaterError(error.str())

    return send


def _file(transport: Any) -> Callable[[bytes], None]:
    config = transport.config
    parts = urlsplit(config.log_file_path)
    if not config.append or parts.scheme not in ("", "file"):
        return _other(transport)
    path = Path(parts.path if parts.scheme == "file" else config.log_file_path)

    return _Lines(path)


class _Lines:
    """Appends events to a file, a line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def __call__(self, body: bytes) -> None:
        # One call to the system: a line is there whole or not at all, however the process ends.
        try:
            if self._handle is None:
                self._handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            before = os.fstat(self._handle).st_size
            if os.write(self._handle, body + b"\n") <= len(body):
                os.ftruncate(self._handle, before)
                raise HeadwaterError(f"{self._path}: no room for a whole event")
        except OSError as error:
            raise HeadwaterError(f"{self._path}: {error.strerror}") from None

    def flush(self) -> None:
        """Write to the disk, and let the file go, which may be moved away by who rotates it."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _console(_transport: Any) -> Callable[[bytes], None]:
    def send(body: bytes) -> None:
        sys.stdout.write(body.decode() + "\n")
        sys.stdout.flush()

    return send


def _other(transport: Any) -> Callable[[bytes], None]:
    def send(body: bytes) -> None:
        try:
            transport.emit(_event(json.loads(body)))
        except Exception as error:  # noqa: BLE001
            raise HeadwaterError(redact(_short(error))) from None

    return send


def _event(body: dict[str, Any]) -> Any:
    from openlineage.client import event_v2

    run, job = body.get("run"), body.get("job")
    if not run or not job:
        return body
    return event_v2.RunEvent(
        eventTime=body["eventTime"],
        eventType=event_v2.RunState(body["eventType"]),
        producer=body["producer"],
        run=event_v2.Run(run["runId"], run.get("facets") or {}),
        job=event_v2.Job(job["namespace"], job["name"], job.get("facets") or {}),
        inputs=[
            event_v2.InputDataset(d["namespace"], d["name"], d.get("facets") or {})
            for d in body.get("inputs") or []
        ],
        outputs=[
            event_v2.OutputDataset(d["namespace"], d["name"], d.get("facets") or {})
            for d in body.get("outputs") or []
        ],
    )


def _short(error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    text = str(cause) or type(cause).__name__
    return f"{type(error).__name__}: {text}"[:300]
