"""OpenLineage transports, each wrapped so that it reports whether an event arrived."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from headwater.errors import HeadwaterError
from headwater.lineage.openlineage.writer import client_event
from headwater.lineage.secrets import redact

if TYPE_CHECKING:
    from collections.abc import Callable

# These mean that the event is wrong.
REFUSALS = frozenset({400, 413, 422})
# These mean that the server is unavailable, whatever the event.
UNAVAILABLE = frozenset({408, 425, 429, 502, 503, 504, 507})
KAFKA_SECONDS = 30.0


class RefusedError(HeadwaterError):
    """The destination will never take this event."""


class AnsweredError(HeadwaterError):
    """The server could be reached and did not take the event: it, or the event, is at fault."""


def carrier(kind: str, transport: Any) -> Callable[[bytes], None]:
    """What sends one event by a transport of this kind, and raises when it did not arrive."""
    return _CARRIERS.get(kind, _other)(transport)


def _http(transport: Any) -> Callable[[bytes], None]:
    # With what requests imports at its first call: a child that is forked while the sender's thread
    # imports a module can never import it.
    import netrc  # noqa: F401

    import requests

    # Retrying is the outbox's business: it keeps order and does not give up.
    transport.config.retry = {"total": 0}
    address = requests.Request("POST", urljoin(transport.url, transport.endpoint)).prepare().url

    def send(body: bytes) -> None:
        try:
            _post(transport, address, body)
        except requests.HTTPError as error:
            answer = error.response
            if answer is None:
                raise HeadwaterError(redact(_short(error))) from None
            status = answer.status_code
            message = f"HTTP {status}: {redact(answer.text[:500].strip())}"
            # A token may have been asked for first, of another server: that is not about the event.
            asked = answer.history[0].url if answer.history else answer.url
            if asked != address or status in UNAVAILABLE:
                raise HeadwaterError(message) from None
            kind = RefusedError if status in REFUSALS else AnsweredError
            raise kind(message) from None
        except requests.RequestException as error:
            raise HeadwaterError(redact(_short(error))) from None

    return send


def _post(transport: Any, address: str | None, body: bytes) -> None:
    """Post an event as the transport is configured to.

    Its own `emit` takes an object, which it writes as JSON again: 2 ms of CPU an event.
    """
    bearer = transport.config.auth.get_bearer()
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": bearer} if bearer else {}
    headers |= transport.config.custom_headers
    if transport.compression is not None:
        body = gzip.compress(body, compresslevel=3)
        headers["Content-Encoding"] = "gzip"
    # Its trace would show the headers.
    traced, HTTPConnection.debuglevel = HTTPConnection.debuglevel, 0
    try:
        answer = transport.session.post(
            address, data=body, headers=headers, timeout=transport.timeout,
            verify=transport.verify, cert=getattr(transport, "cert", None), allow_redirects=False,
        )  # fmt: skip
    finally:
        HTTPConnection.debuglevel = traced
    answer.close()
    # Followed, a POST may become the GET of a page for logins, whose 200 takes no event, or go to another server.
    if 300 <= answer.status_code < 400:
        elsewhere = redact(answer.headers.get("Location", "").partition("?")[0][:300])
        message = f"HTTP {answer.status_code}: not followed to {elsewhere or 'nowhere'}"
        raise HeadwaterError(f"{message}; if the server is there, set that URL")
    answer.raise_for_status()


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

    return FileTransport(path)


class FileTransport:
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
            transport.emit(client_event(json.loads(body)))
        except Exception as error:  # noqa: BLE001
            raise HeadwaterError(redact(_short(error))) from None

    return send


def _short(error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    text = str(cause) or type(cause).__name__
    return f"{type(error).__name__}: {text}"[:300]


_CARRIERS: dict[str, Callable[[Any], Callable[[bytes], None]]] = {
    "http": _http,
    "kafka": _kafka,
    "msk-iam": _kafka,
    "file": _file,
    "console": _console,
    "noop": lambda _: lambda _body: None,
}
