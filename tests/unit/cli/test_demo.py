"""What a person sees of `headwater demo`: steps above, counts below, nothing twice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headwater.lab.demo.verdict import schema_item

from .screen import watched

# A gauge whose stages answer at once, and one whose service is away.
PROGRAM = """
import itertools, time
from headwater.cli import demo
from headwater.cli.output import out
demo.LOOK_SECONDS = 0.05
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
