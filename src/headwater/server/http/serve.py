"""Starts the server: where it listens, what it refuses, how it stops."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn

from headwater.errors import HeadwaterError, UsageError
from headwater.logs import LogFormat, formatter
from headwater.server.app import App, ServerSettings
from headwater.server.http.event_protocol import protocol_for
from headwater.server.http.hosts import Hosts, is_loopback
from headwater.server.http.log_rate_limit import RateLimitFilter
from headwater.server.store import open_store
from headwater.server.store.database.sqlite import sqlite_path, unopened

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from headwater.lineage.openlineage.events import Limits

__all__ = ["default_store", "read_tokens", "serve"]

log = logging.getLogger("headwater.server")


def default_store() -> str:
    """The SQLite file in the user's data directory."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return f"sqlite:///{Path(base) / 'headwater' / 'headwater.db'}"


def read_tokens(token_file: Path | None) -> list[str]:
    """The tokens given by HEADWATER_TOKEN and by a file with one a line.

    Whoever names a place for tokens wants the server closed: a place without any is an error.
    """
    tokens: list[str] = []
    given = os.environ.get("HEADWATER_TOKEN")
    if given is not None:
        if not given.strip():
            raise UsageError(
                "HEADWATER_TOKEN is set and holds no token", hint="fill it or unset it"
            )
        tokens.append(given.strip())
    if token_file is not None:
        try:
            lines = token_file.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the token file: {error}") from error
        found = [text for line in lines if (text := line.strip()) and not text.startswith("#")]
        if not found:
            raise UsageError(
                f"the token file {token_file} holds no token",
                hint="write one a line, or leave --token-file out",
            )
        tokens += found
    return tokens


class _Server(uvicorn.Server):
    """Ends live streams and hanging questions first: they would keep an ending server for all of its grace time."""

    def __init__(
        self, config: uvicorn.Config, app: App, listening: Callable[[int], None] | None
    ) -> None:
        super().__init__(config)
        self._app = app
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._listening is not None:
            self._listening(self.servers[0].sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.live.close()
        self._app.past.stop()
        await super().shutdown(sockets)


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 5000,
    store: str | None = None,
    settings: ServerSettings | None = None,
    limits: Limits | None = None,
    insecure: bool = False,
    allowed: Sequence[str] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    log_format: LogFormat = LogFormat.TEXT,
    configure: Sequence[Any] = (),
    listening: Callable[[int], None] | None = None,
) -> None:
    """Run the server until a signal stops it; `listening` gets its port once clients can connect."""
    settings = settings or ServerSettings()
    if insecure:
        settings = msgspec.structs.replace(settings, insecure=True)
    _configure_logging(log_format)
    url = store or default_store()
    lock = _lock(url)
    opened = open_store(url, limits=limits)
    app = App(opened, settings)
    app.hosts = Hosts.of(host, allowed)
    if not is_loopback(host) and app.auth.open and not insecure:
        raise UsageError(
            f"{host} is reachable by others and no token is set",
            hint="set HEADWATER_TOKEN or --token-file, run `headwater token create`, or say --insecure",
        )
    for extra in configure:
        extra(app)
    if app.auth.locked:
        log.warning(
            "every token of this store is revoked, so every request is refused: "
            "run `headwater token create`, or start the server with --insecure"
        )
    elif app.auth.warning is not None:
        log.warning("%s:%d: %s", host, port, app.auth.warning)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        proxy_headers=False,  # its own rule believes every program on this machine
        log_config=None,  # its messages go where ours go, masked like them
        log_level="warning",
        server_header=False,
        date_header=False,
        lifespan="on",
        http=protocol_for(app),
        ws="none",
        timeout_graceful_shutdown=10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    # Short turns let the event loop in while the writer is busy.
    sys.setswitchinterval(0.001)
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    try:
        _Server(config, app, listening).run()
    except OSError as error:
        raise HeadwaterError(f"cannot listen on {host}:{port}: {error}") from error
    finally:
        if lock is not None:
            os.close(lock)


def _configure_logging(log_format: LogFormat) -> None:
    handler = logging.StreamHandler()
    handler.addFilter(RateLimitFilter())  # here it holds for every logger, asyncio's too
    handler.setFormatter(formatter(log_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _lock(url: str) -> int | None:
    """Make sure that one server alone writes an SQLite file; PostgreSQL may have several."""
    if not url.startswith("sqlite:"):
        return None
    path = sqlite_path(url)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = path.resolve()  # a link to the file is the same file
        found = path.stat() if path.exists() else None
    except OSError as error:
        raise unopened(path, error) from error
    if found is not None and not stat.S_ISREG(found.st_mode):
        hint = f"name a file in a folder, such as {(path if path.is_dir() else path.parent) / 'headwater.db'}"
        raise UsageError(f"{path} is no file", hint=hint)
    # SQLite keeps a log beside each name, and would lose what the other has.
    if found is not None and found.st_nlink > 1:
        raise UsageError(
            f"{path} has {found.st_nlink} names (hard links)", hint="remove the others"
        )
    try:
        lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise unopened(path, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError(
            f"another server has {path} open",
            hint="stop it, give this one another --store, or use PostgreSQL for several servers",
        ) from None
    return lock
