"""Settings from a file, variables and flags: which of them holds, and what is said of a wrong one."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import headwater
from headwater.cli import main, settings
from headwater.cli.main import _run
from headwater.cli.server import serve
from tests.unit.connect.certificates import Authority

ROOT: Any = get_command(main.app)
FILE = """
[server]
port = 6001
store = "postgresql://joe:hunter2@db/lineage"
page = false
allowed-host = ["a.example", "b.example"]

[connect]
url = "http://ann:hunter3@connect:8083"

[client]
url = "http://lineage:5000"
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ours = [name for name in os.environ if name.startswith("HEADWATER_")]
    for name in ("CONNECT_URL", "OPENLINEAGE_URL", *ours):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "headwater" / "headwater.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, tuple[str, str]]:
    assert _run(["config", "show", "--json", *words], debug=False) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = answer["settings"]
    return {f"{row['section']}.{row['key']}": (row["value"], row["from"]) for row in rows}


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWATER_SERVER_KEEP", "9d")
    found = shown(capsys)
    assert found["server.host"] == ("127.0.0.1", "default")
    assert found["server.port"] == ("6001", f"{file}:3")
    assert found["server.page"] == ("false", f"{file}:5")
    assert found["server.allowed-host"] == ("a.example, b.example", f"{file}:6")
    assert found["server.keep"] == ("9d", "$HEADWATER_SERVER_KEEP")
    monkeypatch.setenv("HEADWATER_SERVER_PORT", "6002")
    assert shown(capsys)["server.port"] == ("6002", "$HEADWATER_SERVER_PORT")
    flagged = shown(capsys, "server", "--", "--port", "6003")
    assert flagged["server.port"] == ("6003", "flag")
    assert "client.url" not in flagged
    monkeypatch.setenv("OPENLINEAGE_URL", "http://other:1")
    assert shown(capsys)["client.url"] == ("http://other:1", "$OPENLINEAGE_URL")


def test_what_is_shown_is_what_the_command_gets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[dict[str, Any]] = []
    monkeypatch.setattr("headwater.server.http.serve.serve", lambda **given: heard.append(given))
    monkeypatch.setattr(serve, "require_free", lambda *_: None)
    assert _run(["server", "--host", "127.0.0.2"], debug=False) == 0
    (given,) = heard
    assert (given["host"], given["port"], given["settings"].page) == ("127.0.0.2", 6001, False)
    assert given["store"] == "postgresql://joe:hunter2@db/lineage"
    assert given["allowed"] == ["a.example", "b.example"]


def test_commands_share_the_sections_of_what_they_work_on(file: Path) -> None:
    found = settings.install(ROOT, settings.read_file(ROOT, file))
    assert found["rebuild"]["store"].startswith("postgresql://")
    assert found["token"]["list"] == {"store": "postgresql://joe:hunter2@db/lineage"}
    assert found["why"] == {"url": "http://lineage:5000"}
    assert found["connect"]["pause"] == {"url": ["http://ann:hunter3@connect:8083"]}
    # Whoever can work on a store or ask a server says on which; a check of a store stays one.
    assert found["purge"]["job"] == {"url": "http://lineage:5000"}
    assert found["audit"]["verify"] == {}


def test_credentials_are_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, about in settings.VARIABLES.items():
        if about.secret:
            monkeypatch.setenv(name, "hunter4")
    for words in ([], ["--json"]):
        assert _run(["config", "show", *words], debug=False) == 0
        said = capsys.readouterr().out
        assert "hunter" not in said
        assert "HEADWATER_TOKEN" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nprot = 1", "[server] prot: no such key; port?"),
        ("[server]\nkafka_bootstrap = 'k:1'", "[server] kafka_bootstrap: no such key; kafka-bootstrap?"),
        ("[server]\npoll = 1", "[server] poll: no such key; there is one in [connect]"),
        ("[sever]\nport = 1", "no section [sever]; server?"),
        ("port = 1", "no section [port]"),
        ("[server]\nport = true", "[server] port: not a text or a number"),
        ("[server]\npage = 'no'", "[server] page: neither true nor false"),
        ("[server]\nport = [1]", "[server] port: not a text or a number"),
        ("[connect]\nurl = [1]", "[connect] url: not all of them are texts"),
        ("[server", "not TOML"),
        ("[server]\nport = 70000", "65535"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_an_error_of_every_command(
    file: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert _run(["server", "--store", "x://y"], debug=False) == 2
    told = capsys.readouterr().err
    assert said in told
    assert str(file) in told
    assert _run(["config", "check"], debug=False) == 2
    checked = capsys.readouterr()
    assert said in checked.out + checked.err
    assert str(file) in checked.out + checked.err


def test_check_is_silent_about_what_is_right_and_finds_variables_that_set_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HEADWATER_SERVICE_HOST", "HEADWATER_PORT", "HEADWATER_LAB_SERVICE"):
        monkeypatch.setenv(name, "tcp://10.0.0.1:5000")
    assert _run(["config", "check", "--json"], debug=False) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(file), "ok": True, "problems": []}
    monkeypatch.setenv("HEADWATER_SERVER_PROT", "1")
    assert _run(["config", "check"], debug=False) == 2
    assert "HEADWATER_SERVER_PROT sets nothing; HEADWATER_SERVER_PORT?" in capsys.readouterr().out
    monkeypatch.setenv("HEADWATER_STORE", "x.db")
    monkeypatch.setenv("HEADWATER_PORT", "6000")
    assert _run(["config", "check"], debug=False) == 2
    said = capsys.readouterr().out
    assert "HEADWATER_STORE sets nothing; HEADWATER_SERVER_STORE?" in said
    assert "HEADWATER_PORT sets nothing; HEADWATER_SERVER_PORT?" in said


def test_check_finds_what_the_command_would_refuse_when_it_starts(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        """
[server]
keep = "90x"
root-path = "lineage"
trusted-proxies = ["proxy.example"]
user-role = ["reader"]
token-file = "/no/such/tokens"
[connect]
mappings = ["/no/such/rules.yml"]
"""
    )
    monkeypatch.setenv("HEADWATER_SERVER_MAX_AGE", "0d")
    assert _run(["config", "check", "--json"], debug=False) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [problem.partition(" is ")[0] for problem in problems] == [
        f"{file}:7: [server] token-file: /no/such/tokens: No such file or directory",
        f"{file}:3: [server] keep: --keep '90x'",
        "$HEADWATER_SERVER_MAX_AGE: [server] max-age: --max-age '0d'",
        f"{file}:4: [server] root-path: --root-path 'lineage'",
        f"{file}:5: [server] trusted-proxies: --trusted-proxies 'proxy.example'",
        f"{file}:6: [server] user-role: --user-role 'reader'",
        f"{file}:9: [connect] mappings: /no/such/rules.yml: No such file or directory",
    ]


def test_check_finds_every_wrong_value_at_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules := file.with_name("alerts.toml")).write_text("x = [")
    (client := file.with_name("kafka.properties")).write_text("no pair")
    (empty := file.with_name("tokens")).write_text("")
    (globs := file.with_name("rules.yml")).write_text("- a list")
    file.write_text(
        f"""
[server]
prot = 1
port = 70000
batch-limit = "many"
page = "no"
store = "mysql://a/b"
token-file = "{empty}"
alerts = "{rules}"
kafka-config = "{client}"
forward-kafka = "/events"
certificate = "{empty}"
[connect]
poll = 0
url = ["ftp://connect"]
registry-url = "ftp://registry"
mappings = ["{globs}"]
"""
    )
    monkeypatch.setenv("HEADWATER_SERVER_INSECURE", "perhaps")
    monkeypatch.setenv("HEADWATER_CONNECT_GRACE", "-1")
    assert _run(["config", "check", "--json"], debug=False) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert {problem.partition("] ")[2].partition(":")[0] for problem in problems} == {
        "prot", "port", "batch-limit", "page", "store", "token-file", "alerts", "kafka-config",
        "forward-kafka", "insecure", "poll", "url", "registry-url", "mappings", "grace",
        "TLS needs both --certificate and --key",
    }  # fmt: skip
    assert f"{file}:4: [server] port: " in "\n".join(problems)
    assert "$HEADWATER_CONNECT_GRACE: [connect] grace: " in "\n".join(problems)
    assert f"[connect] mappings: {globs}: " in "\n".join(problems)
    assert len(problems) == 16


def test_a_certificate_that_cannot_be_used_is_named_before_anything_starts(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    authority = Authority(tmp_path, "authority")
    server = authority.issue("server")
    certificate, key, other = server.cert, server.key, authority.issue("other").key
    text = f'[server]\ncertificate = "{certificate}"\n'
    for given, problem in (
        ("", "TLS needs both"),
        (f'key = "{certificate}"', "cannot be used: "),
        (f'key = "{other}"', "cannot be used: KEY_VALUES_MISMATCH"),
    ):
        file.write_text(text + given)
        assert _run(["config", "check"], debug=False) == 2
        assert problem in capsys.readouterr().out
        assert _run(["server", "--store", f"sqlite:///{tmp_path}/x.db"], debug=False) == 2
        assert problem in capsys.readouterr().err
    assert not (tmp_path / "x.db").exists()
    file.write_text(f'{text}key = "{key}"')
    assert _run(["config", "check"], debug=False) == 0


def test_a_file_of_client_settings_is_read_wherever_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["server", "--store", f"sqlite:///{tmp_path}/x.db", "--kafka-config", "nowhere"]
    assert _run(words, debug=False) == 2
    assert "cannot read nowhere" in capsys.readouterr().err


def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWATER_SERVER_PORT", "tcp://10.0.0.1:5000")
    assert _run(["server", "--store", "x://y"], debug=False) == 2
    assert "$HEADWATER_SERVER_PORT: " in capsys.readouterr().err
    assert _run(["config", "check"], debug=False) == 2
    assert "$HEADWATER_SERVER_PORT: [server] " in capsys.readouterr().out


def test_the_file_may_be_named_and_none_is_taken_from_the_current_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = file.rename(tmp_path / "headwater.toml")
    monkeypatch.chdir(tmp_path)
    assert shown(capsys)["client.url"] == ("(http://127.0.0.1:5000)", "default")
    assert _run(["--config", str(other), "config", "show", "client"], debug=False) == 0
    assert f"{other}:12" in capsys.readouterr().out
    assert _run(["--config", "none.toml", "version"], debug=False) == 2
    assert "none.toml" in capsys.readouterr().err


def test_every_variable_of_ours_is_documented() -> None:
    internal = re.compile(r"HEADWATER_LAB_(PROCESS_OF|SERVICE|STARTED_BY|TEST_HOME)$")
    known = {one.variable for one in settings.settings_of(ROOT).values()} | set(settings.VARIABLES)
    sources = Path(headwater.__file__).parent.rglob("*.py")
    named = {
        name
        for source in sources
        for name in re.findall(r"HEADWATER_[A-Z_]+[A-Z]", source.read_text("utf-8"))
        if not internal.match(name)
    }
    assert {"HEADWATER_TOKEN", "HEADWATER_STATE_DIR"} <= named
    # The lab only prints it; docs/lab.md has it.
    assert named - known - {"HEADWATER_LAB", "HEADWATER_PAGE"} == set()


def test_settings_are_click_s_own_order() -> None:
    """The words that `config show` reads from click."""
    context = ROOT.commands["server"].make_context(
        "server", ["--port", "1"], default_map={"host": "127.0.0.3"}
    )
    sources = [context.get_parameter_source(name) for name in ("port", "host", "page")]
    assert [source.name for source in sources] == ["COMMANDLINE", "DEFAULT_MAP", "DEFAULT"]
