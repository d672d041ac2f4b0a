"""How a story is played: checks, reasons, and that everything is put back however it ends."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

from headwater.cli.lab.story import _show
from headwater.cli.lab.story import story as play_story
from headwater.errors import HeadwaterError, UsageError
from headwater.lab import process, stories
from headwater.lab.demo.row_counts import RowCounter
from headwater.lab.lab import Lab
from headwater.lab.stories.base import Check, CheckOutcome, PageLink, Story, StoryResult
from headwater.lab.stories.cancel import _none_runs
from headwater.lab.stories.misaligned import _side_by_side, _way_up
from headwater.lab.stories.schema_change import _history
from headwater.lab.stories.story_run import StoryRun, running_homes
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


class Listener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def describe(self, text: str) -> None:
        self.told.append(text)

    def show(self, link: PageLink) -> None:
        self.told.append(link.url)

    def wait(self, what: str, past: float, most: float) -> None:
        self.told.append(f"waiting for {what}, {past:.0f} of {most:.0f}")

    def checked(self, check: Check) -> None:
        self.told.append(f"{check.ok} {check.what}")


class Rain(Story):
    """It rains; the street is wet, or not."""

    name = "rain"
    title = "It rains"
    shows = "A wet street."

    def __init__(self, *wet: bool, dries: bool = True) -> None:
        self.wet = list(wet)
        self.dries = dries
        self.undone = 0

    def play(self, story_run: StoryRun) -> None:
        story_run.link_page("the street", "http://127.0.0.1:1/street")
        story_run.check(
            "the street is wet", lambda: CheckOutcome(self.wet.pop(0), "the street"), seconds=0.6
        )
        story_run.show("drip")

    def undo(self, story_run: StoryRun) -> None:
        self.undone += 1
        story_run.check("the street is dry", lambda: self.dries, seconds=0)


@pytest.fixture
def story_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that needs no pipeline."""
    monkeypatch.setattr(StoryRun, "require", lambda _story_run: None)


def _play(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoryResult:
    monkeypatch.setitem(stories.STORIES, "rain", story)
    return stories.play("rain", Lab(tmp_path / "lab"), Listener())


@pytest.mark.usefixtures("story_run")
def test_what_comes_true_later_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _play(Rain(False, True), tmp_path, monkeypatch)
    assert told.ok
    assert told.reason is None
    assert [check.ok for check in told.checks] == [True, True]
    assert told.text == ["drip"]
    assert told.look[0].url == "http://127.0.0.1:1/street"


@pytest.mark.usefixtures("story_run")
def test_what_never_comes_true_ends_it_with_a_reason_and_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Rain(*[False] * 20)
    told = _play(story, tmp_path, monkeypatch)
    assert not told.ok
    assert "the street is wet; found: the street" in (told.reason or "")
    assert [check.ok for check in told.checks] == [False, True]
    assert told.text == []
    assert story.undone == 1


@pytest.mark.usefixtures("story_run")
def test_a_story_that_is_kept_is_undone_once_enter_is_pressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Rain(True)
    undone: list[int] = []
    monkeypatch.setitem(stories.STORIES, "rain", story)
    monkeypatch.setattr("headwater.cli.lab.story.open_lab", lambda _home: Lab(tmp_path / "lab"))
    person = SimpleNamespace(readline=lambda: undone.append(story.undone))
    monkeypatch.setattr("sys.stdin", person)
    play_story("rain", tmp_path, keep=True)
    assert (undone, story.undone) == ([0], 1)
    assert "Press Enter" in capsys.readouterr().err
    story.wet = [True]
    play_story("rain", tmp_path)
    assert (undone, story.undone) == ([0], 2)


@pytest.mark.usefixtures("story_run")
def test_what_cannot_be_undone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = _play(Rain(True, dries=False), tmp_path, monkeypatch)
    assert not told.ok
    assert not told.undone
    assert "not undone: " in (told.reason or "")


@pytest.mark.usefixtures("story_run")
def test_a_service_that_is_away_is_a_reason_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Rain()

    def refused(_story_run: StoryRun) -> None:
        httpx.get("http://127.0.0.1:9/connectors", trust_env=False)

    monkeypatch.setattr(story, "play", refused)
    told = _play(story, tmp_path, monkeypatch)
    assert not told.ok
    assert (told.reason or "").startswith("ConnectError: ")
    assert story.undone == 1


@pytest.mark.usefixtures("story_run")
def test_an_interrupt_undoes_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Rain()

    def interrupted(_story_run: StoryRun) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(story, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _play(story, tmp_path, monkeypatch)
    assert story.undone == 1


def test_a_story_needs_a_running_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hint(*running: Path) -> str | None:
        monkeypatch.setattr("headwater.lab.stories.story_run.running_homes", lambda: [*running])
        with pytest.raises(UsageError, match="does not run: no postgres, kafka") as refused:
            stories.play("poison", Lab(tmp_path / "lab"), Listener())
        return refused.value.hint

    assert hint() == "start it in another terminal: headwater demo"
    # A shell that has done a lab names its home, which is wiped by now.
    assert hint(tmp_path / "a demo") == f"one that runs: --home '{tmp_path / 'a demo'}'"


def test_an_unknown_story_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(HeadwaterError, match="no story") as refused:
        stories.play("fairy-tale", Lab(tmp_path / "lab"), Listener())
    assert "poison" in (refused.value.hint or "")


def test_the_running_pipeline_is_found_by_itself(tmp_path: Path) -> None:
    assert tmp_path not in running_homes()
    env = process.environment(tmp_path, "supplier-stats", {})
    stream = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=env)
    try:
        wait_until(lambda: tmp_path in running_homes(), seconds=120, what="the stream's mark")
    finally:
        stream.communicate(b"\n")
    assert tmp_path not in running_homes()


def test_the_way_up_leads_to_where_the_data_comes_from() -> None:
    edges = [
        {"origin": origin, "destination": destination}
        for origin, destination in (
            ("dataset:postgres://p:1:shop.public.bids", "job:shop:source"),
            ("dataset:postgres://p:1:shop.public.orders", "job:shop:source"),
            ("job:shop:source", "dataset:kafka://k:1:orders"),
            ("dataset:kafka://k:1:orders", "job:shop:sum.overwrite_by_expression.sums"),
            ("job:shop:sum.create_table.sums", "dataset:s3://w:default/sums"),
            ("job:shop:sum.overwrite_by_expression.sums", "dataset:s3://w:default/sums"),
        )
    ]
    source = "dataset:postgres://p:1:shop.public.orders"
    assert _way_up("dataset:s3://w:default/sums", edges, source) == [
        "dataset:s3://w:default/sums",
        "job:shop:sum.overwrite_by_expression.sums",
        "dataset:kafka://k:1:orders",
        "job:shop:source",
        source,
    ]


def test_two_graphs_stand_side_by_side() -> None:
    left = ["dataset:kafka://k:1:orders", "job:shop:load", "dataset:hive://h:1:default.orders"]
    right = ["dataset:s3://w:default/orders", "job:shop:sum", "dataset:s3://w:default/sums"]
    lines = _side_by_side("writer", left, "reader", right).splitlines()
    assert lines[0].split() == ["writer", "reader"]
    assert lines[1:3] == ["kafka://k:1 orders", "  ↓ load"]
    # The last of the one stands beside the first of the other: the same data, twice.
    assert lines[3].split() == ["hive://h:1", "default.orders", "s3://w", "default/orders"]
    assert [line.strip() for line in lines[4:]] == ["↓ sum", "s3://w default/sums"]


def test_a_schema_history_is_told_in_its_words() -> None:
    def dataset(_name: str, _part: str, **_query: Any) -> dict[str, Any]:
        change = {"kind": "added", "column": "season", "text": "season added, string"}
        return {"versions": [{"changes": [change]}]}

    story_run = cast("StoryRun", SimpleNamespace(lineage=SimpleNamespace(dataset=dataset)))
    assert _history(story_run, "season") == (True, "season added, string")
    assert not _history(story_run, "colour").ok


def test_a_page_that_shows_it_only_meanwhile_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = [PageLink(what="the job", url="/a"), PageLink(what="it", url="/b", lasting=False)]
    _show(
        StoryResult(story="rain", ok=True, seconds=1, look=looks, checks=[], text=[], undone=True)
    )
    lines = capsys.readouterr().out.splitlines()
    assert "the job: /a" in lines
    assert "it: /b (only while the story plays)" in lines


@pytest.mark.parametrize(
    "job",
    [
        "supplier-stats",
        "supplier-stats-stream",
        "supplier_stats_stream",
        "iceberg_ingestion_stream.merge_into_iceberg_table.default_orders",
    ],
)
def test_what_a_cancelled_stream_leaves_running_is_noticed_by_any_name_of_it(job: str) -> None:
    lineage = SimpleNamespace(running=lambda: ["supplier_stats", "orders-source", job])
    found = _none_runs(cast("StoryRun", SimpleNamespace(lineage=lineage)))
    assert found == CheckOutcome(False, f"RUNNING: {job}")
    lineage.running = lambda: ["supplier_stats", "supplier_stats.overwrite", "orders-source"]
    assert _none_runs(cast("StoryRun", SimpleNamespace(lineage=lineage))).ok


def test_metadata_that_the_server_deleted_first_is_no_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import pyiceberg.catalog

    def gone(location: str) -> None:
        raise FileNotFoundError(location)

    monkeypatch.setattr(pyiceberg.catalog, "load_catalog", lambda *_, **__: "the catalog")
    keys = SimpleNamespace(catalog="lab", s3_access_key="a", s3_secret_key="b")
    lab = SimpleNamespace(home=SimpleNamespace(settings=keys), url=lambda _: "http://127.0.0.1:9")
    assert RowCounter(cast("Any", lab), "").catalog == "the catalog"
    files = cast("Any", SimpleNamespace(delete=gone))
    pyiceberg.catalog.delete_files(files, {"s3://w/00001.metadata.json"}, "metadata")
    assert caplog.records == []
