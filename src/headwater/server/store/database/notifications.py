"""What servers on one PostgreSQL send each other: every commit's changes, in the order of commits."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CHANNEL", "CommitListener", "messages"]

log = logging.getLogger("headwater.server")

CHANNEL = "headwater_changes"
ROOM = 7_000
RESET: dict[str, Any] = {"change": "reset"}


def messages(seq: int, changes: list[dict[str, Any]]) -> Iterator[str]:
    """The changes of one commit as notifications, each within PostgreSQL's limit of 8,000 bytes."""
    held: list[msgspec.Raw] = []
    size = 0
    for change in changes:
        body = _encode(change)
        if held and size + len(body) > ROOM:
            yield _message(seq, held)
            held, size = [], 0
        held.append(msgspec.Raw(body))
        size += len(body) + 1
    if held:
        yield _message(seq, held)


def _encode(change: dict[str, Any]) -> bytes:
    plain = {k: str(UUID(bytes=v)) if isinstance(v, bytes) else v for k, v in change.items()}
    body = msgspec.json.encode(plain)
    # Names too long for a notification: the listeners query the store instead.
    return body if len(body) < ROOM else msgspec.json.encode(RESET)


def _message(seq: int, held: list[msgspec.Raw]) -> str:
    return msgspec.json.encode({"seq": seq, "changes": held}).decode()


class CommitListener:
    """A thread that receives every commit and comes back by itself when its connection is lost."""

    def __init__(self, url: str, publish: Callable[[int, list[dict[str, Any]]], None]) -> None:
        self._url = url
        self._publish = publish
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="headwater-listener", daemon=True)

    def start(self) -> None:
        """Begin; returns once nothing committed from now on can be missed."""
        self._thread.start()
        self._ready.wait(10)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        connection = self._connection
        if connection is not None:
            # The thread waits for the server; an end of its stream is all that wakes it at once.
            with (
                contextlib.suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(connection.fileno())) as stream,
            ):
                stream.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                if self._stop.is_set():
                    return
                log.warning("commits of other servers are not received, reconnecting: %s", error)
                self._stop.wait(1)

    def _listen(self) -> None:
        with contextlib.closing(
            psycopg.connect(self._url, autocommit=True, connect_timeout=5)
        ) as connection:
            self._connection = connection
            connection.execute(f"LISTEN {CHANNEL}")
            if self._ready.is_set():
                row = connection.execute("SELECT seq FROM head WHERE id = 1").fetchone()
                self._publish(row[0] if row else 0, [RESET])
            self._ready.set()
            while not self._stop.is_set():
                for note in connection.notifies(timeout=5):
                    found = msgspec.json.decode(note.payload)
                    self._publish(found["seq"], found["changes"])
