"""Which topics a connector works on: what was seen first, then what the configuration says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .families.base import Origin
from .model import Evidence
from .values import split

if TYPE_CHECKING:
    from .families.base import Reading
    from .plan import Plan
    from .transforms import Name

SEEN = Evidence("runtime topics", "/connectors/{name}/topics", observed=True)
_BOOKKEEPING = ("__consumer_offsets", "__transaction_state", "__debezium-heartbeat.")
_LEGAL = re.compile(r"[A-Za-z0-9._\-]{1,249}")
_DEAD = "errors.deadletterqueue.topic.name"


def sink_topics(plan: Plan) -> list[tuple[str, Evidence]]:
    """The topics a sink reads: of those it was seen to read the ones its configuration still says."""
    config = plan.config
    seen = [topic for topic in _active(plan) if topic != config.get(_DEAD)]
    listed = [topic for topic in split(config.get("topics", "")) if legal(topic)]
    if not listed and (expression := plan.expression("topics.regex")):
        kept = [topic for topic in seen if expression.matches(topic)]
        if kept:
            return [(topic, SEEN) for topic in kept]
        there = plan.world.topics()
        if there is None:
            plan.problem("topics.regex: no topic was seen yet and the broker cannot be asked")
            return []
        how = Evidence("broker topics", "topics.regex")
        return [
            (topic, how)
            for topic in sorted(there)
            if not topic.startswith("__") and expression.matches(topic)
        ]
    if not listed and not config.get("topics.regex"):
        extra = _declared(plan)
        return [(t, SEEN) for t in seen] or extra
    kept = [topic for topic in listed if topic in seen]
    if kept:
        return [(topic, SEEN) for topic in kept]
    return [(topic, Evidence("config key", "topics")) for topic in dict.fromkeys(listed)]


def source_topics(plan: Plan, reading: Reading) -> list[tuple[str, Origin | None, Evidence]]:
    """The topics a source writes, each with what it reads for it, as far as that is known."""
    seen = [t for t in _active(plan) if not reading.hidden(t)]
    found: list[tuple[str, Origin | None, Evidence]] = []
    for origin in reading.origins:
        for name in plan.chain.names(origin.topic):
            found += [(topic, origin, how) for topic, how in _named(plan, name, seen)]
    known = {topic for topic, _, _ in found}
    for topic in seen:
        if topic not in known:
            found += _reversed(plan, reading, topic)
    kept = [item for item in found if item[0] in seen]
    if kept:
        return kept
    if seen and (not found or plan.chain.unknown):
        return [(topic, _single(reading), SEEN) for topic in seen]
    if not found and not reading.origins:
        return [(topic, _single(reading), how) for topic, how in _declared(plan)]
    return found


def legal(topic: str) -> bool:
    """Whether Kafka would take the name; anything else in a key names no topic."""
    return _LEGAL.fullmatch(topic) is not None


def _active(plan: Plan) -> list[str]:
    topics = dict.fromkeys(plan.connector.active_topics)
    return [topic for topic in topics if not topic.startswith(_BOOKKEEPING) and legal(topic)]


def _named(plan: Plan, name: Name, seen: list[str]) -> list[tuple[str, Evidence]]:
    if name.exact:
        if not legal(name.text):
            return []
        if name.text in seen:
            return [(name.text, SEEN)]
        detail = ", ".join(plan.read) or "the default"
        return [(name.text, Evidence("config key", detail))]
    fitting = [topic for topic in seen if name.fits(topic)]
    if fitting:
        return [(topic, SEEN) for topic in fitting]
    if name.open:
        plan.problem("the rows decide which topics are written; none was seen yet")
        return []
    plan.problem("the time is part of the topics' names; they are shown as one")
    return [(name.text, Evidence("rule", "one topic for all times"))] if legal(name.text) else []


def _reversed(
    plan: Plan, reading: Reading, topic: str
) -> list[tuple[str, Origin | None, Evidence]]:
    if reading.reverse is None:
        return [(topic, None, SEEN)] if plan.chain.routes and not reading.origins else []
    guesses = [topic, *(reading.candidates(topic) if reading.candidates else ())]
    hits = [
        Origin(raw, place, reading.shape)
        for raw in dict.fromkeys(guesses)
        if any(name.fits(topic) for name in plan.chain.names(raw))
        and (place := reading.reverse(raw))
    ]
    if len(hits) == 1:
        return [(topic, hits[0], SEEN)]
    if (plan.chain.routes or plan.chain.unknown) and not reading.closed:
        plan.problem(f"the transforms hide which table the topic {topic} comes from")
        return [(topic, None, SEEN)]
    return []


def _single(reading: Reading) -> Origin | None:
    places = {origin.place.id: origin for origin in reading.origins if origin.place}
    if len(places) == 1:
        return next(iter(places.values()))
    return Origin("", reading.place) if reading.place else None


def _declared(plan: Plan) -> list[tuple[str, Evidence]]:
    """The topics that a user names for us, where nothing else names any."""
    from .overrides import Overrides

    given = Overrides(plan.config)
    why = Evidence("user mapping", given.where("topics"))
    return [(topic, why) for topic in given.topics if legal(topic)]
