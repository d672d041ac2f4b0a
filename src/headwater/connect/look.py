"""One look at a cluster for a person: states, lag and lineage, without an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.access import ConnectError, Trouble
from headwater.connect.agent import restart_topic
from headwater.connect.answers import read_entry
from headwater.connect.client import Connect
from headwater.connect.config import default_state, read_text
from headwater.connect.deploy import read_connector
from headwater.connect.memory import STATUS
from headwater.connect.model import Connector, Settings
from headwater.connect.preview import consider, preview, read_schema
from headwater.connect.telling import Teller
from headwater.connect.watch import world_of
from headwater.emit import Outbox
from headwater.errors import HeadwaterError, UsageError
from headwater.lineage.schema import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.connect.answers import Entry
    from headwater.connect.config import ClusterConfig
    from headwater.connect.model import Derived
    from headwater.connect.world import LiveWorld
    from headwater.lineage.schema import Schema


def look(config: ClusterConfig) -> list[dict[str, Any]]:
    """Every connector of a cluster, one row each, with what can be known at a glance."""
    connect, world = Connect(config.access), world_of(config)
    try:
        teller = _teller(config, connect, world)
        found = sorted(connect.poll().items())
        rows = [_row(name, raw, connect, teller, world) for name, raw in found]
        lags = _lags(world, {row["name"]: row.pop("group") for row in rows})
        for row in rows:
            row["lag"] = lags.get(row["name"])
        return rows
    finally:
        world.close()
        connect.close()


def _teller(config: ClusterConfig, connect: Connect, world: LiveWorld) -> Teller:
    teller = Teller(config, world, None)
    try:
        teller.on_root(connect.root())
    except ConnectError as error:
        if error.trouble is not Trouble.MISSING:
            raise
    return teller


def _row(
    name: str, raw: msgspec.Raw, connect: Connect, teller: Teller, world: LiveWorld
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name, "type": "", "state": "UNKNOWN", "class": "", "tasks": [], "group": "",
        "inputs": [], "outputs": [], "lineage": "", "lag": None, "problem": "",
    }  # fmt: skip
    try:
        entry = read_entry(name, raw)
    except ConnectError as error:
        return {**row, "problem": error.message}
    tasks = [
        {"id": task.id, "state": task.state, "worker": task.worker_id}
        for task in entry.status.tasks
    ]
    config = entry.info.config
    row |= {
        "type": entry.info.type,
        "state": entry.status.state,
        "class": config.get("connector.class", ""),
        "tasks": tasks,
        "group": config.get("consumer.override.group.id") or f"connect-{name}"
        if entry.info.type == "sink"
        else "",
    }
    try:
        lineage = teller.derive(_connector(entry, connect))
    except Exception as error:  # noqa: BLE001
        return {**row, "problem": f"{type(error).__name__}: {error}"}
    derived = lineage.derived
    row["problem"] = "; ".join(world.problems.values()) if lineage.unsure else ""
    row["inputs"] = [f"{d.namespace}/{d.name}" for d in derived.inputs]
    row["outputs"] = [f"{d.namespace}/{d.name}" for d in derived.outputs]
    row["lineage"] = f"{_short(derived.inputs)} → {_short(derived.outputs)}"
    return row


def _short(datasets: Any) -> str:
    names = [dataset.name for dataset in datasets]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _connector(entry: Entry, connect: Connect) -> Connector:
    topics = connect.topics(entry.info.name) or ()
    kind: Any = entry.info.type or None
    return Connector(entry.info.name, kind, entry.info.config, topics)


def _lags(world: LiveWorld, groups: Mapping[str, str]) -> dict[str, int]:
    """How many records each sink has still to read."""
    if world.kafka is None:
        return {}
    try:
        committed = world.kafka.committed(group for group in groups.values() if group)
        ends = world.kafka.ends({topic for done in committed.values() for topic, _ in done})
    except HeadwaterError:
        return {}
    return {
        name: sum(
            max(0, ends[topic].offsets.get(part, at) - at)
            for (topic, part), at in committed[group].items()
            if topic in ends
        )
        for name, group in groups.items()
        if committed.get(group)
    }


def derived_of(config: ClusterConfig, name: str) -> tuple[Derived, list[str]]:
    """A connector's lineage with its evidence, and what could not be asked on the way."""
    connect, world = Connect(config.access), world_of(config)
    try:
        teller = _teller(config, connect, world)
        try:
            entry = connect.entry(name)
        except ConnectError as error:
            if error.trouble is Trouble.MISSING:
                raise UsageError(
                    f"{connect.shown} has no connector {name}", hint="headwater connect list"
                ) from None
            raise
        return teller.derive(_connector(entry, connect)).derived, list(world.problems.values())
    finally:
        world.close()
        connect.close()


def _schema(path: Path) -> Schema:
    try:
        return read_schema(read_text(path, "--schema "))
    except SchemaError as error:
        raise UsageError(f"--schema {path}: {error}") from None


def previewed(
    path: Path,
    *,
    kind: str | None,
    topics: tuple[str, ...],
    bootstrap: str | None,
    schemas: Mapping[str, Path],
    namespace: str,
) -> tuple[Derived, dict[str, Any]]:
    """The lineage of a connector that is not deployed, and the START event it would send."""
    wanted = read_connector(path)
    document = {"name": wanted.name, "config": wanted.config}
    role: Any = kind
    known = {topic: _schema(file) for topic, file in schemas.items()}
    settings = Settings(namespace)
    connector = Connector(wanted.name, role, wanted.config, topics)
    derived = consider(connector, bootstrap=bootstrap, schemas=known, settings=settings)
    event = preview(
        document, type=role, topics=topics, bootstrap=bootstrap, schemas=known, settings=settings
    )
    return derived, event


def troubles(state: str | None) -> list[dict[str, Any]]:
    """What the agent that keeps its state there finds wrong now."""
    outbox = _existing(state)
    if outbox is None:
        return []
    try:
        return [
            {"cluster": key.removeprefix(STATUS), **one}
            for key, value in outbox.state(STATUS).items()
            for one in msgspec.json.decode(value)
        ]
    finally:
        outbox.forget_connection()


def note_restart(state: str | None, url: str, name: str) -> None:
    """Tell the agent that a restart was ordered, which its polls may be too slow to see."""
    outbox = _existing(state)
    if outbox is None:
        return
    try:
        outbox.note(restart_topic(url), name.encode())
    finally:
        outbox.forget_connection()


def _existing(state: str | None) -> Outbox | None:
    place = state or default_state()
    if "://" not in place and not Path(place).expanduser().exists():
        return None
    return Outbox(place)
