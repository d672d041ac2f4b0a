"""From a connector to its lineage: never raises, lists what is unknown, never guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from headwater.connect import families
from headwater.connect.debezium.naming import also_named
from headwater.connect.derive import mapping
from headwater.connect.derive.builder import Builder
from headwater.connect.derive.columns import into_sink, into_topic, known_schema
from headwater.connect.derive.context import Context
from headwater.connect.derive.family import ExternalDataset, Plugin, SourceTopic
from headwater.connect.derive.overrides import Overrides
from headwater.connect.derive.topics import sink_topics, source_topics
from headwater.connect.model import DEBEZIUM, UNKNOWN_FAMILY, Derived, job_of
from headwater.lineage.conversion import converter
from headwater.lineage.model import Evidence
from headwater.lineage.secrets import scrub, scrub_all

if TYPE_CHECKING:
    from headwater.connect.derive.context import DeriveSettings
    from headwater.connect.derive.metadata import Metadata, TopicSchema
    from headwater.connect.model import Connector
    from headwater.lineage.model import Dataset
    from headwater.lineage.schema import Schema


_derived = converter(Derived)


def derive(connector: Connector, metadata: Metadata, settings: DeriveSettings) -> Derived:
    """The lineage of a connector from its configuration and the metadata around it."""
    context = Context(connector, metadata, settings)
    plugin = mapping.plugin(context) or families.choose(connector.connector_class, connector.config)
    builder = Builder(context)
    if plugin is None:
        kind = scrub(connector.connector_class) or "without a class"
        context.problem(f"no family knows the connector {kind}: only its topics are shown")
    try:
        _lineage(context, plugin, builder)
    except Exception as error:  # noqa: BLE001  (families of other packages run here too)
        context.problem(f"the configuration could not be read: {type(error).__name__}")
    return _finish(context, plugin, builder)


def _lineage(context: Context, plugin: Plugin | None, builder: Builder) -> None:
    context.assumed_role = plugin.role if plugin else None
    role = context.role
    if role is None:
        context.problem("neither Connect nor a family says whether this is a source or a sink")
        return
    if plugin and plugin.internal and not context.settings.internal:
        return
    fits = plugin is not None and plugin.role == role
    if plugin and not fits:
        context.problem(f"Connect calls it a {role}, the family {plugin.family} a {plugin.role}")
    if plugin and fits and not (plugin.sink or plugin.source):
        context.problem(
            f"the keys of {plugin.family} do not tell its datasets outside Kafka for sure"
        )
    if role == "sink":
        _sink(context, plugin if fits else None, builder)
    else:
        _source(context, plugin if fits else None, builder)


def _sink(context: Context, plugin: Plugin | None, builder: Builder) -> None:
    found = sink_topics(context, known=plugin is not None)
    context.reveal(topic for topic, _ in found)
    for topic, how in found:
        schema = context.metadata.topic_schema(topic, context.connector)
        source = builder.add_input(_topic(context, topic, how, schema))
        context.read.clear()
        for place in _targets(context, plugin, topic):
            columns, fields = into_sink(context, topic, schema, place)
            evidence = (how, *_why(context, plugin, place, fields), *_renamed(context, topic))
            output = builder.add_place(place, "sink", fields, evidence[1:])
            if place.paired:
                builder.add_edge(source, output, columns, evidence)


def _targets(context: Context, plugin: Plugin | None, topic: str) -> list[ExternalDataset]:
    if plugin is None or plugin.sink is None:
        return []
    found: dict[object, ExternalDataset] = {}
    context.raw = topic
    for name in context.chain.names(topic):
        if name.open or not name.text:
            context.problem("the rows decide where a transform sends them: no destination is named")
            continue
        if not name.exact:
            context.problem("the time is part of the destinations' names; they are shown as one")
        for place in plugin.sink(context, name.text):
            found.setdefault(place.id, place)
    return list(found.values())


def _source(context: Context, plugin: Plugin | None, builder: Builder) -> None:
    from headwater.connect.derive.family import SourceLineage

    reading = plugin.source(context) if plugin and plugin.source else generic(context)
    builder.sql = reading.sql
    written = source_topics(context, reading)
    for topic, origin, how in written:
        schema = context.metadata.topic_schema(topic, context.connector)
        servers = context.target or None
        output = builder.add_output(_topic(context, topic, how, schema, servers))
        if origin is None or origin.place is None:
            continue
        columns, fields = into_topic(context, origin, schema)
        why = _why(context, plugin, origin.place, fields)
        evidence = (how, *why, *_renamed(context, origin.topic))
        source = builder.add_place(origin.place, "source", fields, evidence[1:])
        builder.add_edge(source, output, columns, evidence)
    if not written and isinstance(reading, SourceLineage):
        for place in _inputs(reading.origins, reading.place):
            builder.add_place(place, "source", None, _why(context, plugin, place))


def _inputs(
    origins: tuple[SourceTopic, ...], place: ExternalDataset | None
) -> list[ExternalDataset]:
    found = {origin.place.id: origin.place for origin in origins if origin.place}
    return list(found.values()) or ([place] if place else [])


def generic(context: Context) -> families.SourceLineage:
    """The rule for any source: the topic that `topic` or `kafka.topic` names, and those reported."""
    named = context.names("topic", "kafka.topic")
    return families.SourceLineage(
        tuple(SourceTopic(topic) for topic in named if "${" not in topic), partial=True
    )


def _topic(
    context: Context,
    name: str,
    how: Evidence,
    schema: TopicSchema | None,
    servers: str | None = None,
) -> Dataset:
    evidence = [how]
    if schema is not None and (schema.value or schema.key):
        subject = ", ".join(filter(None, (schema.value_subject, schema.key_subject)))
        label = "a sampled record" if schema.sampled else subject or name
        evidence.append(schema.evidence or Evidence("schema registry", label, observed=True))
    dataset = context.topic(name, evidence, servers)
    found = known_schema(schema)
    version = ".".join(filter(None, (schema.value_version, schema.key_version))) if schema else ""
    origins = schema.origins if schema else ()
    return replace(
        dataset,
        schema=found,
        schema_source=origins[0].beside(origins[1:]) if origins else None,
        version=version or (found.version if found else ""),
    )


def _why(
    context: Context, plugin: Plugin | None, place: ExternalDataset, fields: Schema | None = None
) -> tuple[Evidence, ...]:
    """What named a dataset outside Kafka, and what named its columns."""
    if plugin and plugin.family.startswith(mapping.FAMILY):
        found = Evidence("user mapping", plugin.classes[0])
    elif keys := ", ".join(context.read):
        found = Evidence("config key", keys)
    else:
        found = Evidence("rule", f"{plugin.family if plugin else 'generic'}: defaults")
    if place.observed:
        return (found, Evidence("catalog", place.observed, observed=True))
    if fields is not None:
        return (found, Evidence("rule", "columns worked out from the topic's schema"))
    return (found,)


def _renamed(context: Context, topic: str) -> tuple[Evidence, ...]:
    names = context.chain.names(topic) if context.chain.routes and topic else []
    if all(name.exact and name.text == topic for name in names):
        return ()
    return (Evidence("config key", context.chain.renaming),)


def _finish(context: Context, plugin: Plugin | None, builder: Builder) -> Derived:
    given = Overrides(context.config, context.connector.name)
    builder.declare(given)
    lineage = builder.lineage(context.problems)
    if given.joined == DEBEZIUM:
        lineage = replace(
            lineage,
            inputs=tuple(also_named(context.config, dataset) for dataset in lineage.inputs),
            outputs=tuple(also_named(context.config, dataset) for dataset in lineage.outputs),
        )
    family = plugin.family.removeprefix(mapping.FAMILY) if plugin else UNKNOWN_FAMILY
    job = job_of(
        given.namespace or context.settings.namespace,
        given.job_name or context.connector.name,
        family,
    )
    derived = Derived(
        job=replace(job, documentation=given.documentation, owners=given.owners, tags=given.tags),
        lineage=lineage,
        family=family,
        role=context.role,
        internal=bool(plugin and plugin.internal),
        joined=given.joined,
    )
    # Names are made without credentials; this removes what a family let through all the same.
    return _derived(scrub_all(msgspec.to_builtins(derived), context.hidden))
