"""Every command on the pages is run, here or where a table says; what a page shows of an answer is true.

Here they meet servers with recorded events and a Connect that is none. What needs the lab, Spark or a
broker is run by the tests that are named. Few are not run; `NOT_RUN` says why.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from scripts import site

import headwater
from headwater.cli.main import _run
from headwater.emit import destinations
from headwater.emit.journal import REFUSED_FILE
from tests.integration.demo.tutorial import steps
from tests.unit.cli.test_outbox import fill

from .reader import Line, Reader, alike, lines, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in site.sources().values()
    if path.suffix == ".md"
}
FOLLOWED = {
    "docs/labs/1-connect.md": "tests/integration/demo/test_tutorials.py",
    "docs/labs/2-end-to-end.md": "tests/integration/demo/test_tutorials.py",
}
"""Pages that are followed as a whole elsewhere."""
ELSEWHERE = {
    r"make demo$": {
        "Makefile": "headwater demo ",
        "tests/integration/demo/test_demo.py": '"headwater", "demo", "--once"',
    },
    r"headwater lab story outage (--seconds) (20)": {
        "tests/integration/stories/test_stories.py": r'["\1", "\2"] if name == "outage"',
    },
    r"headwater lab story (\S+)(?: --keep)?$": {
        "tests/integration/stories/test_stories.py": r'"\1"',
        "tests/unit/lab/test_stories.py": "keep=True",
    },
    r"headwater lab (up|down|status|logs|reset)": {
        "tests/integration/lab/test_life.py": r'("\1", ',
    },
    r"headwater spark run": {
        "tests/integration/spark/test_one_of_each.py": '"headwater", "spark", "run"',
    },
    r'JARS=|eval .* --home /tmp/shop|spark-submit --master "\$SPARK_MASTER"': {
        "tests/integration/pipelines/test_cluster.py": '"docs" / "deploy.md"',
    },
    r"headwater server (--forward-kafka)": {
        "tests/integration/server/test_forward.py": r'launch(None, "--no-page", "\1"',
    },
    r"headwater (lake|trace|diff|audit) .*(prod)": {
        "tests/integration/lake/test_page.py": '"docs" / "lake.md"',
    },
    r"dbt-ol build": {
        "tests/integration/neighbours/test_at_once.py": '"dbt-ol", "build"',
    },
    r"make check-dist && docker": {
        "Makefile": "scripts.check_wheel",
        "tests/integration/demo/test_wheel.py": '"scripts.check_wheel", "--jvm"',
        ".github/workflows/ci.yml": "docker build -f deploy/Dockerfile --target",
    },
    r"npm run (check|build)": {"Makefile": r"npm run --silent \1"},
    r"npm test|npm run test:browser": {
        "web/package.json": '"vitest run --config vitest.config.ts"',
        "tests/browser/test_page.py": 'vitest.results("vitest.config.ts")',
    },
}
"""Commands that others run, with the lab, Spark or Node: where, and the text there that does."""
NOT_RUN = {
    r"git clone|npm ci|npm run (dev|pictures)|HEADWATER_LAB_HOME=": "a developer's own tree",
    r"make (setup|unit|check test|check$)": "what runs the tests cannot be one of them",
    r"pip install|python -m venv env": "changes the environment; `make check-dist` installs the wheel",
    r"docker|sudo|systemctl|kubectl": "no containers, root or cluster here",
    r"spark-submit --(master (yarn|k8s|spark:)|packages)": "no such cluster, no repository of jars",
    r"export (BOOTSTRAP|ICEBERG_CATALOG_NAME|OPENLINEAGE_URL=https)": "for the clusters above",
}
"""Commands for what no test has, and why; what they name is still held to exist."""
CODES = {
    "headwater why bi.publc.supplier_stat": {4},
    "headwater impact shop.public.orders --drop price": {5},
    "headwater doctor": {0, 6},
    "headwater audit verify --store demo.db": {0, 5},
}
"""Exit codes other than 0; which of two it is, the page asks with `echo $?`."""
DEMO = ("page/demo.ndjson",)
ORDERS = ("server/orders-pipeline.ndjson",)
CONNECTOR = {
    "name": "orders-sink",
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "topics": "orders",
    "file": "/data/orders.txt",
}
AVRO = {
    "type": "record",
    "name": "orders",
    "fields": [{"name": "price", "type": "double"}],
}


def followed() -> set[str]:
    """The commands of pages that are followed as a whole."""
    return {
        command.strip()
        for page in FOLLOWED
        for step in steps(PAGES[page])
        for command in step.commands.splitlines()
    }


def here(page: str) -> list[Line]:
    """The commands of a page that are run here."""
    if page in FOLLOWED:
        return []
    others, there = (*ELSEWHERE, *NOT_RUN), followed()
    return [
        line
        for line in lines(PAGES[page].read_text())
        if line.command not in there
        and not any(re.match(pattern, line.command) for pattern in others)
    ]


def all_lines() -> set[str]:
    pages = set(PAGES) - set(FOLLOWED)
    return {line.command for page in pages for line in lines(PAGES[page].read_text())}


def test_what_is_run_elsewhere_is_run_there() -> None:
    told = all_lines()
    for pattern, places in ELSEWHERE.items():
        met = [found for command in told if (found := re.match(pattern, command))]
        assert met, f"{pattern}: on no page"
        for path, text in places.items():
            there = (ROOT / path).read_text()
            for found in met:
                assert found.expand(text) in there, f"{path} does not run {found.string}"
    for path in FOLLOWED.values():
        assert (ROOT / path).is_file(), path
    with_commands = {page for page in PAGES if here(page)}
    expected = {f"docs/{one}.md" for one in SCENES} | {"README.md"}
    assert with_commands == expected, "a page with commands needs a scene"
    assert sum(len(here(page)) for page in PAGES) > 60


def test_what_is_not_run_names_what_there_is() -> None:
    told = all_lines()
    for pattern in NOT_RUN:
        assert any(re.match(pattern, command) for command in told), f"{pattern}: on no page"
    project = msgspec.toml.decode((ROOT / "pyproject.toml").read_text())["project"]
    scripts = json.loads((ROOT / "web/package.json").read_text())["scripts"]
    releases = {path.stem for path in (FIXTURES / "server" / "releases").glob("*.db")}
    there: dict[str, Callable[[str], bool]] = {
        r"((?:deploy|pipelines|web)/[\w./-]*\w)": lambda path: (ROOT / path).is_file(),
        r"headwater\[([\w-]+)\]": lambda extra: extra in project["optional-dependencies"],
        r"headwater\[\w+\]==([\w.]+)": lambda version: version in releases,
        r"headwater-server:([\w.]+)": lambda version: version == headwater.__version__,
        r"npm run (\S+)": lambda script: script in scripts,
    }
    for named, is_there in there.items():
        found = {one for command in told for one in re.findall(named, command)}
        assert found, named
        assert [one for one in found if not is_there(one)] == [], named


@pytest.fixture
def worker() -> Iterator[str]:
    """A Connect with one sink."""
    part = {"state": "RUNNING", "worker_id": "w:8083"}
    task = {"connector": "orders-sink", "task": 0}
    info = {"name": "orders-sink", "config": CONNECTOR, "tasks": [task], "type": "sink"}
    status = {"name": "orders-sink", "connector": part, "tasks": [{"id": 0, **part}], "type": "sink"}  # fmt: skip
    answers = {
        "/": {"version": "4.3.1", "commit": "", "kafka_cluster_id": "abc"},
        "/connectors": {"orders-sink": {"info": info, "status": status}},
        "/connectors/orders-sink": info,
        "/connectors/orders-sink/status": status,
        "/connectors/orders-sink/topics": {"orders-sink": {"topics": ["orders"]}},
    }

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found: Any = answers.get(self.path.partition("?")[0])
            raw = json.dumps(found if found is not None else {"error_code": 404}).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Stage:
    """What stands ready for a reader: stores with recorded events, servers on them."""

    def __init__(self, reader: Reader, worker: str, database: Callable[[], str]) -> None:
        self.reader = reader
        self.worker = worker
        self.database = database

    def store(self, url: str, *files: str) -> str:
        for file in files:
            words = ["events", "import", str(FIXTURES / file), "--store", url]
            assert _run(words, debug=False) == 0
        return url

    def server(self, store: str, *files: str, until: int = 0) -> None:
        """A server with these events, asked by default; `until` its log has as many records."""
        url = self.reader.serve("--store", self.store(store, *files))
        self.reader.say(f"export OPENLINEAGE_URL={url}")
        wait(lambda: httpx.get(f"{url}/api/v2/log/head").json()["seq"] >= until)


@pytest.fixture
def stage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    worker: str,
    postgres: Any,
) -> Iterator[Stage]:
    replaced = {
        "http://connect:8083": worker,
        # Nobody listens there: an agent says so and goes on.
        "--kafka-bootstrap kafka:9092": "--kafka-bootstrap 127.0.0.1:1",
        "http://registry:8081": "http://127.0.0.1:1",
        "/var/lib/headwater": str(tmp_path),
        "/etc/headwater": str(tmp_path),
        "0.0.0.0": "127.0.0.1",
    }
    reader = Reader(tmp_path, monkeypatch, capsys, replaced)
    yield Stage(reader, worker, postgres.database)
    reader.close()


Hooks = dict[str, "Callable[[], object]"]


def readme(stage: Stage) -> Hooks:
    stage.server("orders.db", *ORDERS)
    return {}


def answers(stage: Stage) -> Hooks:
    stage.server("served.db", *DEMO, until=101)

    def copied() -> None:
        for file in Path().glob("demo.db*"):  # a write-ahead log would be read into the copy
            file.unlink()
        assert _run(["store", "backup", "demo.db", "--store", "served.db"], debug=False) == 0

    copied()
    return {
        "headwater audit head": copied,
        "headwater doctor": lambda: stage.server(
            "misaligned.db", *DEMO, "page/misaligned.ndjson", until=103
        ),
        "headwater impact": lambda: stage.server("orders.db", *ORDERS),
    }


def api(stage: Stage) -> Hooks:
    stage.server("api.db")
    return {}


ALERT_RULES = """
[channels.oncall]
url = "https://alerts.example/hook"

[rules.failures]
when = "run-failed"
to = ["oncall"]
"""


def configuration(stage: Stage) -> Hooks:
    text = PAGES["docs/configuration.md"].read_text()
    found = re.search(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    shown = found[1]
    for path in re.findall(r'"(/[^"]+)"', shown):  # files that the page's reader has
        file = stage.reader.folder / Path(path).name
        file.write_text(ALERT_RULES if file.suffix == ".toml" else "")
        shown = shown.replace(path, str(file))
    (stage.reader.folder / "headwater.toml").write_text(shown)
    return {}


def connect(stage: Stage) -> Hooks:
    Path("sink.json").write_text(json.dumps({"name": "orders-sink", "config": CONNECTOR}))
    Path("orders.avsc").write_text(json.dumps(AVRO))
    return {
        "headwater connect explain": lambda: stage.reader.say(f"export CONNECT_URL={stage.worker}")
    }


def operations(stage: Stage) -> Hooks:
    reader, replaced = stage.reader, stage.reader.replaced
    stage.store("headwater.db", *DEMO)
    Path("tokens").write_text("hunter2-hunter2-hunter2\n")
    replaced["--to postgresql://…"] = f"--to {stage.database()}"
    filled = stage.store(stage.database(), *DEMO)
    replaced["postgresql://headwater@db/headwater"] = replaced["postgresql://…"] = filled

    def emptied() -> None:
        for file in reader.folder.glob("headwater.db*"):
            file.unlink()

    def token() -> None:
        found = json.loads(reader.say("headwater token list --json"))
        replaced["3f9a1c22"] = found[0]["id"]

    def customers() -> None:
        told = [
            {
                "eventType": "COMPLETE",
                "eventTime": "2026-01-01T00:00:00Z",
                "run": {"runId": f"0190a5b6-3b1e-7000-8000-00000000000{n}"},
                "job": {"namespace": namespace, "name": "load_customers"},
                "outputs": [{"namespace": "postgres://db:5432", "name": "shop.public.customers"}],
            }
            for n, namespace in enumerate(("shop", "old-team"))
        ]
        Path("customers.ndjson").write_text("".join(f"{json.dumps(one)}\n" for one in told))
        for store in ("purged.db", "headwater.db"):
            stage.store(store, str(reader.folder / "customers.ndjson"))
        stage.server("purged.db")

    def refused(folder: str) -> None:
        file = reader.folder / "state" / "headwater" / "outbox" / folder / REFUSED_FILE
        (to,) = destinations()
        fill(file, to.name, to.shown, "orders", "HTTP 422: job.name")
        found = json.loads(reader.say("headwater outbox list --json"))["refused"]
        replaced["3f9a1c-17"] = found[-1]["id"]

    return {
        "headwater token create spark": reader.close,
        "headwater token revoke": token,
        "headwater store backup lineage": reader.close,
        "headwater store restore before": emptied,
        "headwater purge dataset": customers,
        "headwater outbox list": lambda: refused("0123"),
        "headwater outbox drop": lambda: refused("4567"),
    }


def nothing(_: Stage) -> Hooks:
    return {}


SCENES: dict[str, Callable[[Stage], Hooks]] = {
    "answers": answers,
    "api": api,
    "configuration": configuration,
    "connect": connect,
    "lab": nothing,
    "operations": operations,
    "spark": nothing,
    "guides/neighbours": nothing,
}


PROCESSES = {"connect", "operations", "README"}
"""Pages that start agents and many servers."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full] if name in PROCESSES else [])
        for name in (*SCENES, "README")
    ],
)
def test_a_page_can_be_followed(name: str, stage: Stage) -> None:
    page = "README.md" if name == "README" else f"docs/{name}.md"
    hooks = SCENES.get(name, readme)(stage)
    wrong: list[str] = []
    for line in here(page):
        for start, hook in list(hooks.items()):
            if line.command.startswith(start):
                hook()
                del hooks[start]
        said = stage.reader.say(line.command)
        expected = CODES.get(line.command, {0})
        if stage.reader.code not in expected or (line.answer and not alike(line.answer, said)):
            wrong.append(f"{line.command} ended with {stage.reader.code}:\n{said}")
    assert wrong == [], "\n".join(wrong)
    assert not hooks, "no command of the page needs these"
