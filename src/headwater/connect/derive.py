"""From a connector to its lineage: total, honest about what is unknown, never inventive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from . import families, mapping
from .build import Builder
from .columns import into_sink, into_topic, known_schema
from .families.base import Origin, Place, Plugin
from .model import Derived, Evidence
from .overrides import Overrides
from .plan import Plan
from .redact import scrub, scrub_all
from .reported import also_named
from .topics import sink_topics, source_topics

if TYPE_CHECKING:
    from headwater.lineage.schema import Schema

    from .model import Connector, Dataset, Settings, TopicSchema, World

UNKNOWN_FAMILY = "unknown"


def derive(connector: Connector, world: World, settings: Settings) -> Derived:
    """The lineage of a connector as far as its configuration and the world tell it."""
    plan = Plan(connector, world, settings)
    plugin = mapping.plugin(plan) or families.choose(connector.connector_class, connector.config)
    builder = Builder(plan)
    if plugin is None:
        kind = scrub(connector.connector_class) or "without a class"
        plan.problem(f"no family knows the connector {kind}: only its topics are shown")
    try:
        _lineage(plan, plugin, builder)
    except Exception as error:  # noqa: BLE001  (a family may come from anyone)
        plan.problem(f"the configuration could not be read: {type(error).__name__}")
    return _finish(plan, plugin, builder)


def _lineage(plan: Plan, plugin: Plugin | None, builder: Builder) -> None:
    plan.assumed_role = plugin.role if plugin else None
    role = plan.role
    if role is None:
        plan.problem("neither Connect nor a family says whether this is a source or a sink")
        return
    if plugin and plugin.internal and not plan.settings.internal:
        return
    fits = plugin is not None and plugin.role == role
    if plugin and not fits:
        plan.problem(f"Connect calls it a {role}, the family {plugin.family} a {plugin.role}")
    if plugin and fits and not (plugin.sink or plugin.source):
        plan.problem(f"the keys of {plugin.family} do not tell its datasets outside Kafka for sure")
    if role == "sink":
        _sink(plan, plugin if fits else None, builder)
    else:
        _source(plan, plugin if fits else None, builder)


def _sink(plan: Plan, plugin: Plugin | None, builder: Builder) -> None:
    found = sink_topics(plan)
    plan.reveal(topic for topic, _ in found)
    for topic, how in found:
        schema = plan.world.topic_schema(topic, plan.connector)
        source = builder.add_input(_topic(plan, topic, how, schema))
        plan.read.clear()
        for place in _targets(plan, plugin, topic):
            columns, fields = into_sink(plan, topic, schema, place)
            evidence = (how, *_why(plan, plugin, place, fields), *_renamed(plan, topic))
            output = builder.add_place(place, "output", fields, evidence[1:])
            if place.paired:
                builder.add_edge(source, output, columns, evidence, topic)


def _targets(plan: Plan, plugin: Plugin | None, topic: str) -> list[Place]:
    if plugin is None or plugin.sink is None:
        return []
    found: dict[object, Place] = {}
    plan.raw = topic
    for name in plan.chain.names(topic):
        if name.open or not name.text:
            plan.problem("the rows decide where a transform sends them: no destination is named")
            continue
        if not name.exact:
            plan.problem("the time is part of the destinations' names; they are shown as one")
        for place in plugin.sink(plan, name.text):
            found.setdefault(place.id, place)
    return list(found.values())


def _source(plan: Plan, plugin: Plugin | None, builder: Builder) -> None:
    from .families.base import Reading

    reading = plugin.source(plan) if plugin and plugin.source else generic(plan)
    builder.sql = reading.sql
    written = source_topics(plan, reading)
    for topic, origin, how in written:
        schema = plan.world.topic_schema(topic, plan.connector)
        servers = plan.target or None
        output = builder.add_output(_topic(plan, topic, how, schema, servers))
        if origin is None or origin.place is None:
            continue
        columns, fields = into_topic(plan, origin, schema)
        why = _why(plan, plugin, origin.place, fields)
        evidence = (how, *why, *_renamed(plan, origin.topic))
        source = builder.add_place(origin.place, "input", fields, evidence[1:])
        builder.add_edge(source, output, columns, evidence, topic)
    if not written and isinstance(reading, Reading):
        for place in _inputs(reading.origins, reading.place):
            builder.add_place(place, "input", None, _why(plan, plugin, place))


def _inputs(origins: tuple[Origin, ...], place: Place | None) -> list[Place]:
    found = {origin.place.id: origin.place for origin in origins if origin.place}
    return list(found.values()) or ([place] if place else [])


def generic(plan: Plan) -> families.Reading:
    """What can be said of any source: the topic its configuration plainly names."""
    named = plan.names("topic", "kafka.topic")
    return families.Reading(tuple(Origin(topic) for topic in named if "${" not in topic))


def _topic(
    plan: Plan, name: str, how: Evidence, schema: TopicSchema | None, servers: str | None = None
) -> Dataset:
    evidence = [how]
    if schema is not None and (schema.value or schema.key):
        subject = ", ".join(filter(None, (schema.value_subject, schema.key_subject)))
        label = "a sampled record" if schema.sampled else subject or name
        evidence.append(Evidence("schema registry", label, observed=True))
    dataset = plan.topic(name, evidence, servers)
    found = known_schema(schema)
    version = ".".join(filter(None, (schema.value_version, schema.key_version))) if schema else ""
    return msgspec.structs.replace(
        dataset, schema=found, version=version or (found.version if found else "")
    )


def _why(
    plan: Plan, plugin: Plugin | None, place: Place, fields: Schema | None = None
) -> tuple[Evidence, ...]:
    """What named a dataset outside Kafka, and what named its columns."""
    if plugin and plugin.family.startswith(mapping.FAMILY):
        found = Evidence("user mapping", plugin.classes[0])
    elif keys := ", ".join(plan.read):
        found = Evidence("config key", keys)
    else:
        found = Evidence("rule", f"{plugin.family if plugin else 'generic'}: defaults")
    if place.observed:
        return (found, Evidence("catalog", place.observed, observed=True))
    if fields is not None:
        return (found, Evidence("rule", "columns worked out from the topic's schema"))
    return (found,)


def _renamed(plan: Plan, topic: str) -> tuple[Evidence, ...]:
    names = plan.chain.names(topic) if plan.chain.routes and topic else []
    if all(name.exact and name.text == topic for name in names):
        return ()
    return (Evidence("config key", plan.chain.renaming),)


def _finish(plan: Plan, plugin: Plugin | None, builder: Builder) -> Derived:
    given = Overrides(plan.config, plan.connector.name)
    builder.declare(given)
    inputs, outputs = builder.inputs, builder.outputs
    if given.joined:
        inputs = tuple(also_named(plan.config, dataset) for dataset in inputs)
        outputs = tuple(also_named(plan.config, dataset) for dataset in outputs)
    derived = Derived(
        family=plugin.family.removeprefix(mapping.FAMILY) if plugin else UNKNOWN_FAMILY,
        namespace=given.namespace or plan.settings.namespace,
        job_name=given.job_name or plan.connector.name,
        role=plan.role,
        inputs=inputs,
        outputs=outputs,
        edges=builder.edges,
        documentation=given.documentation,
        owners=given.owners,
        tags=given.tags,
        sql=builder.sql,
        problems=tuple(plan.problems),
        internal=bool(plugin and plugin.internal),
        joined=given.joined,
    )
    # Names are made without credentials; this is the wall behind that.
    return msgspec.convert(scrub_all(msgspec.to_builtins(derived), plan.hidden), Derived)
