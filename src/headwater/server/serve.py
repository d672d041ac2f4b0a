"""Starts the server: where it listens, what it refuses, how it stops."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from headwater.errors import HeadwaterError, UsageError
from headwater.server.app import App, Settings
from headwater.server.hosts import Hosts, is_loopback
from headwater.server.protocol import protocol_for
from headwater.server.store import open_store

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

__all__ = ["default_store", "serve"]


def default_store() -> str:
    """The SQLite file in the user's data directory."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return f"sqlite:///{Path(base) / 'headwater' / 'headwater.db'}"


def read_tokens(token_file: Path | None) -> list[str]:
    """The tokens given by HEADWATER_TOKEN and by a file with one a line."""
    tokens = [os.environ.get("HEADWATER_TOKEN", "").strip()]
    if token_file is not None:
        try:
            text = token_file.read_text(encoding="utf-8")
            tokens += [line.strip() for line in text.splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the token file: {error}") from error
    return [token for token in tokens if token and not token.startswith("#")]


class _Server(uvicorn.Server):
    """Ends the live streams first: they would keep an ending server for all of its grace time."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.live.close()
        await super().shutdown(sockets)


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 5000,
    store: str | None = None,
    settings: Settings | None = None,
    insecure: bool = False,
    allowed: Sequence[str] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    configure: Sequence[Any] = (),
) -> None:
    """Run the server until it is told to stop."""
    settings = settings or Settings()
    opened = open_store(store or default_store())
    app = App(opened, settings)
    app.hosts = Hosts.of(host, allowed)
    if not is_loopback(host) and app.gate.open and not insecure:
        raise UsageError(
            f"{host} is reachable by others and no token is set",
            hint="set HEADWATER_TOKEN or --token-file, run `headwater token create`, or say --insecure",
        )
    for extra in configure:
        extra(app)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        lifespan="on",
        http=protocol_for(app),
        timeout_graceful_shutdown=10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    # Short turns let the event loop in while the writer is busy.
    sys.setswitchinterval(0.001)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    try:
        _Server(config, app).run()
    except OSError as error:
        raise HeadwaterError(f"cannot listen on {host}:{port}: {error}") from error
