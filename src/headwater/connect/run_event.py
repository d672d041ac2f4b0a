"""The events of one connector: its job and run in the model, written by the one writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater import __version__
from headwater.connect.model import MAX_CLASS
from headwater.lineage.model import Engine, Failure, Job, JobName, Lineage, Run
from headwater.lineage.openlineage.writer import Writer
from headwater.lineage.secrets import scrub, secret_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from headwater.connect.model import Connector, ConnectorStatus, Derived, Task
    from headwater.lineage.model import End
    from headwater.lineage.openlineage.events import EventType

WRITER = Writer(f"urn:headwater:connect:{__version__}")
MAX_TRACE = 60_000
CAUSED = "Caused by: "
MAX_MESSAGE = 2_000
MAX_TRANSFORMS = 64
# A server takes arrays of 25,000 at most; and a word of Connect's is one, whatever its answer says.
MAX_TASKS = 5_000
MAX_WORD = 100


def run_event(
    derived: Derived,
    connector: Connector,
    *,
    run_id: str,
    state: EventType,
    time: datetime,
    status: ConnectorStatus | None = None,
    failure: Failure | None = None,
    heartbeat: float | None = None,
    engine_version: str = "",
    inferred: bool = False,
    end: End | None = None,
    cluster: str = "",
    facets: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """A RunEvent as plain values; equal arguments give equal values.

    `heartbeat` is the promised interval in seconds, `facets` more run facets by name. Nothing of
    the configuration goes in but the class, the transforms' types and what was derived from it.
    """
    hidden = secret_values(connector.config)
    own = _connect_facet(derived, connector, status, hidden, inferred=inferred, cluster=cluster)
    run = Run(
        run_id,
        engine=Engine("kafka-connect", engine_version or "unknown", __version__),
        facets={"headwater_connect": own, **(facets or {})},
    )
    if failure is not None:
        failure = _bounded(failure.message, failure.stack_trace, hidden)
    job = replace(derived.job, heartbeat=heartbeat)
    return WRITER.run_event(state, time, job, run, _reported(derived), end=end, failure=failure)


def job_event(derived: Derived, *, time: datetime, heartbeat: float | None) -> dict[str, Any]:
    """A JobEvent with the connector's lineage, where another producer reports its runs."""
    return WRITER.job_event(time, replace(derived.job, heartbeat=heartbeat), _reported(derived))


def deletion_event(derived: Derived, *, time: datetime, task: str = "") -> dict[str, Any]:
    """A JobEvent that reports a connector's job, or the job of one of its tasks, as deleted."""
    whole = JobName(derived.job.namespace, derived.job.name)
    name, part_of = (task, whole) if task else (whole.name, None)
    job = Job(whole.namespace, name, part_of=part_of, deleted=time)
    return WRITER.job_event(time, job, Lineage())


def task_event(
    derived: Derived,
    connector: Connector,
    name: str,
    *,
    run_id: str,
    state: EventType,
    time: datetime,
    engine_version: str = "",
    inferred: bool = False,
    cluster: str = "",
) -> dict[str, Any]:
    """The event of a task that has a job of its own, which is a part of the connector's job.

    Without a run it only relates the two jobs; with one, it reports that run's state.
    """
    job = Job(derived.job.namespace, name, part_of=JobName(derived.job.namespace, derived.job.name))
    if not run_id:
        return WRITER.job_event(time, job, Lineage())
    task = replace(derived, role=None, joined="", lineage=Lineage())
    own = _connect_facet(task, connector, None, (), inferred=inferred, cluster=cluster)
    engine = Engine("kafka-connect", engine_version or "unknown", __version__)
    run = Run(run_id, engine=engine, facets={"headwater_connect": own})
    return WRITER.run_event(state, time, job, run, Lineage())


def failure_of(status: ConnectorStatus, connector: Connector) -> Failure | None:
    """Why a connector failed, from the traces in its status; None when it did not."""
    failed = [(f"task {t.id}", t.trace) for t in status.tasks if t.state == "FAILED"]
    if status.state == "FAILED":
        failed.insert(0, ("connector", status.trace))
    if not failed:
        return None
    parts = ", ".join(name for name, _ in failed)
    first = next((_summary(trace) for _, trace in failed if trace.strip()), "")
    traces = "\n".join(f"{name}: {trace.strip()}" for name, trace in failed if trace.strip())
    message = f"{parts} FAILED: {first}" if first else f"{parts} FAILED"
    return _bounded(message, traces, secret_values(connector.config))


def _summary(trace: str) -> str:
    """What a trace begins with, and what was the cause of it all: Connect's own words say little."""
    lines = trace.strip().splitlines()
    # Indented ones belong to suppressed exceptions: what went wrong while it was cleaned up.
    causes = [line.strip() for line in lines if line.startswith(CAUSED)]
    return f"{lines[0]}; {causes[-1][0].lower()}{causes[-1][1:]}" if causes else lines[0]


def _bounded(message: str, trace: str, hidden: tuple[str, ...]) -> Failure:
    return Failure(scrub(message, hidden)[:MAX_MESSAGE], scrub(trace, hidden)[:MAX_TRACE], "JAVA")


def _reported(derived: Derived) -> Lineage:
    """The lineage without its problems, which a connector's run has in `headwater_connect`."""
    return replace(derived.lineage, problems=())


def _connect_facet(
    derived: Derived,
    connector: Connector,
    status: ConnectorStatus | None,
    hidden: tuple[str, ...],
    *,
    inferred: bool,
    cluster: str,
) -> dict[str, Any]:
    """`headwater_connect`: the connector behind a run, its tasks and what is not known of it."""
    config = connector.config
    aliases = (alias.strip() for alias in scrub(config.get("transforms", ""), hidden).split(","))
    transforms = [
        {
            "alias": alias,
            "type": scrub(config.get(f"transforms.{alias}.type", "")[:MAX_CLASS], hidden),
        }
        for alias in list(aliases)[:MAX_TRANSFORMS]
        if alias
    ]
    return {
        "connectorClass": scrub(connector.connector_class, hidden),
        "connectorType": derived.role,
        "connectorVersion": (status.version or None) if status else None,
        "workerId": (status.worker_id or None) if status else None,
        "state": status.state if status else None,
        "tasks": _tasks(status.tasks) if status else [],
        "transforms": transforms,
        "problems": list(derived.lineage.problems),
        "joined": derived.joined or None,
        "inferred": inferred or None,
        "cluster": cluster or None,
    }


def _tasks(tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """The tasks; of more than a server takes, those that do not run before others."""
    if len(tasks) > MAX_TASKS:
        tasks = sorted(tasks, key=lambda task: task.state == "RUNNING")[:MAX_TASKS]
    return [_task(task) for task in tasks]


def _task(task: Task) -> dict[str, Any]:
    found: dict[str, Any] = {"id": task.id, "state": task.state[:MAX_WORD]}
    if task.worker_id:
        found["workerId"] = task.worker_id[:MAX_WORD]
    if task.version:
        found["version"] = task.version[:MAX_WORD]
    return found
