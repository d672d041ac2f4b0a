"""`headwater` as scripts and people meet it: shapes, exit codes, one-line errors."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
import pytest

import headwater
from headwater.cli import main as program
from headwater.cli.lab import graph
from headwater.cli.output import duration, size
from headwater.connect.commands import inspect
from headwater.connect.services.rest import ConnectRest
from headwater.emit import Outbox
from headwater.lab import ports
from headwater.lab.lab import Lab
from headwater.lab.services import SERVICES, pipeline_streams

if TYPE_CHECKING:
    from collections.abc import Callable

TUTORIAL = {
    "BOOTSTRAP": "127.0.0.1:9092",
    "CONNECT_URL": "http://127.0.0.1:8083",
    "REGISTRY_URL": "http://127.0.0.1:8081/apis/ccompat/v7",
    "OPENLINEAGE_URL": "http://127.0.0.1:5000",
    "OPENLINEAGE_NAMESPACE": "fh-local",
    "HMS_ENDPOINT": "thrift://127.0.0.1:9083",
    "SPARK_MASTER_UI": "http://127.0.0.1:18081",
    "SPARK_HISTORY_URL": "http://127.0.0.1:18080",
    "ICEBERG_CATALOG_NAME": "demo_ib",
    "ICEBERG_WAREHOUSE": "s3://warehouse",
    "ARCHIVE_BUCKET": "fh-dev-bucket",
}
COMMANDS = ["up", "status", "down", "reset", "logs", "fetch", "env"]


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        return self.err.splitlines()[0]

    @property
    def hint(self) -> str:
        return self.err.splitlines()[-1]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `headwater` in this process."""

    def call(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["headwater", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            program.main()
        told = capsys.readouterr()
        return Ran(int(ended.value.code or 0), told.out, told.err)

    return call


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A lab that was asked to run PostgreSQL and S3, neither of which lives; its path is awkward."""
    lab = Lab(tmp_path / "a 'lab' [b] ü")
    with lab.home.created():
        lab.home.settings.wanted = ["s3", "postgres"]
        lab.home.settings.ports |= {"s3": 20001, "postgres": 20002}
        lab.home.save()
    lab.home.log("s3").write_text("starting\nout of luck\n")
    return lab.home.root


def test_version(run: Callable[..., Ran]) -> None:
    assert run("--version") == (0, f"headwater {headwater.__version__}\n", "")
    assert json.loads(run("version", "--json").out)["headwater"] == headwater.__version__


@pytest.mark.parametrize("command", [[], ["lab"], *(["lab", name] for name in COMMANDS)])
def test_every_command_explains_itself(run: Callable[..., Ran], command: list[str]) -> None:
    ran = run(*command, "--help")
    assert ran.code == 0
    assert "Usage: " in ran.out
    assert "--help" in ran.out


def test_the_program_itself_runs() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "from headwater.cli.main import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert ran.stdout.startswith("headwater ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lab", "up", "kafak"], "there is no service 'kafak'"),
        (["lab", "status", "kafak"], "there is no service 'kafak'"),
        (["lab", "down", "kafak"], "there is no service 'kafak'"),
        (["lab", "logs", "kafak"], "there is no service 'kafak'"),
        (["lab", "fetch", "kafak"], "there is no service 'kafak'"),
        (["lab", "up", "--port", "kafka"], "--port kafka: not NAME=PORT"),
        (["lab", "up", "--port", "kafka=x"], "--port kafka=x: not NAME=PORT"),
        (["lab", "up", "--port", "kafka=0"], "--port kafka=0: not NAME=PORT"),
        (["lab", "up", "--port", "kafka=65536"], "--port kafka=65536: not NAME=PORT"),
        (["lab", "up", "--port", "kafka=²"], "--port kafka=²: not NAME=PORT"),
        (["lab", "up", "--port", "kafak=9092"], "no port is called 'kafak'"),
        (["lab", "env", "--format", "xml"], "'xml'"),
        (["lab", "logs", "kafka", "-n", "0"], "'--lines' / '-n'"),
        (["lab", "nothing"], "No such command 'nothing'"),
        (["lab", "up", "--nothing"], "No such option"),
    ],
)
def test_a_wrong_request_is_one_line_a_hint_and_exit_code_2(
    run: Callable[..., Ran], tmp_path: Path, arguments: list[str], said: str
) -> None:
    where = [] if arguments[1] in {"fetch", "nothing"} else ["--home", str(tmp_path / "lab")]
    ran = run(*arguments, *where)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.error.startswith("error: ")
    assert said in ran.error
    assert ran.hint.startswith("hint: ")
    assert "Traceback" not in ran.err


def test_a_lacking_machine_is_exit_code_3(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    ran = run("lab", "up", "--home", tmp_path / "lab")
    assert ran.code == 3
    assert ran.error == f"error: JAVA_HOME is {tmp_path}, but there is no bin/java in it"
    assert "Traceback" not in ran.err


def test_a_traceback_is_shown_only_when_asked_for(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    ran = run("--debug", "lab", "up", "--home", tmp_path / "lab")
    assert ran.code == 3
    assert "Traceback" in ran.err
    assert "error: JAVA_HOME" in ran.err


def test_a_fault_of_our_own_says_so(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("surprise [/] here")

    monkeypatch.setattr(Lab, "status", fail)
    ran = run("lab", "status", "--home", tmp_path / "lab")
    assert ran.code == 1
    assert ran.error == "error: RuntimeError: surprise [/] here"
    assert "--debug" in ran.hint


def test_a_home_that_is_not_a_labs_is_refused(run: Callable[..., Ran], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    for command in ("up", "reset"):
        ran = run("lab", command, "--home", tmp_path)
        assert ran.code == 2, command
        assert "not a lab's" in ran.error
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_home_with_a_colon_is_refused_before_anything_is_made(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = run("lab", "up", "--home", tmp_path / "a:b")
    assert ran.code == 2
    assert "':'" in ran.error
    assert list(tmp_path.iterdir()) == []


def test_status_as_json(run: Callable[..., Ran], home: Path) -> None:
    ran = run("lab", "status", "--json", "--home", home)
    assert ran.code == 1  # two have died
    rows = {row["service"]: row for row in json.loads(ran.out)}
    assert list(rows) == ["kafka", "connect", "registry", "s3", "catalog", "postgres"]
    assert {name: row["state"] for name, row in rows.items() if row["state"] != "stopped"} == {
        "s3": "died",
        "postgres": "died",
    }
    assert rows["s3"]["port"] == 20001
    assert rows["s3"]["log"] == str(home / "logs" / "s3.log")
    assert set(rows["s3"]) == {
        "service",
        "state",
        "port",
        "pid",
        "memory",
        "uptime",
        "version",
        "log",
        "page",
    }


def test_status_as_a_table_shows_the_home_once_and_logs_below_it(
    run: Callable[..., Ran], home: Path
) -> None:
    ran = run("lab", "status", "--home", home)
    assert ran.code == 1
    (row,) = [line for line in ran.out.splitlines() if line.startswith("s3")]
    assert row.split() == ["s3", "died", "20001", "4.1.0", "logs/s3.log"]
    assert ran.out.count(str(home)) == 1
    assert "s3 has died; the end of its log:\n  starting\n  out of luck\n" in ran.err
    assert "headwater lab up" in ran.err


def test_a_pipe_gets_a_service_a_line_however_narrow(
    run: Callable[..., Ran], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(home)
    lab.home.settings.wanted.append("spark-worker-1")
    lab.home.save()
    lab.home.log("spark-worker-1").touch()
    monkeypatch.setenv("COLUMNS", "30")
    told = run("lab", "status", "--home", home).out
    assert [line for line in told.splitlines() if line.endswith(" logs/spark-worker-1.log")]


def test_status_of_no_lab(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run("lab", "status", "--json", "--home", tmp_path / "none")
    assert ran.code == 0
    assert {row["state"] for row in json.loads(ran.out)} == {"stopped"}
    assert not (tmp_path / "none").exists()


def test_env_in_a_shell_is_read_as_it_was_meant(run: Callable[..., Ran], home: Path) -> None:
    told = json.loads(run("lab", "env", "--json", "--home", home).out)
    assert told["HEADWATER_LAB_HOME"] == str(home)
    assert told["S3_ENDPOINT"] == "http://127.0.0.1:20001"
    assert told == json.loads(run("lab", "env", "--format", "json", "--home", home).out)
    for form in ("shell", "dotenv"):
        script = run("lab", "env", "--format", form, "--home", home).out
        # `set -a` makes a plain .env file into exports.
        heard = subprocess.run(
            ["sh", "-c", f"set -a; {script}\nenv"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": os.environ["PATH"]},
        ).stdout.splitlines()
        for name, value in told.items():
            assert f"{name}={value}" in heard, form
    assert shlex.split(script.splitlines()[0]) == [f"HEADWATER_LAB_HOME={home}"]


def test_a_new_lab_may_have_the_ports_and_names_of_the_tutorials(
    run: Callable[..., Ran], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lab.files.fetch.ensure", lambda *_: None)
    monkeypatch.setattr("headwater.lab.lab.Launch.run", lambda _self: None)
    monkeypatch.setattr(ports, "refusal", lambda _port: None)
    fresh = tmp_path / "fresh"
    services = ("kafka", "connect", "registry", "s3", "catalog", "server", "hive", "spark")
    assert run("lab", "up", *services, "--tutorial", "--home", fresh).code == 0
    told = json.loads(run("lab", "env", "--json", "--home", fresh).out)
    assert {name: told[name] for name in TUTORIAL} == TUTORIAL
    assert told["HEADWATER_PAGE"] == "http://127.0.0.1:3000"
    assert Lab(fresh).home.settings.ports["spark-worker-1-ui"] == 18082
    assert run("lab", "up", "--tutorial", "--home", fresh).code == 0  # again, with more services
    # Where something else has that port, the page is at the server's alone.
    monkeypatch.setattr(ports, "is_free", lambda port: port != 3000)
    other = tmp_path / "other"
    assert run("lab", "up", "server", "--tutorial", "--home", other).code == 0
    assert "HEADWATER_PAGE" not in json.loads(run("lab", "env", "--json", "--home", other).out)
    assert run("lab", "up", "server", "--tutorial", "--home", fresh).code == 0
    told = json.loads(run("lab", "env", "--json", "--home", fresh).out)
    assert told["HEADWATER_PAGE"] == "http://127.0.0.1:3000"
    # Likewise where something took it while the lab was down.
    lab = Lab(fresh)
    lab.home.settings.wanted = []
    lab.home.save()
    assert run("lab", "up", "server", "--tutorial", "--home", fresh).code == 0
    assert "HEADWATER_PAGE" not in json.loads(run("lab", "env", "--json", "--home", fresh).out)
    ran = run("lab", "up", "--tutorial", "--home", home)
    assert ran.code == 2
    assert "has names of its own already" in ran.error
    assert json.loads(run("lab", "env", "--json", "--home", home).out)["ARCHIVE_BUCKET"] == "raw"


def test_a_lab_of_the_tutorials_keeps_to_their_ports_for_what_is_started_later(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lab.files.fetch.ensure", lambda *_: None)
    monkeypatch.setattr("headwater.lab.lab.Launch.run", lambda _self: None)
    monkeypatch.setattr(ports, "refusal", lambda _port: None)
    home = tmp_path / "lab"
    chosen = ("--port", "connect=8099", "--port", "s3=18080")
    assert run("lab", "up", "connect", "s3", "--tutorial", *chosen, "--home", home).code == 0
    running = {"connect": psutil.Process(), "kafka": psutil.Process()}
    monkeypatch.setattr("headwater.lab.process.find", lambda _home: running)
    assert run("lab", "up", "agent", "hive", "spark", "--home", home).code == 0
    found = Lab(home).home.settings.ports
    assert found["connect"] == 8099
    assert {name: found[name] for name in ("kafka", "registry", "server", "page", "hive")} == {
        "kafka": 9092,
        "registry": 8081,
        "server": 5000,
        "page": 3000,
        "hive": 9083,
    }
    assert (found["spark-ui"], found["spark-worker-1-ui"]) == (18081, 18082)
    assert found["spark-history"] in ports.CHOICE  # its own is the S3 server's here
    # Nor does the flag, given again, take a service from the port that was chosen for it.
    assert run("lab", "up", "agent", "--tutorial", "--home", home).code == 0
    assert Lab(home).home.settings.ports == found
    # Another lab has free ports, as ever.
    assert run("lab", "up", "kafka", "--home", tmp_path / "other").code == 0
    assert Lab(tmp_path / "other").home.settings.ports["kafka"] in ports.CHOICE


def test_a_new_lab_may_keep_its_tables_in_hive(
    run: Callable[..., Ran], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lab.files.fetch.ensure", lambda *_: None)
    monkeypatch.setattr("headwater.lab.lab.Launch.run", lambda _self: None)
    fresh = tmp_path / "fresh"
    assert run("lab", "up", "catalog", "--catalog", "hive", "--tutorial", "--home", fresh).code == 0
    assert Lab(fresh).home.settings.hive
    told = json.loads(run("lab", "env", "--json", "--home", fresh).out)
    assert told["HMS_ENDPOINT"] == "thrift://127.0.0.1:9083"
    assert told["HIVE_WAREHOUSE"] == told["ICEBERG_WAREHOUSE"]
    ran = run("lab", "up", "--catalog", "hive", "--home", home)
    assert ran.code == 2
    assert "keeps its tables without Hive already" in ran.error


def test_up_says_where_engines_are_watched(
    run: Callable[..., Ran], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lab.files.fetch.ensure", lambda *_: None)
    monkeypatch.setattr("headwater.lab.lab.Launch.run", lambda _self: None)
    monkeypatch.setattr("headwater.lab.lab.is_ready", lambda *_: True)
    services = ("supplier-stats", "iceberg-ingestion", "spark-history")
    alive = dict.fromkeys((*services, "kafka"), psutil.Process())
    monkeypatch.setattr("headwater.lab.process.find", lambda _home: alive)
    told = run("lab", "up", *services, "--home", home).out
    port = Lab(home).home.settings.ports
    pages = {
        "supplier-stats": f"http://127.0.0.1:{port['supplier-stats-ui']}",
        "iceberg-ingestion": f"http://127.0.0.1:{port['iceberg-ingestion-ui']}",
        "spark-history": f"http://127.0.0.1:{port['spark-history']}",
    }
    for service, page in pages.items():
        assert f"The page of {service}: {page}\n" in told
    assert "The page of kafka" not in told
    rows = json.loads(run("lab", "status", "--json", "--home", home).out)
    assert {row["service"]: row["page"] for row in rows if row["page"]} == pages


def test_env_of_a_lab_that_was_never_started(run: Callable[..., Ran], tmp_path: Path) -> None:
    ran = run("lab", "env", "--home", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "headwater lab up" in ran.hint


def test_commands_on_connectors_need_no_more_than_env_prints(
    run: Callable[..., Ran], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a lab with logins they ask Kafka and the registry too, and leave the agent their notes."""
    lab = Lab(home)
    lab.home.settings.secure = True
    lab.home.settings.wanted = ["kafka", "connect", "registry", "agent"]
    lab.home.save()
    monkeypatch.setattr("headwater.lab.services.connect.plugin_path", lambda *_, **__: "")
    SERVICES["connect"].prepare(lab.context)
    for name, value in json.loads(run("lab", "env", "--json", "--home", home).out).items():
        monkeypatch.setenv(name, value)
    asked: list[Any] = []

    def answered(config: object, *name: str) -> tuple[()] | tuple[dict[str, str], list[str]]:
        asked.append(config)
        return ({}, []) if name else ()

    monkeypatch.setattr(inspect, "connector_rows", answered)
    monkeypatch.setattr(inspect, "derive_connector", answered)
    assert run("connect", "list").code == 0
    assert run("connect", "explain", "orders-source", "--json").code == 0
    logins = lab.home.settings.logins
    for config in asked:
        assert config.kafka["sasl.password"] == logins.kafka
        assert config.registry.password == logins.registry
    assert len(asked) == 2

    monkeypatch.setattr(inspect, "require", lambda *_: None)
    monkeypatch.setattr(ConnectRest, "act", lambda *_: None)
    command = SERVICES["agent"].command(lab.context).argv
    state = command[command.index("--state") + 1]
    Path(state).parent.mkdir(parents=True)
    (agent := Outbox(state)).lead()
    assert run("connect", "restart", "orders-source").code == 0
    notes = agent.notes(f"order/{lab.context.url('connect')}")
    assert [json.loads(note)[2] for note in notes] == ["restarting", "restart"]
    agent.close()


class Replaced(Exception):
    """The command became the program, with this environment."""

    def __init__(self, _path: str, _argv: list[str], env: dict[str, str]) -> None:
        super().__init__()
        self.env = env


@pytest.fixture
def started(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, str]]:
    """The environment in which `headwater lab run` starts a program."""
    program_file = tmp_path / "job.py"
    program_file.write_text("")
    lab = Lab(home)
    lab.home.settings.wanted.append("server")
    lab.home.save()
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)

    def replaced(*words: Any) -> None:
        raise Replaced(*words)

    monkeypatch.setattr("headwater.lab.files.fetch.ensure", lambda *_: None)
    monkeypatch.setattr(os, "execve", replaced)

    def call(program: object = program_file, **given: str) -> dict[str, str]:
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Replaced) as ended:
            graph.run([str(program)], home)
        return ended.value.env

    return call


def test_a_program_gets_what_env_prints(
    started: Callable[..., dict[str, str]], run: Callable[..., Ran], home: Path
) -> None:
    env = started(S3_ENDPOINT="http://other", HEADWATER_LAB_HOME="/other")
    told = json.loads(run("lab", "env", "--json", "--home", home).out)
    assert {name: env.get(name) for name in told} == told
    assert told["OPENLINEAGE_NAMESPACE"] == "shop"
    assert told["PGPORT"] == "20002"
    assert Path(told["HEADWATER_PIPELINES"], "orders.py").is_file()


def test_a_program_reports_where_its_user_says(started: Callable[..., dict[str, str]]) -> None:
    mine = {
        "OPENLINEAGE_URL": "https://lineage.example.org",
        "OPENLINEAGE_NAMESPACE": "mine",
        "OPENLINEAGE_API_KEY": "k",
        "OPENLINEAGE_DISABLED": "true",
        "HEADWATER_STATE_DIR": "/state",
        "HEADWATER_WATCHDOG": "0",
        "INPUT_TOPIC": "mine",
    }
    env = started(**mine)
    assert {name: env[name] for name in mine} == mine
    assert env["S3_ENDPOINT"] == "http://127.0.0.1:20001"


def test_a_program_gets_the_token_of_producers_and_for_the_labs_own_server_only(
    started: Callable[..., dict[str, str]], home: Path
) -> None:
    lab = Lab(home)
    lab.home.settings.secure = True
    lab.home.settings.logins.producer = "hw_lab"
    lab.home.settings.logins.server = "hw_everything"
    lab.home.save()
    env = started(HEADWATER_TOKEN="hw_everything")
    assert env["OPENLINEAGE_API_KEY"] == "hw_lab"
    assert "hw_everything" not in env.values()
    own = lab.env()["OPENLINEAGE_URL"]
    assert started(OPENLINEAGE_URL=f"{own}/")["OPENLINEAGE_API_KEY"] == "hw_lab"
    assert "OPENLINEAGE_API_KEY" not in started(OPENLINEAGE_URL="https://lineage.example.org")
    # Nor in a shell that has what `lab env` prints; the token of that server itself is kept.
    assert "OPENLINEAGE_API_KEY" not in started(OPENLINEAGE_API_KEY="hw_lab")
    assert started(OPENLINEAGE_API_KEY="k")["OPENLINEAGE_API_KEY"] == "k"


@pytest.mark.parametrize("name", ["OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE"])
def test_an_address_of_the_lab_does_not_hide_another_destination(
    name: str, started: Callable[..., dict[str, str]]
) -> None:
    env = started(**{name: "console"})
    assert "OPENLINEAGE_URL" not in env
    assert env[name] == "console"


@pytest.mark.parametrize("folder", ["", pipeline_streams.programs()])
def test_the_programs_of_a_lab_on_hive_ask_hive_where_they_can(
    started: Callable[..., dict[str, str]], home: Path, folder: str | Path
) -> None:
    lab = Lab(home)
    lab.home.settings.wanted += ["hive", "catalog"]
    lab.home.settings.hive = True
    lab.home.save()
    env = lab.env()
    rest, hive = env["ICEBERG_CATALOG_URI"], env["HMS_ENDPOINT"]

    def asked(program: object) -> tuple[str, str]:
        found = started(program)
        return found["ICEBERG_CATALOG_URI"], found["HMS_ENDPOINT"]

    assert asked(Path(folder, "supplier_stats.py")) == ("", hive)
    assert asked(Path(folder, "supplier_stats_export.py")) == (rest, hive)
    # A program of one's own gets what `lab env` prints.
    mine = home / "supplier_stats.py"
    mine.write_text("")
    assert asked(mine) == (rest, hive)


def test_logs(run: Callable[..., Ran], home: Path) -> None:
    assert run("lab", "logs", "s3", "--home", home).out == "starting\nout of luck\n"
    assert run("lab", "logs", "s3", "-n", "1", "--home", home).out == "out of luck\n"
    told = json.loads(run("lab", "logs", "s3", "-n", "1", "--json", "--home", home).out)
    assert told == {"service": "s3", "log": str(home / "logs/s3.log"), "lines": ["out of luck"]}
    ran = run("lab", "logs", "kafka", "--home", home)
    assert ran.code == 2
    assert "kafka has no log yet" in ran.error


def test_a_graph_of_no_server_is_refused_and_changes_nothing(
    run: Callable[..., Ran], home: Path, tmp_path: Path
) -> None:
    before = (home / "lab.json").read_bytes()
    for where in (home, tmp_path / "none"):
        ran = run("lab", "graph", "--home", where)
        assert (ran.code, ran.out) == (2, "")
        assert ran.error == f"error: no lineage server was started in {where}"
        assert "headwater lab up server" in ran.hint
    assert (home / "lab.json").read_bytes() == before
    assert not (tmp_path / "none").exists()


def test_who_says_no_is_not_an_interrupt(
    run: Callable[..., Ran], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.cli.lab.stack.is_interactive", lambda: True)
    monkeypatch.setattr("headwater.cli.lab.stack.err.is_interactive", True, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    ran = run("lab", "reset", "--home", home)
    assert ran.code == 1
    assert ran.err.endswith("nothing was done\n")
    assert home.exists()


def test_down_and_reset(run: Callable[..., Ran], home: Path) -> None:
    assert json.loads(run("lab", "down", "--json", "--home", home).out) == {"stopped": []}
    assert run("lab", "down", "--home", home) == (0, "nothing was running\n", "")
    assert run("lab", "reset", "--home", home) == (0, f"wiped {home}\n", "")
    assert not home.exists()
    assert run("lab", "reset", "--home", home) == (0, f"there is no lab in {home}\n", "")
    told = json.loads(run("lab", "reset", "--json", "--home", home).out)
    assert told == {"stopped": [], "wiped": None}


def test_the_home_comes_from_the_environment(
    run: Callable[..., Ran], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_LAB_HOME", str(home))
    assert str(home) in run("lab", "status").out


def test_a_full_disk_ends_up_with_exit_code_3(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    ran = run("lab", "fetch", "s3")
    assert ran.code == 3
    assert "has 1 MB free" in ran.error
    assert "HEADWATER_CACHE" in ran.hint


def test_a_cache_that_cannot_be_written_ends_up_with_exit_code_3(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "file"))
    ran = run("lab", "fetch", "s3")
    assert ran.code == 3
    assert "cannot be written" in ran.error


def test_an_interrupt_says_that_what_has_arrived_is_kept(
    run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headwater.lab.files.fetch.fetch", interrupted)
    ran = run("lab", "fetch")
    assert ran.code == 130
    assert "headwater lab fetch goes on from there" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, ""), (0.4, "0 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (200_000, "2 d 7 h")],
)
def test_durations(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


def test_sizes() -> None:
    assert (size(None), size(1536 << 20)) == ("", "1,536 MB")


def test_a_taken_port_names_the_process_and_the_way_out(
    run: Callable[..., Ran], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lab.files.fetch.ensure", lambda *_: None)
    monkeypatch.setattr(ports, "refusal", lambda _port: "it is taken by nginx (pid 7)")
    ran = run("lab", "up", "s3", "--port", "s3=9000", "--home", home)
    assert ran.code == 3
    assert "error: s3 cannot have port 9000: it is taken by nginx (pid 7)" in ran.err
    assert "--port s3=PORT" in ran.hint
