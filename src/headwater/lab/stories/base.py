"""What a story is, and the result of one that was played."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from headwater.lab.stories.story_run import StoryRun


class Check(msgspec.Struct, kw_only=True):
    """One check of a story, and its result."""

    what: str
    ok: bool
    found: str = ""


class PageLink(msgspec.Struct, kw_only=True):
    """A page on which a person sees it too."""

    what: str
    url: str
    lasting: bool = True
    """Whether it shows this after the story too."""


class StoryResult(msgspec.Struct, kw_only=True):
    """How a story went."""

    story: str
    ok: bool
    seconds: float
    look: list[PageLink]
    checks: list[Check]
    text: list[str]
    undone: bool
    reason: str | None = None


class CheckOutcome(NamedTuple):
    """Whether something is as it should be, and how it is."""

    ok: bool
    found: str = ""


class StoryListener(Protocol):
    """Whoever follows a story while it is played."""

    def describe(self, text: str) -> None:
        """What happens now, in plain words."""

    def show(self, link: PageLink) -> None:
        """A page that shows it."""

    def wait(self, what: str, past: float, most: float) -> None:
        """Something is waited for; called again and again."""

    def checked(self, check: Check) -> None:
        """A check has a result."""


class Story(ABC):
    """An incident that can be played on a running pipeline, any number of times."""

    name: ClassVar[str]
    title: ClassVar[str]
    shows: ClassVar[str]
    """What lineage has to show, in one sentence."""

    @abstractmethod
    def play(self, story_run: StoryRun) -> None:
        """Make it happen, and check what the lineage server shows."""

    @abstractmethod
    def undo(self, story_run: StoryRun) -> None:
        """Put everything back; called however the play ended, so nothing may be taken for granted."""
