"""What one connection takes for slow: a client that does not send, never one that waits for its answer."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.server import ServerState

from headwater.server.app import App, ServerSettings
from headwater.server.http.event_protocol import protocol_for
from headwater.server.store import Receipt, open_store

if TYPE_CHECKING:
    from pathlib import Path

QUICK, SLOW = b"GET /quick HTTP/1.1\r\nhost: a\r\n\r\n", b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n"


def test_a_request_that_came_whole_behind_another_has_all_the_time_it_takes(tmp_path: Path) -> None:
    asyncio.run(_pipelined(tmp_path))


async def _pipelined(folder: Path) -> None:
    begun, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(scope: Any, _receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            begun.set()
            await may_answer.wait()
        headers = [(b"content-length", b"0"), (b"x-path", scope["path"].encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    app = App(open_store(f"sqlite:///{folder}/a.db"), ServerSettings(page=False, request_timeout=1))
    config = uvicorn.Config(answer, lifespan="off", log_config=None)
    state, made = ServerState(), protocol_for(app)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: made(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(QUICK + SLOW)
        assert b"x-path: /quick" in await reader.readuntil(b"\r\n\r\n")
        await asyncio.wait_for(begun.wait(), 10)
        (connection,) = app.traffic.connections
        for _ in range(5):
            connection.tick()
        may_answer.set()
        assert b"x-path: /slow" in await reader.readuntil(b"\r\n\r\n")
        for _ in range(5):
            connection.tick()
        assert await reader.read() == b"", "a client that sends nothing more is let go of"
        writer.close()
    await app.close()


KEPT = 5
"""Seconds that uvicorn keeps an idle connection open."""


class Written(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 40000), "sockname": ("127.0.0.1", 5000)})
        self.data = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.data += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0


class AtOnce:
    """A writer that has every event on the disk when it is handed in."""

    def hand_in(self, body: bytes, deliver: Any) -> None:
        deliver([Receipt(len(body))])


def test_an_idle_connection_is_closed_and_one_in_use_is_not(tmp_path: Path) -> None:
    async def run(app: App) -> None:
        made = protocol_for(app)
        config = uvicorn.Config(app, http=made, log_config=None, timeout_keep_alive=KEPT)
        config.load()
        connection, transport = made(config, ServerState(), {}), Written()
        connection.connection_made(transport)
        for _ in range(3):
            connection.data_received(
                b"POST /api/v1/lineage HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
            )
            for _ in range(KEPT):
                connection.tick()
            assert not transport.closed, "the next event may still come"
        assert transport.data.count(b"HTTP/1.1 201 Created") == 3
        assert connection.timeout_keep_alive_task is None, "no timer is set for each event"
        connection.tick()
        assert transport.closed

    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as store:
        app = App(store)
        app._ingest = AtOnce()  # type: ignore[assignment]
        asyncio.run(run(app))
