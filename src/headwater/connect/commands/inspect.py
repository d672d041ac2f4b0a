"""One poll of a cluster for a person: states, lag and lineage, without an agent."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.agent.cluster_lineage import ClusterLineage
from headwater.connect.agent.connector_states import STATUS
from headwater.connect.agent.process import live_metadata_of
from headwater.connect.config import default_state
from headwater.connect.model import Connector
from headwater.connect.services.endpoint import ConnectError, ProblemKind
from headwater.connect.services.rest import ConnectRest, read_entry
from headwater.emit import Outbox
from headwater.errors import HeadwaterError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.connect.config import ClusterConfig
    from headwater.connect.model import Derived
    from headwater.connect.services.live_metadata import LiveMetadata
    from headwater.connect.services.rest import ConnectorEntry


def connector_rows(config: ClusterConfig) -> list[dict[str, Any]]:
    """Every connector of a cluster, one row each: state, tasks, lineage, lag."""
    connect, metadata = ConnectRest(config.endpoint), live_metadata_of(config)
    try:
        lineage = _lineage(config, connect, metadata)
        found = sorted(connect.poll().items())
        rows = [_row(name, raw, connect, lineage, metadata) for name, raw in found]
        lags = _lags(metadata, {row["name"]: row.pop("group") for row in rows})
        for row in rows:
            row["lag"] = lags.get(row["name"])
        return rows
    finally:
        metadata.close()
        connect.close()


def _lineage(config: ClusterConfig, connect: ConnectRest, metadata: LiveMetadata) -> ClusterLineage:
    lineage = ClusterLineage(config, metadata)
    try:
        lineage.read_root(connect.root())
    except ConnectError as error:
        if error.trouble is not ProblemKind.MISSING:
            raise
    return lineage


def _row(
    name: str,
    raw: msgspec.Raw,
    connect: ConnectRest,
    lineage: ClusterLineage,
    metadata: LiveMetadata,
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
        derivation = lineage.derive(_connector(entry, connect))
    except Exception as error:  # noqa: BLE001
        return {**row, "problem": f"{type(error).__name__}: {error}"}
    derived = derivation.derived
    row["problem"] = "; ".join(metadata.problems.values()) if derivation.incomplete else ""
    row["inputs"] = [f"{d.namespace}/{d.name}" for d in derived.lineage.inputs]
    row["outputs"] = [f"{d.namespace}/{d.name}" for d in derived.lineage.outputs]
    row["lineage"] = f"{_short(derived.lineage.inputs)} → {_short(derived.lineage.outputs)}"
    return row


def _short(datasets: Any) -> str:
    names = [dataset.name for dataset in datasets]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _connector(entry: ConnectorEntry, connect: ConnectRest) -> Connector:
    topics = connect.topics(entry.info.name) or ()
    kind: Any = entry.info.type or None
    return Connector(entry.info.name, kind, entry.info.config, topics)


def _lags(metadata: LiveMetadata, groups: Mapping[str, str]) -> dict[str, int]:
    """How many records each sink has still to read."""
    if metadata.kafka is None:
        return {}
    try:
        committed = metadata.kafka.committed(group for group in groups.values() if group)
        ends = metadata.kafka.ends({topic for done in committed.values() for topic, _ in done})
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


def derive_connector(config: ClusterConfig, name: str) -> tuple[Derived, list[str]]:
    """A connector's lineage with its evidence, and what could not be asked on the way."""
    connect, metadata = ConnectRest(config.endpoint), live_metadata_of(config)
    try:
        lineage = _lineage(config, connect, metadata)
        require(connect, name)
        entry = connect.entry(name)
        return lineage.derive(_connector(entry, connect)).derived, list(metadata.problems.values())
    finally:
        metadata.close()
        connect.close()


def require(connect: ConnectRest, *names: str) -> None:
    """Raise NotFoundError, with the nearest names, for the first connector that is not there."""
    for name in names:
        if not connect.exists(name):
            near = get_close_matches(name, connect.poll())
            raise NotFoundError(
                f"{connect.shown} has no connector {name}",
                hint=f"near it: {', '.join(near)}" if near else "headwater connect list",
                names=near,
            )


def agent_problems(state: str | None) -> list[dict[str, Any]]:
    """The problems that the agent with this state has now."""
    outbox = existing_outbox(state)
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


def existing_outbox(state: str | None) -> Outbox | None:
    """The outbox of the agent with this state, if there is one."""
    place = state or default_state()
    if "://" not in place and not Path(place).expanduser().exists():
        return None
    return Outbox(place)
