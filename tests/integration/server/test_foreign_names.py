"""Names and errors that producers chose, on the terminal of whoever asks about them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.server.alerts.rules import read_rules
from headwater.server.app import ServerSettings
from headwater.server.store import open_store

from .conftest import Client
from .making import facet
from .test_alerts import FAILED, now_event, wait
from .test_answers import Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORGED = "nothing is wrong upstream"
HOSTILE = {
    "screen": "a\x1b[2Jb",
    "clipboard": "a\x1b]52;c;cm0gLXJm\x07b",
    "line": f"a\n{FORGED}",
    "return": f"a\r{FORGED}",
    "c1": "a\x9b2Jb\x9d0;t\x9cb",
    "bidi": "a\u202eb\u2066c\u200fd\u2028e",
    "style": "a[bold]b[/bold]c[/]d[/red]",
    "link": "[link=http://evil.example]a",
    "open": "[link=http://evil.example",
    "close": "x]a\\",
    "emoji": "a:key:b",
    "syntax": 'a"]; click n0 href `x` %%{init: {}}%% #quot; <b>|| \\| x',
}
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
FAILS = {"jobType": facet(processingType="STREAMING", integration="SPARK", jobType="QUERY")}


def named(name: str, **facets: Any) -> dict[str, Any]:
    return {"namespace": f"s3://{name}", "name": name, "facets": facets}


def events(text: str) -> Iterator[dict[str, Any]]:
    """A job that fails between datasets, all of whose names and texts are this one."""
    fields = facet(fields=[{"name": text, "type": text}])
    tagged = facet(tags=[{"key": text, "value": text, "source": text, "field": text}])
    step = {"type": "DIRECT", "subtype": text, "masking": False}
    taken = {"namespace": f"s3://{text}", "name": text, "field": text, "transformations": [step]}
    lineage = facet(fields={text: {"inputFields": [taken]}})
    source = named(text, schema=fields, tags=tagged)
    target = {**named(text, schema=fields, columnLineage=lineage), "name": "victim"}
    owned = {**FAILS, "ownership": facet(owners=[{"name": text}])}
    error = {"errorMessage": facet(message=text, programmingLanguage=text, stackTrace=text)}
    for state in ("START", "FAIL"):
        yield now_event(
            state, job=text, inputs=[source], outputs=[target], job_facets=owned,
            run_facets=error if state == "FAIL" else None,
        )  # fmt: skip


QUICK = {"line", "clipboard", "open"}


@pytest.fixture(
    params=[
        name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in HOSTILE
    ]
)
def hostile(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


@pytest.fixture
def server(hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    rules = tmp_path / "alerts.toml"
    rules.write_text(f'[channels.hook]\ncommand = ["/bin/false"]\n{FAILED}', encoding="utf-8")
    settings = ServerSettings(alerts=read_rules(rules), alerts_every=0.05)
    client = Client(open_store(f"sqlite:///{tmp_path}/headwater.db"), settings)
    client.post(now_event("COMPLETE", job="before", run=99, ago=1))
    wait(lambda: client.get("/api/v2/alerts")["lookedAt"])
    client.post(*events(hostile))
    Command(client, monkeypatch)
    yield client
    client.close()


def shown(words: list[str]) -> str:
    """What a command prints; it may find trouble, but must not fail."""
    found = CliRunner().invoke(app, words)
    assert found.exit_code in {0, 5, 6}, (words, found.output, found.exception)
    return found.stdout


def test_no_text_of_a_producer_steers_the_terminal(hostile: str, server: Client) -> None:
    wait(lambda: server.get("/api/v2/alerts")["open"])
    victim = "victim"
    commands = [
        ["why", victim],
        ["trace", victim],
        ["trace", victim, "--mermaid"],
        ["trace", victim, "--dot"],
        ["diff", "--from", "2026-01-01"],
        ["alerts", "list"],
        ["audit", victim],
        ["freshness", f"s3://{hostile}", victim],
        ["tags"],
        ["tags", victim],
        *(["tags", "--tag", str(one["name"])] for one in server.get("/api/v2/tags")["tags"]),
        ["impact", hostile, "--delete"],
        ["impact", hostile, "--delete", "--markdown"],
        ["doctor"],
    ]
    said = {" ".join(words): shown(words) for words in commands}
    name = ascii(hostile)[1:-1].replace("\\\\", "\\").replace("\\'", "'")
    assert {words: RAW.findall(text) for words, text in said.items() if RAW.search(text)} == {}
    for words, text in said.items():
        lines = [line.strip() for line in text.splitlines()]
        assert FORGED not in lines, words
        plain = "--m" not in words and "--dot" not in words
        folded = text.replace("\n", "").replace(" ", "")
        assert not plain or words == "doctor" or name.replace(" ", "") in folded, (words, text)
    for asked in commands:
        if "--m" not in " ".join(asked) and "--dot" not in asked:
            text = shown([*asked, "--json"])
            json.loads(text)
            assert not RAW.search(text), asked
