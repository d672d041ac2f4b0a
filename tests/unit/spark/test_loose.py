"""Executions that nobody called for: runs of their own, unless a command around them is heard of."""

from __future__ import annotations

from headwater.spark.action import Action
from headwater.spark.entries import Entry
from headwater.spark.loose import Loose
from headwater.spark.model import Dataset, PlanLineage


def heard(name: str, began: float) -> Action:
    made = Action(Entry("write", "save"), began)
    made.lineage = PlanLineage(outputs=(Dataset("file", name),))
    return made


def test_who_waits_is_let_go_when_all_are_settled() -> None:
    loose = Loose()
    assert loose.wait(0)
    loose.add(heard("/out", 1.0))
    assert loose
    assert not loose.wait(0)
    assert [one.began for one in loose.ripe([], at_once=True)] == [1.0]
    assert loose.wait(0)
    assert not loose


def test_one_is_not_ripe_before_its_time() -> None:
    loose = Loose()
    loose.add(heard("/out", 1.0))
    assert not list(loose.ripe([]))
    assert not loose.wait(0)


def test_the_command_around_a_step_stands_for_it() -> None:
    loose = Loose()
    loose.add(heard("/out", 2.0))
    loose.add(heard("/other", 2.0))
    loose.add(heard("/out", 1.0))
    assert [one.began for one in loose.ripe([], at_once=True)] == [2.0, 1.0]
