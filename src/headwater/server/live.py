"""The live stream: every change, sent to every listener in the order of the log."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from headwater.server.store.read.namespace_limit import Limit

__all__ = ["Live", "Message"]

KEPT = 5_000
QUEUE = 2_000
BEAT = 15.0


class Message(NamedTuple):
    """One change; `id` is the place in the log that made it, or 0 for what is not in the log."""

    id: int
    kind: str
    data: bytes | dict[str, Any]
    """As JSON, or still as the change it is: while no page listens, most are never asked for."""

    def written(self) -> Message:
        """The message with its data as JSON."""
        if isinstance(self.data, bytes):
            return self
        data = {key: _plain(value) for key, value in self.data.items() if key != "change"}
        return Message(self.id, self.kind, msgspec.json.encode(data))

    def seen(self, limit: Limit | None) -> bool:
        """Whether it is about something in a namespace within the limit."""
        if limit is None:
            return True
        data = self.data if isinstance(self.data, dict) else msgspec.json.decode(self.data)
        names = [
            one.get("namespace") for one in (data, data.get("dataset")) if isinstance(one, dict)
        ]
        return all(limit.allows(name) for name in names if name is not None)

    def encode(self) -> bytes:
        """The message as server-sent events write it."""
        head = f"id: {self.id}\n" if self.id else ""
        data = self.written().data
        assert isinstance(data, bytes)
        return f"{head}event: {self.kind}\ndata: ".encode() + data + b"\n\n"


def _plain(value: Any) -> Any:
    return str(UUID(bytes=value)) if isinstance(value, bytes) else value


class Live:
    """Keeps the last messages, so that a listener who was away can go on where it stopped."""

    def __init__(self) -> None:
        self._kept: deque[Message] = deque(maxlen=KEPT)
        self._listeners: set[asyncio.Queue[Message | None]] = set()
        self._since = 0
        self._closed = False

    @property
    def listeners(self) -> int:
        """How many are listening."""
        return len(self._listeners)

    def start(self, seq: int) -> None:
        """Note where the log stands when the stream begins."""
        self._since = seq

    def publish(self, seq: int, changes: list[dict[str, Any]]) -> None:
        """Send the listeners what one commit changed."""
        for change in changes:
            message = Message(seq, change["change"], change)
            if self._listeners:
                message = message.written()
            if message.kind == "reset":
                self._kept.clear()
                self._since = seq
            elif len(self._kept) == KEPT:
                self._since = self._kept[0].id
            self._kept.append(message)
            self._send(message)

    def broadcast(self, kind: str, data: Any) -> None:
        """Send the listeners something that is not in the log and need not be resumed."""
        if self._listeners:
            self._send(Message(0, kind, msgspec.json.encode(data)))

    def _send(self, message: Message) -> None:
        for queue in self._listeners:
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                # A listener too slow to follow is cut off; it comes back with its last id.
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)

    def close(self) -> None:
        """End every stream."""
        self._closed = True
        for queue in self._listeners:
            while queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    async def listen(self, after: int | None, limit: Limit | None = None) -> AsyncIterator[bytes]:
        """The stream of one listener, from where it stopped if that is still known.

        `limit` leaves out what happens in namespaces that the listener may not read.
        """
        queue: asyncio.Queue[Message | None] = asyncio.Queue(QUEUE)
        kept = list(self._kept)
        self._listeners.add(queue)
        getting = asyncio.ensure_future(queue.get())
        try:
            yield b"retry: 2000\n\n"
            if after is not None and after < self._since:
                yield Message(0, "reset", b"{}").encode()
            elif after is not None:
                for message in kept:
                    if message.id > after and message.seen(limit):
                        yield message.encode()
            while not self._closed:
                # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with a
                # message, and the stream of a client that is gone, or of a revoked token, goes on.
                await asyncio.wait({getting}, timeout=BEAT)
                if not getting.done():
                    yield b": still here\n\n"
                    continue
                found = getting.result()
                if found is None:
                    return
                getting = asyncio.ensure_future(queue.get())
                if found.seen(limit):
                    yield found.encode()
        finally:
            getting.cancel()
            self._listeners.discard(queue)
