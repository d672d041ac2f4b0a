"""Carriers of events: each kind of transport made to say whether an event arrived."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from headwater.errors import HeadwaterError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Callable

# These say that the event is wrong; any other refusal (a token, a path, a full server) may pass.
REFUSALS = frozenset({400, 413, 415, 422})
KAFKA_SECONDS = 30.0


class RefusedError(HeadwaterError):
    """The destination will never take this event."""


def carrier(kind: str, transport: Any) -> Callable[[bytes], None]:
    """What sends one event by a transport of this kind, and raises when it did not arrive."""
    return _CARRIERS.get(kind, _other)(transport)


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

    return Lines(path)


class Lines:
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


_CARRIERS: dict[str, Callable[[Any], Callable[[bytes], None]]] = {
    "http": _http,
    "kafka": _kafka,
    "msk-iam": _kafka,
    "file": _file,
    "console": _console,
    "noop": lambda _: lambda _body: None,
}
