"""The docs say what the code says: generated parts, links, commands that the program takes, small programs.

Commands are run by `tests/integration/docs`, the labs by `tests/integration/demo/test_tutorials.py`.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest
import typer
from scripts import docs, site

from headwater.connect.agent.clusters_file import read_agent_config
from headwater.connect.derive.mapping import read_rules
from headwater.insight.name_rules import name_rules
from headwater.lineage import naming
from tests.command_lines import parse

ROOT = Path(__file__).parents[2]
PAGES = {path.relative_to(ROOT).as_posix(): path for path in site.sources().values() if path.suffix == ".md"}  # fmt: skip
BLOCK = re.compile(
    r"^( *)```(console|sh|bash|python)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL
)
MEASURED = r"Measured on \d{4}-\d\d-\d\d at commit `\w{8}`"
ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", ")"}


def blocks(page: str, *kinds: str) -> list[str]:
    return [dedent(m[3]) for m in BLOCK.finditer(PAGES[page].read_text()) if m[2] in kinds]


def calls(page: str, program: str) -> list[list[str]]:
    """What a page calls a program with: in `console` blocks the lines with a prompt, in others all."""
    found = []
    for text in blocks(page, "console", "sh", "bash"):
        lines = re.sub(r"\\\n", " ", text).splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for line in lines:
            starts = re.finditer(rf"(?:^|[\s(;&|]){program} ", line)
            found += [words(line[start.end() :]) for start in starts]
    return found


def words(rest: str) -> list[str]:
    """Up to where the shell goes on with something else."""
    lexer = shlex.shlex(rest.partition('")')[0], posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    found: list[str] = []
    try:
        for word in lexer:
            if word in ENDS:
                break
            found.append(word)
    except ValueError:  # a quotation that goes on in the next line
        found.append("…")
    return found


def taken(line: list[str]) -> str:
    """What the program says against a command line."""
    try:
        parse(line)
    except typer.Exit:  # --version, --help
        return ""
    except Exception as error:  # noqa: BLE001
        return "" if type(error).__name__ == "NoArgsIsHelpError" else str(error)
    return ""


def test_generated_parts_are_up_to_date() -> None:
    assert list(docs.outdated()) == [], "run make docs"


def test_figures_say_when_and_of_what_they_were_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in docs.RESULTS.glob("*.json"):
        found = docs.results(path.stem)
        for part in found.get("loads") or found.keys() - {"measured", "peers", "jobs", "history"}:
            stamp = found["measured"][part]
            assert list(stamp) == ["date", "commit", "version", "cores"], f"{path.name}: {part}"
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", stamp["date"])
    shown = {"spark-cases", "spark-counts", "spark-costs", "spark-batches", "spark-statements"}
    for name in (*shown, "server-speed", "peers", "pipeline-cost", "pipeline-speed", "lake-costs"):
        assert re.search(rf"\n{MEASURED}", docs.PARTS[name]()), name
    for page, path in PAGES.items():
        for section in re.split(r"^##+ ", path.read_text(), flags=re.MULTILINE):
            if "python bench/" in section:
                assert re.search(MEASURED, section), f"{page}: {section.splitlines()[0]}"
    for path in docs.RESULTS.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    kept = importlib.import_module("_results")
    git = ["git", "rev-parse", "--short=8", "HEAD"]
    head = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    before = kept.read("spark")
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    kept.keep("spark", costs=[])
    after = kept.read("spark")
    assert (after["costs"], after["batches"]) == ([], before["batches"])
    assert after["measured"]["batches"] == before["measured"]["batches"]
    stamp = after["measured"]["costs"]
    assert (stamp["commit"].removesuffix("-dirty"), stamp["cores"]) == (head, os.cpu_count())


def test_pages_name_the_versions_of_peers_that_were_run() -> None:
    known = {
        r"OpenLineage jar (?:for Spark )?|openlineage-spark_2\.13:": docs.locked("openlineage"),
        "Debezium's own lineage, ": docs.locked("connect/debezium-postgres"),
    }
    for name, version in docs.results("peers")["peers"].items():
        known[rf"{name}(?:\]\([^)]*\))? "] = version
    for called, version in known.items():
        found = {
            said
            for page in PAGES.values()
            for said in re.findall(rf"(?:{called})(\d+\.[\d.]*\d)", page.read_text())
        }
        assert found, called
        assert all(f"{version}.".startswith(f"{said}.") for said in found), (called, found)


def test_links_between_pages_lead_somewhere() -> None:
    assert site.gathered()[1] == []


def test_a_search_of_the_site_leaves_the_changelog_out() -> None:
    unsearched = [name for name, text in site.gathered()[0].items() if text.startswith("---\n")]
    assert unsearched == ["CHANGELOG.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_program_takes_every_command_of_a_page(page: str) -> None:
    problems = {" ".join(line): said for line in calls(page, "headwater") if (said := taken(line))}
    assert problems == {}


@pytest.mark.parametrize("page", PAGES)
def test_make_has_every_target_of_a_page(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {
        word for line in calls(page, "make") for word in line if re.fullmatch(r"[a-z-]+", word)
    }
    assert asked <= targets


@pytest.mark.parametrize("page", PAGES)
def test_programs_on_a_page_are_python(page: str) -> None:
    for text in blocks(page, "python"):
        ast.parse(text)


def test_names_are_made_as_the_page_says() -> None:
    (program,) = blocks("docs/naming.md", "python")
    shown = re.findall(r"^(naming\..*)\n# (.*)$", program, re.MULTILINE)
    assert len(shown) == program.count("\nnaming.")
    for call, result in shown:
        made: Any = eval(call, {"naming": naming})
        assert (made if isinstance(made, str) else " ".join(made)) == result, call


def files(page: str, kind: str) -> list[str]:
    """The blocks of a page that are files for one of our commands, not commands themselves."""
    text = PAGES[page].read_text()
    found = re.finditer(rf"^( *)```{kind}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [dedent(one[2]) for one in found]


def test_files_on_pages_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters, mappings = files("docs/connect.md", "yaml")
    for name in re.findall(r"env: (\w+)", clusters):
        monkeypatch.setenv(name, "hunter2")
    for secret in re.findall(r"\{file: (\S+)\}", clusters):
        (tmp_path / Path(secret).name).write_text("hunter2")
        clusters = clusters.replace(secret, str(tmp_path / Path(secret).name))
    (tmp_path / "ours.yml").write_text(mappings)
    (tmp_path / "connect-distributed.properties").write_text("bootstrap.servers=kafka:9092")
    (tmp_path / "clusters.yml").write_text(clusters)
    config = read_agent_config(tmp_path / "clusters.yml")
    assert [one.name for one in config.clusters] == ["shop", "msk", "cloud"]
    assert read_rules(mappings)
    (rules,) = files("docs/guides/neighbours.md", "toml")
    assert name_rules(msgspec.toml.decode(rules)).read is not None


def test_programs_with_lineage_by_hand_report_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "events.ndjson"
    settings = {"TYPE": "file", "LOG_FILE_PATH": str(file), "APPEND": "true"}
    for key, value in settings.items():
        monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__{key}", value)
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)
    monkeypatch.setenv("HEADWATER_STATE_DIR", str(tmp_path / "state"))
    pages = ("README.md", "docs/guides/by-hand.md")
    programs = [
        text for page in pages for text in blocks(page, "python") if "headwater.run(" in text
    ]
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(programs)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in file.read_text().splitlines()]
    ended = {one["job"]["name"] for one in events if one["eventType"] == "COMPLETE"}
    assert ended == set(re.findall(r'headwater\.run\("(.*?)"', "".join(programs)))
    assert {"nightly-export", "orders-export", "iceberg-ingestion"} <= ended


def test_wrong_commands_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```console\n$ headwater server --stor x.db   # a slip\n$ eval "$(headwater lab envs)" && headwater trace \\\n    a.b --json | less\n```\n'
    )
    monkeypatch.setitem(PAGES, "page", page)
    found: Any = calls("page", "headwater")
    assert found == [["server", "--stor", "x.db"], ["lab", "envs"], ["trace", "a.b", "--json"]]
    assert [bool(taken(line)) for line in found] == [True, True, False]
