"""The file of alert rules: the one in the docs, and what is wrong with others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import UsageError
from headwater.server.alerts.incidents import EntityRef, Finding, Incident, IncidentBody, reconcile
from headwater.server.alerts.messages import message, slack, trial_message
from headwater.server.alerts.rules import KINDS, Rules, Secret, read_rules

DOCS = Path(__file__).parents[3] / "docs" / "operations.md"
NOW = 1_767_225_600_000_000
CHANNEL = '[channels.c]\nurl = "http://127.0.0.1:1/x"\n'
RULE = '[rules.r]\nwhen = "run-failed"\nto = ["c"]\n'


def read(tmp_path: Path, text: str, name: str = "alerts.toml") -> Rules:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return read_rules(file)


needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no tomllib")


def test_a_python_that_reads_no_toml_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Python 3.10 does without tomli."""
    for module in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / "rules.toml"
    file.write_text("")
    doctor = CliRunner().invoke(app, ["doctor", "--rules", str(file)]).exception
    with pytest.raises(UsageError) as refused:
        read_rules(file)
    for error in (refused.value, doctor):
        assert isinstance(error, UsageError)
        assert "TOML cannot be read by this Python" in error.message
        assert "pip install tomli, or write the file as .json" in (error.hint or "")


@needs_toml
def test_the_file_in_the_docs_is_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = re.findall(r"```toml\n# alerts.toml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    monkeypatch.setenv("SLACK_WEBHOOK_URL", "https://hooks.example.com/services/T/B/x")
    (tmp_path / "pager.token").write_text("Bearer abc\n")
    found = read(tmp_path, text)
    assert {rule.when for rule in found.rules.values()} == set(KINDS)
    assert found.channels["pager"].headers["Authorization"].reveal() == "Bearer abc"
    assert found.channels["tickets"].command[0] == "/usr/local/bin/open-ticket"
    assert found.rules["gold-stale"].lasting == 30 * 60 * 1_000_000
    # Every kind has its row.
    for kind in KINDS:
        assert f"| `{kind}` |" in DOCS.read_text()


@needs_toml
@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("x", "not TOML", ""),
        (RULE, "has no channels", "[channels.NAME]"),
        (CHANNEL, "has no rules", "[rules.NAME]"),
        ("extra = 1\n" + CHANNEL + RULE, "extra is not known", "channels"),
        ('page = "ftp://x"\n' + CHANNEL + RULE, "page is no http address", "https"),
        ("[channels.c]\n" + RULE, "channels.c: needs either url or command", "command"),
        (CHANNEL + 'command = ["x"]\n' + RULE, "channels.c: needs either url or command", ""),
        ('[channels.c]\nurl = "file:///x"\n' + RULE, "channels.c: url is no http address", ""),
        ('[channels.c]\nurl = { env = "NO_SUCH" }\n' + RULE, "channels.c: url", "NO_SUCH"),
        ('[channels.c]\nurl = { file = "none" }\n' + RULE, "cannot read none", "none"),
        ("[channels.c]\nurl = 5\n" + RULE, "channels.c: url: is no text", "env"),
        (CHANNEL + 'template = "teams"\n' + RULE, "channels.c: template", ""),
        (CHANNEL + 'timeout = "1h"\n' + RULE, "channels.c: timeout", ""),
        ('[channels.c]\ncommand = "rm -rf /"\n' + RULE, "command must be a list", "PROGRAM"),
        ("[channels.c]\ncommand = []\n" + RULE, "command must be a list", ""),
        ('[channels.c]\ncommand = ["x"]\nheaders.A = "b"\n' + RULE, "headers belongs to a webhook", ""),
        (CHANNEL + '[rules.r]\nwhen = "burns"\nto = ["c"]\n', "rules.r: when", "run-failed"),
        (CHANNEL + '[rules.r]\nwhen = "stale"\nto = ["d"]\n', "rules.r: to names d", "known: c"),
        (CHANNEL + '[rules.r]\nwhen = "stale"\n', "rules.r: to names no channel", "known: c"),
        (CHANNEL + RULE + 'for = "soon"\n', "rules.r: for: is no duration", "30m"),
        (CHANNEL + RULE + "for = 5\n", "rules.r: for: is no duration", ""),
        (CHANNEL + RULE + "names = 5\n", "rules.r: names", ""),
        (CHANNEL + RULE + 'name = "x"\n', "rules.r: name is not known", "names"),
        (CHANNEL + '[rules.r]\nwhen = "producer-silent"\nto = "c"\n', "rules.r: needs for", "15m"),
        (CHANNEL + '[rules.r]\nwhen = "new-reader"\nto = "c"\n', "rules.r: needs tags", "pii"),
    ],
)  # fmt: skip
def test_an_error_names_the_key_and_what_to_do(
    tmp_path: Path, text: str, problem: str, hint: str
) -> None:
    with pytest.raises(UsageError) as raised:
        read(tmp_path, text)
    assert problem in raised.value.message
    assert hint in (raised.value.hint or "")


def test_a_file_may_be_json_and_its_secrets_are_never_printed(tmp_path: Path) -> None:
    text = (
        '{"channels": {"c": {"url": "https://h.example/hidden-part", "headers": {"X": "hidden-too"}}},'
        ' "rules": {"r": {"when": "run-failed", "to": "c"}}}'
    )
    found = read(tmp_path, text, "alerts.json")
    assert found.rules["r"].to == ("c",)
    assert "hidden" not in repr(found)
    assert "hidden" not in str(found.channels["c"].url)
    with pytest.raises(UsageError) as raised:
        read(tmp_path, text.replace("https", "gopher"), "alerts.json")
    assert "hidden" not in f"{raised.value.message} {raised.value.hint}"


def rules_of(tmp_path: Path) -> Rules:
    return read(
        tmp_path,
        '{"channels": {"c": {"url": "http://h/c"}, "d": {"url": "http://h/d"}},'
        ' "rules": {"r": {"when": "run-failed", "to": "c"}, "s": {"when": "stale", "to": ["c", "d"]}}}',
        "alerts.json",
    )


def finding(name: str, *rules: str, since: int = NOW, members: tuple[str, ...] = ()) -> Finding:
    subject = EntityRef("job", "jobs", name)
    others = [EntityRef("job", "jobs", one) for one in members]
    body = IncidentBody(subject, f"{name} failed", rules=list(rules), members=others)
    return Finding("run-failed", subject, since, body)


def open_of(one: Finding) -> Incident:
    return Incident(one.id, one.kind, *one.subject.key, one.since, NOW, None, one.body)


def test_an_incident_is_told_once_to_each_channel(tmp_path: Path) -> None:
    rules = rules_of(tmp_path)
    first = reconcile(rules, [], [finding("a", "r")], NOW, ())
    (incident,) = first.write
    assert [owed[1:] for owed in first.owed] == [("c", 0)]
    again = reconcile(rules, [incident], [finding("a", "r")], NOW + 5, ())
    assert (again.write, again.owed) == ([], [])
    # A second rule asks for the same incident: who was told is told again by nobody.
    more = reconcile(rules, [incident], [finding("a", "r", "s")], NOW + 9, ())
    assert {owed[1] for owed in more.owed} == {"c", "d"}
    assert more.write[0].id == incident.id
    over = reconcile(rules, [incident], [], NOW + 20, ())
    assert [one.resolved for one in over.write] == [NOW + 20]


def test_the_same_trouble_is_not_told_again_after_it_is_over(tmp_path: Path) -> None:
    rules = rules_of(tmp_path)
    past = open_of(finding("a", "r"))
    past.resolved = NOW + 10
    assert reconcile(rules, [past], [finding("a", "r")], NOW + 20, ()).write == []
    passed = finding("a", "r", since=NOW + 5)
    passed.passed = True
    assert reconcile(rules, [past], [passed], NOW + 20, ()).write == []
    new = reconcile(rules, [past], [finding("a", "r", since=NOW + 15)], NOW + 20, ())
    assert len(new.write) == 1


def test_one_told_as_its_own_stays_one_when_an_older_cause_comes_to_light(tmp_path: Path) -> None:
    known = open_of(finding("b", "r"))
    step = reconcile(rules_of(tmp_path), [known], [finding("a", "r", members=("b",))], NOW + 5, ())
    assert [one.id for one in step.write if one.id != known.id] == []
    assert known.resolved is None


def test_a_rule_that_is_gone_ends_its_incidents_and_a_new_one_sends_nothing_old(
    tmp_path: Path,
) -> None:
    rules = rules_of(tmp_path)
    known = open_of(finding("a", "was-there"))
    step = reconcile(rules, [known], [finding("a")], NOW + 5, ())
    assert [one.resolved for one in step.write] == [NOW + 5]
    fresh = reconcile(rules, [], [finding("b", "r")], NOW, ("r",))
    assert len(fresh.write) == 1
    assert fresh.owed == []


def test_slack_gets_its_own_shape_with_names_as_text(tmp_path: Path) -> None:
    one = open_of(finding("<!channel> & co", "r"))
    one.body.detail = "a < b"
    told = message(one, 0, "https://page")
    assert told["link"] == "https://page/jobs/jobs/%3C%21channel%3E%20%26%20co"
    sent = slack(told)
    text = sent["blocks"][0]["text"]["text"]
    assert "<!channel>" not in text
    assert "&lt;!channel&gt; &amp; co" in text
    assert len(text) <= 3_000
    rule = rules_of(tmp_path).rules["r"]
    assert trial_message(rule, "https://page")["link"] == "https://page/"
    for told in (message(one, 0, ""), message(one, 1, ""), trial_message(rule, "")):
        assert "link" not in told
        assert "|" not in slack(told)["blocks"][0]["text"]["text"]


def test_a_secret_does_not_print() -> None:
    assert "abc" not in f"{Secret('abc')} {Secret('abc')!r}"
