"""Which topics a connector works on: those that Connect reports are observed, those configured derived."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import split
from headwater.connect.derive.family import SourceTopic
from headwater.lineage.model import Evidence

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context
    from headwater.connect.derive.family import SourceLineage
    from headwater.connect.transforms import TopicName

_BOOKKEEPING = ("__consumer_offsets", "__transaction_state", "__debezium-heartbeat.")
_LEGAL = re.compile(r"[A-Za-z0-9._\-]{1,249}")
_DEAD = "errors.deadletterqueue.topic.name"


def sink_topics(context: Context, *, known: bool) -> list[tuple[str, Evidence]]:
    """The topics a sink reads: all that are configured, observed where Connect reports them.

    A topic that Connect reports and that is not configured is one of an earlier configuration, and
    left out. Of a connector that is not known this is unknown, and it is shown too.
    """
    seen = [topic for topic in _active(context) if topic != context.config.get(_DEAD)]
    found = _configured(context, seen)
    if not known:
        names = {topic for topic, _ in found}
        found += [(topic, _seen(context)) for topic in seen if topic not in names]
    return found


def _configured(context: Context, seen: list[str]) -> list[tuple[str, Evidence]]:
    config = context.config
    listed = [topic for topic in split(config.get("topics", "")) if legal(topic)]
    if not listed and (expression := context.expression("topics.regex")):
        kept = [topic for topic in seen if expression.matches(topic)]
        there = context.metadata.topics()
        if there is None and not kept:
            context.problem("topics.regex: no topic was seen yet and the broker cannot be asked")
        how = Evidence("broker topics", "topics.regex")
        unwritten = [
            (topic, how)
            for topic in sorted(there or ())
            if topic not in kept and not topic.startswith("__") and expression.matches(topic)
        ]
        return [*((topic, _seen(context)) for topic in kept), *unwritten]
    if not listed and not config.get("topics.regex"):
        extra = _declared(context)
        return [(t, _seen(context)) for t in seen] or extra
    how = Evidence("config key", "topics")
    return [(topic, _seen(context) if topic in seen else how) for topic in dict.fromkeys(listed)]


def source_topics(
    context: Context, reading: SourceLineage
) -> list[tuple[str, SourceTopic | None, Evidence]]:
    """The topics a source writes, each with what it reads for it, as far as that is known.

    What is configured stays, observed or not; of the names that transforms may give the topic of
    one table, those that Connect reports.
    """
    seen = [t for t in _active(context) if not reading.hidden(t)]
    found: list[tuple[str, SourceTopic | None, Evidence]] = []
    for origin in reading.origins:
        named = [
            one for name in context.chain.names(origin.topic) for one in _named(context, name, seen)
        ]
        observed = [one for one in named if one[0] in seen]
        found += [(topic, origin, how) for topic, how in observed or named]
    known = {topic for topic, _, _ in found}
    for topic in seen:
        if topic not in known:
            found += _reversed(context, reading, topic)
    # A list may spell a table in other letters than the database, which names the topic.
    spelled = {topic.lower() for topic, _, _ in found if topic in seen}
    found = [item for item in found if item[0] in seen or item[0].lower() not in spelled]
    if seen and not found:
        return [(topic, _single(reading), _seen(context)) for topic in seen]
    if not found and not reading.origins:
        return [(topic, _single(reading), how) for topic, how in _declared(context)]
    return found


def _seen(context: Context) -> Evidence:
    """What says that a connector has worked on a topic: Connect, or in a preview a person."""
    connector = context.connector
    if connector.topics_given:
        return Evidence("option", connector.topics_given)
    return Evidence("runtime topics", f"/connectors/{connector.name}/topics", observed=True)


def legal(topic: str) -> bool:
    """Whether Kafka would take the name; anything else in a key names no topic."""
    return _LEGAL.fullmatch(topic) is not None


def _active(context: Context) -> list[str]:
    topics = dict.fromkeys(context.connector.active_topics)
    return [topic for topic in topics if not topic.startswith(_BOOKKEEPING) and legal(topic)]


def _named(context: Context, name: TopicName, seen: list[str]) -> list[tuple[str, Evidence]]:
    if name.exact:
        if not legal(name.text):
            return []
        if name.text in seen:
            return [(name.text, _seen(context))]
        detail = ", ".join(context.read) or "the default"
        return [(name.text, Evidence("config key", detail))]
    fitting = [topic for topic in seen if name.fits(topic)]
    if fitting:
        return [(topic, _seen(context)) for topic in fitting]
    if name.open:
        context.problem("the rows decide which topics are written; none was seen yet")
        return []
    context.problem("the time is part of the topics' names; they are shown as one")
    return [(name.text, Evidence("rule", "one topic for all times"))] if legal(name.text) else []


def _reversed(
    context: Context, reading: SourceLineage, topic: str
) -> list[tuple[str, SourceTopic | None, Evidence]]:
    if reading.reverse is None:
        unexplained = reading.partial or (context.chain.routes and not reading.origins)
        return [(topic, None, _seen(context))] if unexplained else []
    guesses = [topic, *(reading.candidates(topic) if reading.candidates else ())]
    hits = [
        SourceTopic(raw, place, reading.shape)
        for raw in dict.fromkeys(guesses)
        if any(name.fits(topic) for name in context.chain.names(raw))
        and (place := reading.reverse(raw))
    ]
    if len(hits) == 1:
        return [(topic, hits[0], _seen(context))]
    if (context.chain.routes or context.chain.unknown) and not reading.closed:
        context.problem(f"the transforms hide which table the topic {topic} comes from")
        return [(topic, None, _seen(context))]
    return []


def _single(reading: SourceLineage) -> SourceTopic | None:
    places = {origin.place.id: origin for origin in reading.origins if origin.place}
    if len(places) == 1:
        return next(iter(places.values()))
    return SourceTopic("", reading.place) if reading.place else None


def _declared(context: Context) -> list[tuple[str, Evidence]]:
    """The topics that a user names for us, where nothing else names any."""
    from headwater.connect.derive.overrides import Overrides

    given = Overrides(context.config)
    why = Evidence("user mapping", given.where("topics"))
    return [(topic, why) for topic in given.topics if legal(topic)]
