"""Whose work an execution is: facts decide, and where they do not, nobody is named."""

from __future__ import annotations

from headwater.spark.action import Action
from headwater.spark.entries import Entry
from headwater.spark.model import Dataset, Symlink
from headwater.spark.whose import Marks, aimed, same_error


class Thrown:
    """A throwable: equal to itself alone."""

    def equals(self, other: object) -> bool:
        return self is other


class Raised(Exception):
    def __init__(self, origin: Thrown) -> None:
        super().__init__("raised")
        self._origin = origin


def action(target: str = "", kind: str = "write", first: int = 0) -> Action:
    made = Action(Entry(kind, "save", target), 0.0)
    made.marks = Marks(first, None, True)
    return made


def test_a_plan_made_after_the_call_is_not_its_own() -> None:
    last, following = action(first=3), action(first=7)
    last.past = 7
    assert [last.made(number) for number in (2, 3, 6, 7)] == [False, True, True, False]
    assert following.made(7)


def test_one_that_says_where_is_told_from_those_that_say_elsewhere() -> None:
    one, ten = action("/data/out_1"), action("/data/out_10")
    assert aimed([one, ten], [Dataset("file", "/data/out_10")]) == [ten]
    assert aimed([one, ten], [Dataset("file", "/data/out_1")]) == [one]


def test_tables_and_buckets_are_known_by_their_whole_words() -> None:
    table, other = action("db.orders"), action("db.old_orders")
    link = Symlink("hive://h", "lab.db.orders")
    written = Dataset("s3://lake", "w/db/orders-1", symlinks=(link,))
    assert aimed([table, other], [written]) == [table]
    away = action("s3a://lake/raw/orders")
    assert aimed([away, other], [Dataset("s3://lake", "raw/orders")]) == [away]


def test_nobody_is_named_while_another_may_write_there() -> None:
    says, silent, again = action("/out"), action(), action("/out")
    out = [Dataset("file", "/out")]
    assert aimed([says, silent], out) == [says, silent]
    assert aimed([says, again], out) == [says, again]
    assert aimed([silent, action(kind="read")], out) == [silent]


def test_an_error_is_known_by_the_throwable_itself() -> None:
    thrown = Thrown()
    assert same_error(Raised(thrown), thrown)
    assert not same_error(Raised(Thrown()), thrown)
    assert not same_error(ValueError(), thrown)
    assert not same_error(None, thrown)
