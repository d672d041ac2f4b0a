"""The newcomer's first command, whole: `headwater demo --once`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import psutil
import pytest

from headwater.connect.services.kafka import KafkaAdmin
from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.demo.connectors import Shop
from headwater.lab.demo.row_counts import RowCounter
from headwater.lab.demo.run import STREAMS
from headwater.lab.demo.verdict import EDGES, Judge
from headwater.lab.home import Home
from headwater.lab.lab import LAKE, Lab
from headwater.lab.services.logins import kafka_client
from headwater.lab.services.s3 import bucket_folder
from headwater.lake.tables import UNIQUE
from headwater.lineage.naming import hive_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.demo.lineage_client import LineageClient


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "demo")
    yield made
    made.down()


SERVER_PAGES = ("/api/v2/overview", "/api/v2/map", "/api/v2/connectors")
# What a browser gets, and what fills it: every setting, and the plans of the queries.
SPARK_PAGES = ("/environment/", "/SQL/", "/StreamingQuery/")
SPARK_ANSWERS = ("/environment", "/sql?details=true&planDescription=true&length=50")


class Pages(threading.Thread):
    """What the pages of the lineage server and of the streams show, each as it was seen last."""

    def __init__(self, home: Path) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, bytes] = {}
        self._home = home
        self._over = threading.Event()
        self._http = httpx.Client(trust_env=False, timeout=30, follow_redirects=True)

    def run(self) -> None:
        while not self._over.wait(3):
            # A home that is only being made; a Spark that says on every page that it is starting.
            with suppress(HeadwaterError, ValueError):
                self._look(Home(self._home))

    def _look(self, home: Home) -> None:
        settings = home.settings
        token = {"authorization": f"Bearer {settings.logins.server}"} if settings.secure else {}
        for path in SERVER_PAGES:
            self._get("", settings.ports.get("server"), path, token)
        for stream in STREAMS:
            port = settings.ports.get(f"{stream}-ui")
            for path in SPARK_PAGES:
                self._get(stream, port, path)
            for one in json.loads(self._get(stream, port, "/api/v1/applications") or b"[]"):
                for path in SPARK_ANSWERS:
                    self._get(stream, port, f"/api/v1/applications/{one['id']}{path}", called=path)

    def _get(
        self,
        service: str,
        port: int | None,
        path: str,
        headers: dict[str, str] | None = None,
        called: str = "",
    ) -> bytes | None:
        with suppress(httpx.HTTPError):
            answer = self._http.get(f"http://127.0.0.1:{port or 1}{path}", headers=headers)
            if answer.is_success:
                self.seen[f"{service}{called or path}"] = answer.content
                return answer.content
        return None

    def stop(self) -> dict[str, bytes]:
        """Each page by its path, that of a stream with its name before it."""
        self._over.set()
        self.join()
        return self.seen


class Played(NamedTuple):
    """What a demo printed, and what its pages showed meanwhile."""

    printed: str
    pages: dict[str, bytes]


def play(lab: Lab, folder: Path, *options: str) -> Played:
    """Run the demo to its verdict, and see that nothing of it is left and that all of it is right."""
    home = lab.home.root
    pages = Pages(home)
    pages.start()
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "demo", "--once", "--home", str(home), *options],
        cwd=folder,
        env={**os.environ, "CI": "true"},
        capture_output=True,
        text=True,
        timeout=1440,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    verdict = json.loads((folder / "demo-verdict.json").read_text())
    assert verdict["ok"]
    assert verdict["missing"] == []
    assert len(verdict["jobs"]) == 8
    assert len(verdict["columns"]) >= 7
    assert {one["what"].split(":")[0].rpartition(" ")[2] for one in verdict["impact"]} == {
        "breaks",
        "changes",
        "rows",
        "carries",
        "unknown",
    }
    assert process.find(home) == {}
    assert not [p for p in process.strays(home) if p.status() != psutil.STATUS_ZOMBIE]
    found = Played(done.stdout + done.stderr, pages.stop())
    spark = {f"{name}{path}" for name in STREAMS for path in (*SPARK_PAGES, *SPARK_ANSWERS)}
    assert found.pages.keys() >= {*SERVER_PAGES, *spark}
    for stream in STREAMS:
        assert b"spark.app.name" in found.pages[f"{stream}/environment/"]
        assert f"The page of {stream}: http://127.0.0.1:" in found.printed

    # The archive has a folder for each topic, and something in both.
    archive = bucket_folder(lab.home, Home(home).settings.archive) / "topics"
    sizes = {
        one.name: sum(file.stat().st_size for file in one.rglob("*.avro"))
        for one in archive.iterdir()
    }
    assert sizes.keys() == {"orders", "bids"}
    assert all(sizes.values()), sizes

    lab.up(["server"])
    judge = Judge(lab.context)
    assert judge.running() == []
    # No story was played, so nothing changed its columns; and nothing stands beside the pipeline.
    changes = judge.lineage.get("/api/v2/overview")["changes"]
    assert [one for one in changes if one["change"] == "schema"] == []
    used = {d for _, inputs, outputs in EDGES for d in (*inputs, *outputs)}
    spaces = {judge.lineage.name(d)[0] for d in used}
    beside = with_datasets(judge.lineage) ^ spaces
    # The lake's view has no files of its own, so it stands in the namespace of its catalog.
    view = {f"lineage.{UNIQUE}"} if "--lake" in options else set()
    assert {name for space in beside for name in listed(judge.lineage, space)} == view
    assert beside <= with_datasets(judge.lineage)
    return found


@pytest.mark.timeout(1500)
def test_the_whole_pipeline_is_one_graph_and_every_run_ends(lab: Lab, tmp_path: Path) -> None:
    play(lab, tmp_path)


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_the_same_pipeline_on_a_hive_metastore(lab: Lab, tmp_path: Path) -> None:
    play(lab, tmp_path, "--catalog", "hive")
    lab.up(["catalog"])
    judge = Judge(lab.context)

    # Every job that touches a table names it alike, and creating one leaves no other name behind.
    tables = {"orders_landing", "bids", "orders", "supplier_stats"}
    used = {d for _, inputs, outputs in EDGES for d in (*inputs, *outputs)}
    assert {judge.lineage.name(d) for d in used if d.startswith("warehouse ")} == {
        ("s3://warehouse", f"hive/{table}") for table in tables
    }
    assert listed(judge.lineage, "s3://warehouse") == {f"hive/{table}" for table in tables}
    metastore = hive_namespace(lab.env()["HMS_ENDPOINT"])
    for table in tables:
        found = judge.lineage.dataset(f"{metastore} default.{table}")
        assert (found["namespace"], found["name"]) == ("s3://warehouse", f"hive/{table}")

    catalog = RowCounter(lab.context, "").catalog
    for table in tables:
        kept = catalog.load_table(f"default.{table}")
        assert kept.location() == f"s3://warehouse/hive/{table}"
        assert [str(field.transform) for field in kept.spec().fields] == ["day"]
        assert kept.properties["write.metadata.previous-versions-max"] == "3"


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_the_lake_beside_it_answers_as_the_server_does(lab: Lab, tmp_path: Path) -> None:
    play(lab, tmp_path, "--lake")
    verdict = json.loads((tmp_path / "demo-verdict.json").read_text())
    assert [item["seen"] for item in verdict["lake"]] == [True]
    lab.up(["server"])
    judge = Judge(lab.context)
    assert judge.running() == []
    # The lake reports its own lineage: what it reads, and the tables it writes.
    own = [job for job in judge.lineage.listed() if job["name"].startswith(LAKE)]
    read = {one["name"] for job in own for one in job["inputs"]}
    written = {one["name"] for job in own for one in job["outputs"]}
    assert "openlineage.events" in read
    assert "lineage/events" in written


class CommandLines(threading.Thread):
    """Every command line that a process on this machine has while it watches."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[bytes] = set()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.3):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    self.seen.add(path.read_bytes())

    def stop(self) -> set[bytes]:
        self._over.set()
        self.join()
        return self.seen


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="has no /proc")
def test_the_same_pipeline_behind_logins_tells_nobody_a_secret(lab: Lab, tmp_path: Path) -> None:
    lines = CommandLines()
    lines.start()
    played = play(lab, tmp_path, "--secure")
    places: dict[str, bytes] = {
        "command lines": b"\0".join(lines.stop()),
        "output": played.printed.encode(),
        **played.pages,
    }

    # Started again, it still asks for logins.
    lab.up(["server", "connect", "registry"])
    judge = Judge(lab.context)
    assert_closed(lab)
    lines = CommandLines()
    lines.start()
    records = every_event(judge.lineage)
    connectors = Shop(lab.context).http.get("/connectors?expand=info&expand=status")
    places |= {"more command lines": b"\0".join(lines.stop()), "Connect": connectors.content}
    places |= {"events": json.dumps(records).encode()}
    lab.down()

    settings = lab.home.settings
    secrets = [settings.s3_secret_key, settings.postgres_password]
    secrets += [value for value in msgspec.structs.asdict(settings.logins).values() if value]
    assert len(secrets) == 7
    assert b"org.apache.kafka.connect.cli.ConnectDistributed" in places["command lines"]
    assert len(records) > 30
    # Two places may hold secrets, and only their owner can read them.
    home = lab.home.root
    private = [home / "lab.json", *(file for file in (home / "conf").rglob("*") if file.is_file())]
    assert not [file for file in private if file.stat().st_mode & 0o077 and held(file, secrets)]
    public = {file for file in tmp_path.rglob("*") if file.is_file()} - set(private)
    assert home / "logs" / "connect.log" in public
    assert not [file for file in public if held(file, secrets)]
    for place, content in places.items():
        assert not [secret for secret in secrets if secret.encode() in content], place


def held(file: Path, secrets: list[str]) -> bool:
    """Whether a file holds a secret; PostgreSQL's files belong to another user, whom root may read."""
    content = file.read_bytes()
    return any(secret.encode() in content for secret in secrets)


def assert_closed(lab: Lab) -> None:
    """Without a login there is no way in."""
    env = lab.env()
    for url in (env["CONNECT_URL"], f"{env['REGISTRY_URL']}/subjects", judge_url(env)):
        for login in (None, ("lab", "wrong")):
            answer = httpx.get(url, auth=login, trust_env=False)
            assert answer.status_code == 401, url
    for wrong in ({}, {**kafka_client(lab.context), "sasl.password": "wrong"}):
        kafka = KafkaAdmin({"bootstrap.servers": env["BOOTSTRAP"], **wrong})
        assert kafka.cluster is None
    # Who reports lineage does not read it.
    key = {"authorization": f"Bearer {env['OPENLINEAGE_API_KEY']}"}
    assert httpx.get(judge_url(env), headers=key, trust_env=False).status_code == 403


def judge_url(env: dict[str, str]) -> str:
    return f"{env['OPENLINEAGE_URL']}/api/v1/namespaces"


def every_event(lineage: LineageClient) -> list[Any]:
    """All that was reported."""
    found: list[Any] = []
    page: dict[str, Any] = {"next": 0, "more": True}
    while page["more"]:
        page = lineage.get("/api/v2/events", limit=1000, after=page["next"])
        found += page["records"]
    return found


def listed(lineage: LineageClient, namespace: str) -> set[str]:
    """Names of the datasets that the server has in a namespace, without other names of datasets elsewhere.

    The Iceberg sink has a table's name in its catalog alone until the table is there, which on a busy
    machine is behind the first poll.
    """
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/datasets"
    found = {dataset["name"] for dataset in lineage.get(path, limit=1000)["datasets"]}
    aliases = lineage.get("/api/v2/aliases", limit=1000)["aliases"]
    names = [one["alias"] for one in aliases]
    return found - {one["name"] for one in names if one["namespace"] == namespace}


def with_datasets(lineage: LineageClient) -> set[str]:
    """The namespaces in which the server has datasets."""
    spaces = [one["name"] for one in lineage.get("/api/v1/namespaces", limit=1000)["namespaces"]]
    return {space for space in spaces if listed(lineage, space)}
