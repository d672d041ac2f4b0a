"""A connector's run as an OpenLineage event."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec
from openlineage.client import event_v2 as ol
from openlineage.client.serde import Serde

from .facets import PRODUCER, SCHEMAS, dataset_facets, job_facets, run_facets
from .model import Failure
from .redact import scrub, secrets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from .model import Connector, Derived, Status

_LONGEST_TRACE = 60_000
_LONGEST_LINE = 2_000


def run_event(
    derived: Derived,
    connector: Connector,
    *,
    run_id: str | UUID,
    state: str,
    time: datetime,
    status: Status | None = None,
    error: Failure | None = None,
    heartbeat: int | None = None,
    engine_version: str = "",
    inferred: bool = False,
    cluster: str = "",
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> bytes:
    """The bytes of a RunEvent: the same arguments give the same bytes.

    `heartbeat` is the promised interval in seconds, `extra` more run facets by name. Nothing of the
    configuration goes in but the class, the transforms' types and what was derived from it.
    """
    return msgspec.json.encode(
        event(
            derived, connector, run_id=run_id, state=state, time=time, status=status, error=error,
            heartbeat=heartbeat, engine_version=engine_version, inferred=inferred, cluster=cluster,
            extra=extra,
        )
    )  # fmt: skip


def event(
    derived: Derived,
    connector: Connector,
    *,
    run_id: str | UUID,
    state: str,
    time: datetime,
    status: Status | None = None,
    error: Failure | None = None,
    heartbeat: int | None = None,
    engine_version: str = "",
    inferred: bool = False,
    cluster: str = "",
    extra: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The event as plain values."""
    hidden = secrets(connector.config)
    config = {key: scrub(value, hidden) for key, value in connector.config.items() if _shown(key)}
    if error is not None:
        error = Failure(
            scrub(error.message, hidden)[:_LONGEST_LINE],
            scrub(error.stack_trace, hidden)[:_LONGEST_TRACE],
        )
    run: dict[str, Any] = run_facets(
        derived, config, status, error, engine_version, inferred, cluster
    )
    found: dict[str, Any] = Serde.to_dict(
        ol.RunEvent(
            eventTime=_iso(time),
            producer=PRODUCER,
            run=ol.Run(str(run_id), run),
            job=ol.Job(derived.namespace, derived.job_name, job_facets(derived, heartbeat)),
            eventType=ol.RunState(state),
            inputs=[ol.InputDataset(*d.id, facets=dataset_facets(d)) for d in derived.inputs],
            outputs=[
                ol.OutputDataset(
                    *d.id,
                    facets=dataset_facets(d, [e for e in derived.edges if e.output == d.id]),
                )
                for d in derived.outputs
            ],
        )
    )
    for name, facet in (extra or {}).items():
        found["run"]["facets"][name] = {
            "_producer": PRODUCER,
            "_schemaURL": f"{SCHEMAS}{name}",
            **facet,
        }
    return found


def failure(status: Status, connector: Connector) -> Failure | None:
    """What a connector's status says about why it failed; None when it did not."""
    hidden = secrets(connector.config)
    failed = [(f"task {t.id}", t.trace) for t in status.tasks if t.state == "FAILED"]
    if status.state == "FAILED":
        failed.insert(0, ("connector", status.trace))
    if not failed:
        return None
    who = ", ".join(name for name, _ in failed)
    first = next((trace.strip().splitlines()[0] for _, trace in failed if trace.strip()), "")
    traces = "\n".join(f"{name}: {trace.strip()}" for name, trace in failed if trace.strip())
    message = f"{who} FAILED: {first}" if first else f"{who} FAILED"
    return Failure(scrub(message, hidden)[:_LONGEST_LINE], scrub(traces, hidden)[:_LONGEST_TRACE])


def _shown(key: str) -> bool:
    return key in ("connector.class", "transforms") or key.startswith("transforms.")


def _iso(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError("the time of an event has a time zone")
    return time.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
