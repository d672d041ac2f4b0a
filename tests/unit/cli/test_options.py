"""Options that commands share: each stands in its place, and its value arrives."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from headwater.cli.connect.options import LoginOptions, cluster_config
from headwater.cli.main import app as headwater
from headwater.cli.options import spread

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGIN = ["--user", "--password-file", "--token-file", "--ca", "--cert", "--key"]


@dataclass(frozen=True)
class Where:
    """A group of options."""

    shelf: Annotated[int, typer.Option("--shelf", envvar="SHELF")] = 1
    label: Annotated[Path | None, typer.Option("--label", "-l")] = None


def _app(heard: list[Any]) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @spread
    def put(
        what: Annotated[str, typer.Argument()],
        *,
        first: Annotated[bool, typer.Option("--first")] = False,
        where: Where,
        last: Annotated[bool, typer.Option("--last")] = False,
    ) -> None:
        """Put something somewhere."""
        heard.append((what, first, where, last))

    return app


@pytest.mark.parametrize(
    ("words", "env", "arrived"),
    [
        ([], {}, (False, Where(), False)),
        (["--shelf", "3", "-l", "a", "--last"], {}, (False, Where(3, Path("a")), True)),
        (["--first"], {"SHELF": "7"}, (True, Where(7), False)),
    ],
)
def test_values_arrive_in_their_group(
    words: list[str], env: dict[str, str], arrived: tuple[Any, ...]
) -> None:
    heard: list[Any] = []
    ran = CliRunner().invoke(_app(heard), ["book", *words], env=env)
    assert ran.exit_code == 0, ran.output
    assert heard == [("book", *arrived)]


def test_a_wrong_value_is_refused() -> None:
    assert CliRunner().invoke(_app([]), ["book", "--shelf", "top"]).exit_code == 2


def test_options_stand_where_their_group_stood() -> None:
    command = get_command(_app([]))
    assert [p.name for p in command.params[:5]] == ["what", "first", "shelf", "label", "last"]
    assert command.help == "Put something somewhere."


def _commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(_commands(get_command(headwater)))


def _options(name: str) -> list[str]:
    return [option for parameter in COMMANDS[name].params for option in parameter.opts]


def test_every_command_that_talks_to_connect_can_log_in() -> None:
    names = [name for name in COMMANDS if name.startswith("connect ") and "preview" not in name]
    assert len(names) == 10
    for name in names:
        options = _options(name)
        assert "--url" in options, name
        at = options.index("--user")
        assert options[at : at + len(LOGIN)] == LOGIN, name


@pytest.mark.parametrize(
    ("name", "option", "said"),
    [
        ("connect watch", "poll", "5"),
        ("connect watch", "heartbeat", "300"),
        ("connect watch", "grace", "600"),
        ("connect watch", "state", "a file of the user's"),
        ("lab up", "home", "$HEADWATER_LAB_HOME"),
        ("server", "store", "a file in the user's data directory"),
    ],
)
def test_help_says_what_holds_without_an_option(name: str, option: str, said: str) -> None:
    (found,) = (p for p in COMMANDS[name].params if p.name == option)
    assert said in found.show_default
    assert "[default" not in found.help  # which would be taken for a style


def test_help_swallows_nothing_in_brackets() -> None:
    texts = {
        f"{n} {p.name}": getattr(p, "help", None) or ""
        for n, c in COMMANDS.items()
        for p in c.params
    }
    assert [where for where, text in texts.items() if "[" in text] == []


def test_what_prints_a_result_prints_it_as_json_too() -> None:
    silent = {"connect watch", "mcp", "server", "up", "lab run", "lake run", "spark run"}
    json_alone = {"lake ask"}  # a server's answer as it is
    without = {name for name in COMMANDS if "--json" not in _options(name)}
    assert without == silent | json_alone


def test_secrets_stay_where_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECT_TOKEN", "hunter2")
    monkeypatch.setenv("CONNECT_PASSWORD", "hunter3")
    login = LoginOptions(user="ann", ca=Path("ca.pem"))
    assert login.auth() == {
        "username": "ann",
        "password": {"env": "CONNECT_PASSWORD"},
        "token": {"env": "CONNECT_TOKEN"},
    }
    assert login.tls() == {"ca": "ca.pem", "cert": "", "key": ""}
    given = LoginOptions(user="ann", password_file=Path("p"), token_file=Path("t")).auth()
    assert (given["password"], given["token"]) == ({"file": "p"}, {"file": "t"})


@pytest.mark.parametrize(
    ("url", "info", "login"),
    [
        ("http://registry:8081", "reader:hunter:2", ("reader", "hunter:2")),
        ("http://reader:own@registry:8081", "", ("reader", "own")),
        ("http://registry:8081", "", (None, None)),
    ],
)
def test_the_registrys_login_is_in_the_environment_or_the_address(
    monkeypatch: pytest.MonkeyPatch, url: str, info: str, login: tuple[str | None, str | None]
) -> None:
    monkeypatch.setenv("SCHEMA_REGISTRY_USER_INFO", info)
    found = cluster_config(["http://connect:8083"], LoginOptions(), registry_url=url).registry
    assert found is not None
    assert (found.username or None, found.password or None) == login
    assert found.urls == ("http://registry:8081",)


def test_help_names_every_option_in_full_and_what_it_takes() -> None:
    for name, command in COMMANDS.items():
        context = typer.Context(command, info_name=name, terminal_width=80)
        said = command.get_help(context)
        assert not re.search(r"<[a-z|\[\] ]+>|\}\.\.\.|\]\.\.\.\]", said), (
            name
        )  # a type of Python's
        for option in _options(name):
            if option.startswith("--"):
                assert option in said, name
    assert "Say who is hit when a dataset changes: what breaks, what changes downstream" in (
        " ".join(get_command(headwater).get_help(typer.Context(get_command(headwater))).split())
    )


# A process each: one for every extra in the quick run.
more = partial(pytest.param, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("words", "missing", "extra"),
    [
        ("server --kafka-bootstrap 127.0.0.1:9 --port 0", "confluent_kafka", "server"),
        more("server --forward-kafka 127.0.0.1:9 --port 0", "confluent_kafka", "server"),
        more("server --store postgresql://u@127.0.0.1:9/x", "psycopg", "server"),
        more("rebuild --store STORE", "zstandard", "server"),
        (
            "connect list --url http://127.0.0.1:9 --kafka-bootstrap h:1",
            "confluent_kafka",
            "connect",
        ),
        more("connect watch --clusters clusters.yml", "yaml", "connect"),
        ("lab status", "psutil", "lab"),
        more("--config /dev/null lab status", "psutil", "lab"),
        ("mcp", "mcp", "mcp"),
        ("trace orders --lake iceberg://prod/lineage", "zstandard", "lake"),
        more("rebuild --store STORE --from-lake=iceberg://prod/lineage", "zstandard", "lake"),
    ],
)
def test_a_missing_package_is_answered_by_the_extra_to_install(
    words: str, missing: str, extra: str, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        f"sys.argv = ['headwater', *{words.replace('STORE', str(tmp_path / 'x.db'))!r}.split()]\n"
        "from headwater.cli.main import main\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert ran.returncode == 3, ran.stderr
    assert ran.stderr.splitlines()[-1] == f"hint: pip install 'headwater[{extra}]'"
    assert missing in ran.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("server", "--token-file FILE"),
        ("server", "--keep AGE"),
        ("server", "--client-connections CONNECTIONS"),
        ("demo", "--catalog rest|hive"),
        ("lab up", "Usage: lab up [OPTIONS] [SERVICE]..."),
        ("connect pause", "Usage: connect pause [OPTIONS] NAME…"),
        ("impact", "Usage: impact [OPTIONS] [DATASET]"),
    ],
)
def test_help_calls_a_value_by_a_word(name: str, line: str) -> None:
    context = typer.Context(COMMANDS[name], info_name=name, terminal_width=80)
    said = [" ".join(one.split()) for one in COMMANDS[name].get_help(context).splitlines()]
    assert any(one.startswith(line) for one in said), said
