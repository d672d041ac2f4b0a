"""The errors a user may see: a message with what is wrong, and a hint with what to do.

HeadwaterError            something failed                              exit code 1
├── UsageError            the request itself is wrong                   exit code 2
├── EnvironmentProblem    this machine lacks or denies something        exit code 3
└── NotFoundError         what was asked for is not there               exit code 4

Exit codes 5 and 6 are no errors: a question was answered, and the answer is that something breaks
(5), or that doctor found something (6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class HeadwaterError(Exception):
    """A failure with a message for people and, where there is one, a way out of it."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.names = tuple(names)
        """Known names near one that was wrong; the hint lists them for people."""


class UsageError(HeadwaterError):
    """What was asked for cannot be asked."""

    exit_code = 2


class EnvironmentProblem(HeadwaterError):
    """This machine lacks or denies something the work needs."""

    exit_code = 3


class NotFoundError(HeadwaterError):
    """What was asked for is not there; the hint has the nearest names."""

    exit_code = 4


def missing_package(name: str | None, extra: str) -> EnvironmentProblem:
    """A package that one of our extras brings is not installed."""
    return EnvironmentProblem(
        f"this needs the package {name}, which is not installed",
        hint=f"pip install 'headwater[{extra}]'",
    )
