"""Incidents on the running pipeline: add a file with a `Story` in it, and its name here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, UsageError
from headwater.lab.stories.base import StoryResult
from headwater.lab.stories.cancel import Cancel
from headwater.lab.stories.history import History
from headwater.lab.stories.late import Late
from headwater.lab.stories.misaligned import Misaligned
from headwater.lab.stories.outage import Outage
from headwater.lab.stories.poison import Poison
from headwater.lab.stories.schema_change import SchemaChangeStory
from headwater.lab.stories.story_run import AWAY, StoryRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.lab import Lab
    from headwater.lab.stories.base import Story, StoryListener

STORIES: dict[str, Story] = {
    story.name: story
    for story in (
        Poison(),
        SchemaChangeStory(),
        Cancel(),
        Misaligned(),
        Late(),
        Outage(),
        History(),
    )
}
AWAY_SECONDS = 60.0


def play(
    name: str,
    lab: Lab,
    listener: StoryListener,
    *,
    seconds: float = AWAY_SECONDS,
    before_undo: Callable[[], None] | None = None,
) -> StoryResult:
    """Play a story and put everything back; a check that fails is in the result, not raised.

    `before_undo` is called when all went as it should, and may wait.
    """
    if name not in STORIES:
        raise UsageError(f"there is no story {name!r}", hint=f"stories: {', '.join(STORIES)}")
    story = STORIES[name]
    story_run = StoryRun(lab, listener, seconds)
    story_run.require()
    began, reasons, undone = time.monotonic(), [], True
    try:
        story.play(story_run)
        if before_undo is not None:
            before_undo()
    except (HeadwaterError, *AWAY) as error:
        reasons.append(_text(error))
        story_run.describe("It did not go as it should; putting everything back.")
    finally:
        try:
            story.undo(story_run)
        except (HeadwaterError, *AWAY) as error:
            reasons.append(f"not undone: {_text(error)}")
            undone = False
    return StoryResult(
        story=name,
        ok=not reasons,
        seconds=round(time.monotonic() - began, 1),
        look=story_run.page_links,
        checks=story_run.checks,
        text=story_run.text,
        undone=undone,
        reason="; ".join(reasons) or None,
    )


def _text(error: Exception) -> str:
    return (
        error.message if isinstance(error, HeadwaterError) else f"{type(error).__name__}: {error}"
    )
