"""A case: a small job, and the truth about its lineage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .stage import Stage

Job = Callable[["Stage"], Any]


class Case(NamedTuple):
    """A job and its truth; `stream` when the job gives a started query back."""

    name: str
    truth: str
    job: Job
    stream: bool = False


CASES: list[Case] = []


def case(truth: str, *, stream: bool = False) -> Callable[[Job], Job]:
    """Make a job a case."""

    def register(job: Job) -> Job:
        name = getattr(job, "__name__", "job")
        assert all(known.name != name for known in CASES), name
        CASES.append(Case(name, truth, job, stream))
        return job

    return register
