from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from zlib import crc32

import httpx
import psycopg
import pytest

from headwater.server.app import App, ServerSettings
from headwater.server.store import Store, open_store
from tests.forked import ForkedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STORES = ("sqlite", "postgresql")
FREE_DATABASES: list[str] = []


class Process:
    """`headwater server` as a process of its own."""

    def __init__(
        self, store: str, log: Path, *options: str, scheme: str = "http", verify: Path | None = None
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        # Nothing is verified on plain HTTP, and a context for it would cost each question 20 ms of CPU.
        self._verify = ssl.create_default_context(cafile=verify) if verify else False
        self.store = store
        self._log = log
        self._options = options
        self.start()

    def start(self) -> None:
        options = ["--port", str(self.port), "--store", self.store, *self._options]
        environment = {k: v for k, v in os.environ.items() if k != "HEADWATER_TOKEN"}
        self.process = ForkedServer(options, self._log, environment)
        try:
            self._wait()
        except BaseException:
            self.kill()  # nobody else knows of it yet
            raise

    def _wait(self) -> None:
        deadline = time.monotonic() + 300
        while not self._ready():
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def _ready(self) -> bool:
        try:
            found = httpx.get(f"{self.url}/api/v2/health", verify=self._verify)
        except httpx.HTTPError:
            return False
        return found.status_code == 200

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(store: str | None = None, *options: str, **how: Any) -> Process:
        url = store or f"sqlite:///{tmp_path}/headwater.db"
        log = tmp_path / f"server{len(started)}.log"
        started.append(Process(url, log, *options, **how))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


class Client:
    """An app answering on a loop of its own, called like a plain function."""

    def __init__(self, store: Store, settings: ServerSettings | None = None) -> None:
        self.app = App(store, settings)
        self.store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://server")

    @property
    def loop_thread(self) -> int:
        """The thread that answers."""
        assert self._thread.ident is not None
        return self._thread.ident

    def call(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        request = self._http.request(method, path, **kwargs)
        return asyncio.run_coroutine_threadsafe(request, self._loop).result(120)

    def call_together(
        self, calls: Sequence[tuple[str, str, bytes | None, dict[str, str]]]
    ) -> list[httpx.Response]:
        """Several calls at once: of each its method, address, body and headers."""

        async def gathered() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self._http.request(m, p, content=b, headers=h) for m, p, b, h in calls)
            )

        return asyncio.run_coroutine_threadsafe(gathered(), self._loop).result(600)

    def get(self, path: str, **query: Any) -> Any:
        response = self.call("GET", path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, *events: dict[str, Any]) -> None:
        for event in events:
            response = self.call("POST", "/api/v1/lineage", content=json.dumps(event))
            assert response.status_code == 201, response.text

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.app.close(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/headwater.db"
        return
    # A new database takes half a second, an emptied one a tenth of it; a module that looks into the
    # database's files asks for new ones.
    anew = getattr(request.module, "NEW_DATABASES", False)
    postgres = request.getfixturevalue("postgres")
    url = FREE_DATABASES.pop() if FREE_DATABASES and not anew else postgres.database()
    yield url
    if not anew:
        empty(url)
        FREE_DATABASES.append(url)


def empty(url: str) -> None:
    others = (
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"{others} and pid <> pg_backend_pid()")
        connection.execute("drop schema public cascade")
        connection.execute("create schema public")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def client(store_url: str) -> Iterator[Client]:
    found = Client(open_store(store_url))
    yield found
    found.close()


def path(*parts: str) -> str:
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def job_url(name: str, *rest: str, namespace: str = "jobs") -> str:
    return path("namespaces", namespace, "jobs", name, *rest)


def dataset_url(name: str, *rest: str, namespace: str = "s3://lake") -> str:
    return path("namespaces", namespace, "datasets", name, *rest)


# Other folders choose their cases themselves.
HERE = (Path(__file__).parent, Path(__file__).parents[2] / "security")
# So many cases of a test are run by the lanes of `make test`.
CASES = 2


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    stores: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        store = parameters.get("store_url")
        names = getattr(item, "fixturenames", [])
        # The plug-in starts what the collected tests name, so the database is named where it is used.
        if store == "postgresql" and "postgres" not in names:
            names.append("postgres")
        if (
            item.get_closest_marker("full") is None
            and parameters
            and set(HERE) & set(item.path.parents)
        ):
            case = item.nodeid.replace(store, "") if store else item.nodeid
            stores.setdefault(case, {})[store or ""] = item
    # A case runs on either store in the quick run, about half of them on each, and on both in the full one.
    # Of a test with several cases the lanes of `make test` take the first two, on different stores: a new
    # case is tried by naming its file.
    seen: Counter[str] = Counter()
    for name, found in stores.items():
        test = name.partition("[")[0]
        chosen = (crc32(test.encode()) + seen[test]) % len(STORES)
        left = [] if len(found) < len(STORES) else [found[STORES[1 - chosen]]]
        if seen[test] >= CASES and os.environ.get("HEADWATER_TESTS") == "test":
            left = list(found.values())
        for item in left:
            item.add_marker(pytest.mark.full)
        seen[test] += 1
