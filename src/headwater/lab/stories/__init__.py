"""Incidents on the running pipeline: add a file with a `Story` in it, and its name here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, UsageError
from headwater.lab.stories.base import StoryResult
from headwater.lab.stories.cancel import Cancel
from headwater.lab.stories.late import Late
from headwater.lab.stories.misaligned import Misaligned
from headwater.lab.stories.outage import Outage
from headwater.lab.stories.poison import Poison
from headwater.lab.stories.schema_change import SchemaChange
from headwater.lab.stories.stage import AWAY, Stage

if TYPE_CHECKING:
    from headwater.lab.lab import Lab
    from headwater.lab.stories.base import Story, StoryListener

STORIES: dict[str, Story] = {
    story.name: story
    for story in (Poison(), SchemaChange(), Cancel(), Misaligned(), Late(), Outage())
}
AWAY_SECONDS = 60.0


def play(
    name: str, lab: Lab, audience: StoryListener, *, seconds: float = AWAY_SECONDS
) -> StoryResult:
    """Play a story and put everything back; a check that fails is told, not raised."""
    if name not in STORIES:
        raise UsageError(f"there is no story {name!r}", hint=f"stories: {', '.join(STORIES)}")
    story = STORIES[name]
    stage = Stage(lab, audience, seconds)
    stage.require()
    began, reasons, undone = time.monotonic(), [], True
    try:
        story.play(stage)
    except (HeadwaterError, *AWAY) as error:
        reasons.append(_said(error))
        stage.tell("It did not go as it should; putting everything back.")
    finally:
        try:
            story.undo(stage)
        except (HeadwaterError, *AWAY) as error:
            reasons.append(f"not undone: {_said(error)}")
            undone = False
    return StoryResult(
        story=name,
        ok=not reasons,
        seconds=round(time.monotonic() - began, 1),
        look=stage.looks,
        checks=stage.checks,
        text=stage.text,
        undone=undone,
        reason="; ".join(reasons) or None,
    )


def _said(error: Exception) -> str:
    return (
        error.message if isinstance(error, HeadwaterError) else f"{type(error).__name__}: {error}"
    )
