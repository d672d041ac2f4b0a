"""Where the lake's tables stand, and how rows are replaced."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

offsets = st.dictionaries(
    st.sampled_from(["t", "u"]), st.dictionaries(st.sampled_from("012"), st.integers(0, 9))
)


def program() -> Any:
    return importlib.import_module("lake_store")


@given(offsets, offsets)
def test_a_position_never_goes_back(one: Any, other: Any) -> None:
    further = program().further
    found = further(one, other)
    assert further(other, one) == found
    assert further(found, one) == found == further(found, other)
    for given_offsets in (one, other):
        for topic, parts in given_offsets.items():
            assert all(found[topic][part] >= offset for part, offset in parts.items())


def test_rows_are_merged_by_their_key() -> None:
    sql = program().merge_sql("c.n.edges", "source", ["node", "k"], ("node", "k", "v"))
    assert sql.startswith("MERGE INTO c.n.edges t USING source s ON t.node = s.node AND t.k = s.k ")
    assert "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET" in sql
    assert "WHEN NOT MATCHED AND NOT s.gone THEN INSERT (node, k, v)" in sql


def test_rows_are_removed_by_their_key() -> None:
    sql = program().merge_sql("c.n.events", "source", ["topic"], ())
    assert (
        sql
        == "MERGE INTO c.n.events t USING source s ON t.topic = s.topic WHEN MATCHED THEN DELETE"
    )


def test_every_step_up_to_the_newest_is_there() -> None:
    store = program()
    assert sorted(store.STEPS) == list(range(2, store.NEWEST + 1))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("5 minutes", 300), ("1 hour", 3_600), ("7d", 604_800), ("0.5h", 1_800)],
)
def test_durations_as_people_and_spark_write_them(text: str, seconds: float) -> None:
    assert importlib.import_module("options").duration(text) == seconds


def test_what_a_program_cannot_do_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = importlib.import_module("lake_maintain").arguments()
    for words in (
        ["--keep-snapshots", "0"],
        ["--older-than", "7 weeks"],
        ["--orphans-older-than", "2h"],
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert words[1] in capsys.readouterr().err
    found = parser.parse_args([])
    assert (found.keep_snapshots, found.older_than) == (10, 7 * 86_400)


class Session:
    """Answers statements as Spark does while another program changes the same files."""

    def __init__(self, *errors: str) -> None:
        self.conf = SimpleNamespace(set=lambda *_: None)
        self.errors = list(errors)
        self.asked = 0

    def sql(self, _: str) -> str:
        self.asked += 1
        if self.errors:
            raise PySparkException(self.errors.pop(0))
        return "done"


def test_a_statement_is_tried_again_only_if_files_were_changed_meanwhile() -> None:
    store = program()
    conflict = "org.apache.iceberg.exceptions.ValidationException: Missing required files to delete"
    busy = Session(conflict, conflict)
    assert store.Lake(busy, "c", "n").attempt("MERGE") == "done"
    assert busy.asked == 3
    for session, asked in (
        (Session("no such table"), 1),
        (Session(*[conflict] * 9), store.TRIES),
    ):
        with pytest.raises(PySparkException):
            store.Lake(session, "c", "n").attempt("MERGE")
        assert session.asked == asked


class Rows:
    """As much of a data frame as a purge looks at."""

    def __init__(self, *found: str) -> None:
        self.found = [*found]

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self

    def count(self) -> int:
        return len(self.found)

    def isEmpty(self) -> bool:  # noqa: N802  (as Spark has it)
        return not self.found


def test_a_purge_that_came_to_no_end_is_carried_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are gone, and so is what they were about: all is computed and let go of again."""
    purge, tables = (importlib.import_module(n) for n in ("lake_purge", "headwater.lake.tables"))
    named, nodes, done = [Rows("a record"), Rows()], Rows("every node"), []
    properties: dict[str, str] = {}
    emptied: list[str] = []
    lake: Any = SimpleNamespace(
        name=lambda table: table.name,
        table_property=lambda _, key: properties.get(key),
        note=lambda _, key, value: properties.update({key: value}),
        position=lambda *_: {"t": {"0": 1}},
        remove=lambda table, _: done.append(table.name),
        attempt=lambda sql: emptied.append(sql.rpartition(" ")[2]),
        spark=SimpleNamespace(table=lambda _: nodes),
    )

    def fails(*_: Any) -> None:
        raise OSError("the program was killed")

    monkeypatch.setattr(purge, "F", SimpleNamespace(lit=str))
    monkeypatch.setattr(purge, "_naming", lambda *_: named.pop(0))
    monkeypatch.setattr(purge.lake_derive, "compute", fails)
    with pytest.raises(OSError, match="killed"):
        purge._remove(lake, nodes, nodes, {"digest": 1})
    assert done == ["events"]
    named[:] = [Rows(), Rows()]
    monkeypatch.setattr(purge.lake_derive, "compute", lambda _, what, __: done.append(what))
    monkeypatch.setattr(purge, "forget", lambda _, table: done.append(table.name))
    assert purge._remove(lake, nodes, nodes, {"digest": 1}) == 0
    assert done == ["events", nodes, *(table.name for table in tables.TABLES)]
    assert emptied == [table.name for table in tables.ANALYSIS]
    assert properties == {purge.BEGUN: ""}
    named[:] = [Rows(), Rows()]
    assert purge._remove(lake, nodes, nodes, {"digest": 1}) == 0
    assert len(done) == 2 + len(tables.TABLES), "and once only"


def test_what_a_lost_executor_held_is_computed_again_and_nothing_else_is_tried_twice() -> None:
    lake = program().Lake(Session(), "c", "n")
    lost = "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_7_0 not found!"
    errors = [PySparkException(lost), PySparkException(lost)]

    def work(_: Any) -> None:
        if errors:
            raise errors.pop()

    lake.despite_losses(work)
    assert not errors
    errors += [PySparkException("another"), PySparkException(lost)]
    with pytest.raises(PySparkException, match="another"):
        lake.despite_losses(work)
    errors += [PySparkException(lost)] * 9
    with pytest.raises(PySparkException, match="not found"):
        lake.despite_losses(work)
