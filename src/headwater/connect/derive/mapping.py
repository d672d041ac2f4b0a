"""Connectors that a user describes: a glob of classes, and templates made of their keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic
from headwater.errors import UsageError
from headwater.lineage import naming

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context
    from headwater.lineage.naming import DatasetName

FAMILY = "mapping:"
_FIELD = re.compile(r"\{([^{}|]+)(?:\|([^{}]*))?\}")
_HINT = "see the mapping file in docs/connect.md"


class MappingRule(msgspec.Struct, frozen=True):
    """One entry of a user's mapping file: which classes, and the templates of their datasets."""

    classes: str
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    topics: str = ""
    family: str = ""


def read_rules(text: str) -> tuple[MappingRule, ...]:
    """The rules of a mapping file in YAML; raises UsageError where it cannot be understood."""
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"the mapping file is not YAML: {error}", hint=_HINT) from None
    return rules_from(data)


def rules_from(data: object) -> tuple[MappingRule, ...]:
    """The rules in decoded YAML: `mappings: {class glob: {input:, output:, topics:}}`."""
    if data is None:
        return ()
    found = data.get("mappings", data) if isinstance(data, Mapping) else data
    if not isinstance(found, Mapping):
        raise UsageError("a mapping file maps globs of classes to templates", hint=_HINT)
    return tuple(_rule(str(glob), body) for glob, body in found.items())


def plugin(context: Context) -> Plugin | None:
    """The user's rule for a connector as a plug-in, if one matches its class."""
    kind = context.connector.connector_class
    for rule in context.settings.rules:
        if fnmatchcase(kind, rule.classes):
            role = context.connector.type or ("sink" if rule.outputs else "source")
            return Plugin(
                f"{FAMILY}{rule.family or 'user mapping'}",
                (rule.classes,),
                role,
                (),
                sink=_sink(rule),
                source=_source(rule),
            )
    return None


def _rule(glob: str, body: object) -> MappingRule:
    if not isinstance(body, Mapping):
        raise UsageError(f"{glob}: a rule has input, output or topics", hint=_HINT)
    if odd := sorted(set(body) - {"input", "output", "topics", "family"}):
        raise UsageError(f"{glob}: a rule has no {odd[0]!r}", hint=_HINT)
    return MappingRule(
        glob,
        _templates(glob, body.get("input")),
        _templates(glob, body.get("output")),
        str(body.get("topics") or ""),
        str(body.get("family") or ""),
    )


def _templates(glob: str, value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    found = []
    for item in items:
        if not isinstance(item, Mapping) or not item.get("namespace") or not item.get("name"):
            raise UsageError(f"{glob}: a dataset has a namespace and a name", hint=_HINT)
        found.append((str(item["namespace"]), str(item["name"])))
    return tuple(found)


def _sink(rule: MappingRule) -> Any:
    def sink(context: Context, topic: str) -> list[ExternalDataset]:
        return _places(context, rule.outputs, topic)

    return sink


def _source(rule: MappingRule) -> Any:
    def source(context: Context) -> SourceLineage:
        topics = (_fill(context, rule.topics, "") or "").split(",") if rule.topics else []
        topics = topics or context.names("topic", "kafka.topic")
        origins: list[SourceTopic] = []
        for topic in filter(None, map(str.strip, topics)):
            places = _places(context, rule.inputs, topic)
            origins += [SourceTopic(topic, place) for place in places] or [SourceTopic(topic)]
        alone = _places(context, rule.inputs, "") if not origins else []
        return SourceLineage(tuple(origins), place=alone[0] if len(alone) == 1 else None)

    return source


def _places(
    context: Context, templates: tuple[tuple[str, str], ...], topic: str
) -> list[ExternalDataset]:
    out = []
    for namespace, name in templates:
        space, rest = _fill(context, namespace, topic), _fill(context, name, topic)
        if space and rest and (found := context.name(lambda s=space, r=rest: _named(s, r))):  # type: ignore[misc]
            out.append(ExternalDataset.of(found, ""))
    return out


def _named(namespace: str, name: str) -> DatasetName:
    return naming.canonical(namespace, name)


def _fill(context: Context, template: str, topic: str) -> str | None:
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        key, default = match[1].strip(), match[2]
        found = topic if key == "topic" else context.get(key)
        if not found and default is None:
            missing.append(key)
        return found or default or ""

    text = _FIELD.sub(value, template)
    if missing:
        context.problem(f"the mapping needs {', '.join(missing)}, which the configuration lacks")
        return None
    return text
