"""Whose work an execution is, by facts alone: where they do not decide, nobody is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.emit import once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.action import Action
    from headwater.spark.bridge import Bridge
    from headwater.spark.model import Dataset

_RUNNING = "spark.sql.execution.id", "spark.sql.execution.root.id"


class Marks(NamedTuple):
    """What sets one call apart: the plans made since it began, and its thread in the JVM."""

    first: int
    thread: Any
    pinned: bool

    @staticmethod
    @once.quiet("marking a call")
    def of(bridge: Bridge) -> Marks:
        """The marks of a call that is about to be made by this thread."""
        return Marks(bridge.next_plan, bridge.thread if bridge.pinned else None, bridge.pinned)

    @once.quiet("asking a thread for its executions")
    def running(self) -> list[int]:
        """The executions that the call's own thread is in, the inner one first."""
        if self.thread is None:
            return []
        found = (self.thread.getProperty(key) for key in _RUNNING)
        return list(dict.fromkeys(int(number) for number in found if number is not None))


@once.quiet("comparing errors")
def same_error(raised: BaseException | None, heard: Any) -> bool:
    """Whether what Python raised is the very throwable that Spark tells of."""
    if raised is None or heard is None:
        return False
    thrown = getattr(raised, "_origin", None) or getattr(raised, "java_exception", None)
    return thrown is not None and bool(heard.equals(thrown))


def aimed(actions: list[Action], outputs: Iterable[Dataset]) -> list[Action]:
    """Those that may write there: one alone, when it says so and every other names another place."""
    written = list(outputs)
    able = [action for action in actions if not action.reads]
    targets = [action.entry.target if action.entry else "" for action in able]
    hits = [
        action
        for action, target in zip(able, targets, strict=True)
        if target and any(_is(target, dataset) for dataset in written)
    ]
    return hits if len(hits) == 1 and all(targets) else able


def _is(target: str, dataset: Dataset) -> bool:
    wanted = target.rstrip("/")
    for name in (dataset.name, *(link.name for link in dataset.symlinks)):
        known = name.rstrip("/")
        if wanted == known:
            return True
        for one, other in ((wanted, known), (known, wanted)):
            if one.endswith((f"/{other.lstrip('/')}", f".{other}", f":{other}")):
                return True
    return False
