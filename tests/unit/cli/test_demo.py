"""What a person sees of `headwater demo`: steps above, counts below, nothing twice."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from headwater.cli import demo
from headwater.lab.demo.verdict import HIT_COLUMNS, HIT_JOBS, Judge, hit_items, schema_item

from .screen import watched

if TYPE_CHECKING:
    from pathlib import Path

# A gauge whose stages answer at once, and one whose service is away.
PROGRAM = """
import itertools, time
from headwater.cli import demo
from headwater.cli.output import out
demo.POLL_SECONDS = 0.05
demo.LINE_SECONDS = 0.1
class RowCounter:
    def stages(self):
        numbers = itertools.count(1000)
        return {"Kafka       orders": lambda: next(numbers), "S3          raw": lambda: 1 / 0}
view = demo.DemoView()
view.changed("kafka", "starting")
view.follow(RowCounter())
while not view.totals().get("Kafka       orders", 0) > 1002:
    time.sleep(0.01)
view.changed("orders-iceberg-sink", "running")
view.note = "the batch job runs"
time.sleep(0.6)
view.note = ""
with view.held():
    out.print("the verdict")
time.sleep(0.6)
view.notify("[yellow]later[/]")
view.stop()
"""


def test_counts_stand_below_what_was_said_and_only_once() -> None:
    code, lines = watched(PROGRAM)
    assert code == 0
    said = [line for line in lines if line]
    assert said[0].split()[2:] == ["kafka", "starting"]
    assert said[1].split()[2:] == ["orders-iceberg-sink", "running"]
    assert said[2:4] == ["the verdict", "later"]
    assert said[4].split() == ["rows", "through", "each", "stage", "rows", "a", "second"]
    kafka = said[5].split()
    assert kafka[:2] == ["Kafka", "orders"]
    assert int(kafka[2].replace(",", "")) > 1002
    assert float(kafka[3].replace(",", "")) > 0
    assert said[6].split() == ["S3", "raw", "…"]
    assert said[7].endswith(" s")
    assert len(said) == 8


def test_a_narrow_terminal_breaks_no_count() -> None:
    code, lines = watched(PROGRAM, columns=50)
    assert code == 0
    assert len([line for line in lines if line.startswith("Kafka ")]) == 1


def test_elsewhere_there_is_a_line_now_and_then() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "the verdict\n"
    lines = ran.stderr.splitlines()
    assert any("Kafka orders 1,0" in line for line in lines)
    assert "\x1b" not in ran.stderr


@pytest.mark.parametrize(
    ("versions", "seen"),
    [
        ([], False),
        (["id key"], True),
        (["id key", "id", "id key"], False),
        (["id key", "id"], False),
        (["id coupon", "id"], True),
        (["id", "id coupon", "id"], True),
        (["id x coupon", "id"], False),
    ],
)
def test_the_verdict_counts_the_versions_of_a_schema(versions: list[str], seen: bool) -> None:
    told = [{"fields": [{"name": n, "type": "int"} for n in v.split()]} for v in versions]
    assert schema_item("kafka orders", {"versions": told}).seen is seen


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        ({"source": "carries", "stream": "breaks", "batch": "breaks"}, []),
        ({"source": "carries", "stream": "breaks"}, ["drop, breaks: batch, stream"]),
        ({"source": "carries", "stream": "breaks", "batch": "rows"}, ["drop, breaks: batch, stream", "drop, rows: none"]),
        ({"source": "carries", "stream": "breaks", "batch": "breaks", "x": "unknown"}, ["drop, unknown: none"]),
        ({}, ["drop, carries: source", "drop, breaks: batch, stream"]),
    ],
)  # fmt: skip
def test_the_verdict_takes_no_more_and_no_less_than_the_jobs_that_are_hit(
    found: dict[str, str], missing: list[str]
) -> None:
    wanted = {"source": "carries", "stream": "breaks", "batch": "breaks"}
    items = hit_items("drop", wanted, found)
    assert [one.what for one in items if not one.seen] == missing
    assert all(one.state for one in items if not one.seen)


def test_the_verdict_tells_jobs_columns_and_rows_that_are_hit_apart() -> None:
    found = {
        "jobs": [{"name": name, "effect": effect} for name, effect in HIT_JOBS.items()],
        "columns": [
            {"dataset": dataset, "column": column or None, "effect": effect}
            for (dataset, column), effect in HIT_COLUMNS.items()
        ],
    }
    lineage = SimpleNamespace(impact=lambda *_: found, node=lambda name: name)
    items = Judge._impact(cast("Any", SimpleNamespace(lineage=lineage)))
    assert all(item.seen for item in items)
    said = [item.what.removeprefix("impact of dropping postgres shop.public.orders.price ") for item in items]  # fmt: skip
    assert [one.partition(":")[0] for one in said] == [
        "on jobs, carries", "on jobs, breaks", "on jobs, changes", "on jobs, unknown",
        "on columns, carries", "on columns, changes", "on columns, rows",
    ]  # fmt: skip
    assert said[-1].startswith("on columns, rows: rows of exports supplier_stats, rows of kafka ")


# The pipeline stands in: a real one shows everything in time.
SLOW = """
import sys
from types import SimpleNamespace
from headwater.cli import demo
from headwater.cli.main import main
from headwater.lab.demo import run
from headwater.lab.demo.verdict import Verdict
parts = dict.fromkeys(("jobs", "edges", "columns", "schemas", "impact", "lake"), [])
looks = (Verdict(ok=not missing, missing=missing, **parts) for missing in {looks})
judge = SimpleNamespace(verdict=lambda: next(looks), page=lambda: "http://127.0.0.1/graph")
calls = dict.fromkeys(("start", "flow", "stop", "summarise"), lambda *_, **__: None)
counter = SimpleNamespace(stages=dict, rows=lambda _: 0)
home = SimpleNamespace(settings=SimpleNamespace(secure=False))
pages = {{"supplier-stats": "http://127.0.0.1:4040"}}
row = lambda name: SimpleNamespace(service=name, page=pages.get(name))
lab = SimpleNamespace(home=home, status=lambda names: [row(name) for name in names])
run.Demo = lambda *_: SimpleNamespace(judge=judge, counter=counter, lab=lab, **calls)
def looked_at(*_, **__):
    raise KeyboardInterrupt
demo.VERIFY_SECONDS, demo._order, demo._invite = {seconds}, lambda *_: None, looked_at
sys.exit(main())
"""


def judged(folder: Path, looks: list[list[str]], seconds: float, *options: str) -> tuple[int, str]:
    """A demo that misses these things at one look after the other: its exit code and its words."""
    program = SLOW.format(looks=looks, seconds=seconds)
    ran = subprocess.run(
        [sys.executable, "-c", program, "demo", "--home", "lab", *options],
        capture_output=True, text=True, check=False, timeout=60, cwd=folder,
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("options", "code"), [(["--once"], 1), pytest.param([], 0, marks=pytest.mark.full)]
)
def test_a_slow_machine_ends_only_the_demo_that_is_judged(
    options: list[str], code: int, tmp_path: Path
) -> None:
    ended, words = judged(tmp_path, [["a job"], ["a job"]], 0, *options)
    assert "nothing more was seen for 0 s, not yet: a job" in words
    assert "\nstopped; its data is kept in lab\n" in words
    assert ended == code


def test_a_machine_that_is_slow_but_gets_on_is_waited_for(tmp_path: Path) -> None:
    """Each look is a second after the last one, and all of them are longer than the time for one."""
    ended, words = judged(tmp_path, [["a", "b", "c"], ["a", "b"], ["a"], []], 1.5, "--once")
    assert ended == 0, words
    assert "The graph: http://127.0.0.1/graph\n" in words
    assert words.count("The page of ") == 1
    assert "The page of supplier-stats: http://127.0.0.1:4040\n" in words


@pytest.mark.parametrize(
    ("secure", "line"),
    [
        (False, "export OPENLINEAGE_URL=http://127.0.0.1:5000 HEADWATER_LAB_HOME='/a [lab]'"),
        (True, """eval "$(headwater lab env --home '/a [lab]')\""""),
    ],
)
def test_questions_need_no_more_than_the_line_that_is_printed(
    line: str, capsys: pytest.CaptureFixture[str], *, secure: bool
) -> None:
    """A server that asks for tokens answers no question without one, and no terminal shows it."""
    settings = SimpleNamespace(secure=secure, logins=SimpleNamespace(server="hw_everything"))
    lab = SimpleNamespace(
        home=SimpleNamespace(root="/a [lab]", settings=settings),
        context=SimpleNamespace(url=lambda _: "http://127.0.0.1:5000"),
    )
    demo._invite(cast("Any", SimpleNamespace(lab=lab)), opens=False)
    assert f"in another terminal: {line}\n" in (said := capsys.readouterr().out)
    assert "hw_everything" not in said
