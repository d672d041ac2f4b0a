"""The chain of a connector's transforms, in order, each under its predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.connect.derive.config_values import split
from headwater.connect.derive.java_regex import PatternError, pattern
from headwater.connect.transforms.record import IDENTITY, Column, Half, Record
from headwater.lineage.columns import combine

from . import debezium, field_values, fields, iceberg, others, routers, transform_common
from .base import Back, TopicName, TransformStep, UnknownStep

if TYPE_CHECKING:
    from collections.abc import Mapping

STEPS: dict[str, type[TransformStep]] = {
    **routers.STEPS,
    **fields.STEPS,
    **field_values.STEPS,
    **debezium.STEPS,
    **iceberg.STEPS,
    **transform_common.STEPS,
    **others.STEPS,
}
# Every package has its own, and all do the same.
_ANY_PACKAGE: dict[str, type[TransformStep]] = dict.fromkeys(
    ("UnwrapUnion", "UnwrapUnionTransform"), fields.UnwrapUnion
)
# Connect takes a class without its package too; where names are shared, Kafka's own is meant.
_ALIASES = {
    kind.rpartition(".")[2]: step
    for kind, step in sorted(
        STEPS.items(), key=lambda item: item[0].startswith("org.apache.kafka.")
    )
}
LINEAGE = "OpenLineageLifecycleSmt"
_PREDICATES = "org.apache.kafka.connect.transforms.predicates."
_BRANCHES = 8
_LONGEST = 64


class Link(NamedTuple):
    """One transform of the chain with what decides whether it applies."""

    alias: str
    kind: str
    step: TransformStep
    predicate: str = ""
    pattern: str = ""
    negate: bool = False

    def applies(self, name: TopicName) -> bool | None:
        """Whether it applies to the records of a topic; None when single records decide."""
        if not self.predicate:
            return True
        if self.predicate in (f"{_PREDICATES}TopicNameMatches", "TopicNameMatches"):
            if not name.exact:
                return None
            return pattern(self.pattern).matches(name.text) != self.negate
        if self.predicate in (f"{_PREDICATES}RecordIsTombstone", "RecordIsTombstone"):
            return self.negate
        return None


class Chain:
    """Every transform of a connector."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self.links: list[Link] = []
        for alias in split(config.get("transforms", ""))[:_LONGEST]:
            self._add(config, alias)

    @property
    def unknown(self) -> list[str]:
        """The classes of transforms that are not known here."""
        return [link.kind for link in self.links if not link.step.known]

    @property
    def renaming(self) -> str:
        """The keys of the transforms that may change a topic's name."""
        return ", ".join(f"transforms.{link.alias}" for link in self.links if link.step.routes)

    @property
    def routes(self) -> bool:
        """Whether some transform may change a topic's name."""
        return any(link.step.routes for link in self.links)

    def names(self, topic: str, before: int | None = None) -> list[TopicName]:
        """What a topic may be called at the end, or before one link; nothing when it is dropped."""
        branches = [TopicName(topic)]
        for link in self.links[:before]:
            following: list[TopicName] = []
            for name in branches:
                applies = link.applies(name)
                routed = link.step.route(name)
                if applies is not False and routed is not None:
                    following.append(routed)
                if applies is not True:
                    following.append(name)
            branches = list(dict.fromkeys(following))[:_BRANCHES]
        return branches

    def forward(self, topic: str, record: Record) -> Record:
        """The record at the end of the chain."""
        for link, applies in self._walk(topic):
            if applies:
                record = link.step.forward(record)
            elif applies is None and link.step.reshapes:
                record = Record()
        return record

    def back(self, topic: str, column: Column) -> Back:
        """The column of the connector's own record that a final column was, and how it changed."""
        how = IDENTITY
        for link, applies in reversed(self._walk(topic)):
            if applies is False or (applies is None and not link.step.reshapes):
                continue
            step = link.step if applies else UnknownStep({}, "value", link.kind)
            found = step.back(column)
            if found is None:
                return None
            column, how = found[0], combine(found[1], how)
        return column, how

    def headers(self, topic: str) -> dict[str, str]:
        """The headers that every record of a topic is given on the way, with their values."""
        found: dict[str, str] = {}
        for link, applies in self._walk(topic):
            given = {link.step.get("header"): link.step.get("value.literal")}
            if link.step.kind == "InsertHeader" and applies:
                found |= given
            elif link.step.kind == "InsertHeader" and applies is None:
                found = {name: value for name, value in found.items() if name not in given}
            elif link.step.kind == "DropHeaders" and applies is not False:
                gone = link.step.names("headers")
                found = {name: value for name, value in found.items() if name not in gone}
        return found

    def loses(self, topic: str) -> bool:
        """Whether fields may have been dropped on the way."""
        return any(applies is not False and link.step.loses for link, applies in self._walk(topic))

    def _walk(self, topic: str) -> list[tuple[Link, bool | None]]:
        out: list[tuple[Link, bool | None]] = []
        name: TopicName | None = TopicName(topic)
        for link in self.links:
            applies = link.applies(name) if name else None
            out.append((link, applies))
            if applies and name:
                name = link.step.route(name)
        return out

    def _add(self, config: Mapping[str, str], alias: str) -> None:
        prefix = f"transforms.{alias}."
        options = {key[len(prefix) :]: v for key, v in config.items() if key.startswith(prefix)}
        kind, half = _class(options.get("type", ""))
        predicate = options.get("predicate", "")
        about = {
            key: config.get(f"predicates.{predicate}.{key}", "") for key in ("type", "pattern")
        }
        step: TransformStep
        try:
            step = _step(kind)(options, half, kind.rpartition(".")[2])
            if about["pattern"]:
                pattern(about["pattern"])
        except PatternError as error:
            self.problems.append(f"transforms.{alias}: {error}")
            step = UnknownStep(options, half, kind)
            about["pattern"] = ""
        if not step.known:
            self.problems.append(
                f"transforms.{alias}: {kind or 'without a type'} is not known; "
                "topic names are taken as they are, columns are unknown"
            )
        negate = options.get("negate", "").lower() == "true"
        named = about["type"] if predicate else ""
        if predicate and (not named or (named.endswith("NameMatches") and not about["pattern"])):
            named = "?"
        self.links.append(Link(alias, kind, step, named, about["pattern"], negate))


def lineage_options(config: Mapping[str, str]) -> dict[str, str]:
    """The options of the lineage transform that others put into the chain, if it is there."""
    for alias in split(config.get("transforms", ""))[:_LONGEST]:
        prefix = f"transforms.{alias}."
        if config.get(f"{prefix}type", "").endswith(LINEAGE):
            found = {key[len(prefix) :]: v for key, v in config.items() if key.startswith(prefix)}
            return {**found, "alias": alias}
    return {}


def _class(kind: str) -> tuple[str, Half]:
    base, _, part = kind.strip().partition("$")
    return base, "key" if part.lower() == "key" else "value"


def _step(kind: str) -> type[TransformStep]:
    if kind.endswith(f".{LINEAGE}"):
        return TransformStep
    step = STEPS.get(kind) or _ALIASES.get(kind) or _ANY_PACKAGE.get(kind.rpartition(".")[2])
    return step or UnknownStep
