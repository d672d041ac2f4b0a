"""`headwater connect watch`: the agent that reports the lineage of Connect clusters."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.connect.options import (
    Bootstrap,
    LoginOptions,
    RegistryUrl,
    Sample,
    State,
    Urls,
    WorkerProperties,
    cluster_config,
)
from headwater.cli.options import LogFormatOption, spread
from headwater.cli.output import err
from headwater.errors import UsageError
from headwater.logs import LogFormat, formatter

if TYPE_CHECKING:
    from headwater.connect.agent.clusters_file import AgentConfig

log = logging.getLogger("headwater.connect")


@spread
def watch(
    *,
    url: Urls = None,
    clusters: Annotated[
        Path | None,
        typer.Option("--clusters", metavar="FILE", help="A YAML file of many clusters."),
    ] = None,
    kafka_bootstrap: Bootstrap = None,
    registry_url: RegistryUrl = None,
    state: State = None,
    poll: Annotated[
        float | None,
        typer.Option(
            "--poll", metavar="S", help="Seconds between polls of Connect.", show_default="5"
        ),
    ] = None,
    heartbeat: Annotated[
        float | None,
        typer.Option(
            "--heartbeat",
            metavar="S",
            help="Seconds between heartbeats (RUNNING).",
            show_default="300",
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace",
            metavar="S",
            help="How long a cluster may not answer before runs abort.",
            show_default="600",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", help="Of jobs.", envvar="OPENLINEAGE_NAMESPACE", show_default="default"
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The cluster's name in logs and state.")
    ] = None,
    worker_properties: WorkerProperties = None,
    mappings: Annotated[
        list[Path] | None,
        typer.Option(
            "--mappings",
            metavar="FILE",
            help="YAML rules for connectors that Headwater does not know.",
        ),
    ] = None,
    sample: Sample = False,
    consumer_groups: Annotated[
        bool,
        typer.Option(
            "--consumer-groups/--no-consumer-groups",
            help="Report consumer groups that no connector accounts for.",
        ),
    ] = True,
    skip_groups: Annotated[
        list[str] | None,
        typer.Option("--skip-groups", metavar="GLOB", help="Names of groups not to report."),
    ] = None,
    producers: Annotated[
        bool,
        typer.Option(
            "--producers/--no-producers",
            help="Report transactional producers that no connector accounts for.",
        ),
    ] = True,
    skip_producers: Annotated[
        list[str] | None,
        typer.Option(
            "--skip-producers", metavar="GLOB", help="Transactional ids of those not to report."
        ),
    ] = None,
    login: LoginOptions,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    log_format: LogFormatOption = LogFormat.TEXT,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Answer /health and /metrics here.",
        ),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", metavar="HOST", help="The address of --metrics-port.")
    ] = "127.0.0.1",
) -> None:
    """Report every connector's life and lineage, from outside, until interrupted.

    Events go where openlineage-python's own configuration says: OPENLINEAGE_URL,
    OPENLINEAGE_CONFIG, OPENLINEAGE__TRANSPORT__TYPE and so on; to the console without any.
    """
    _log(verbose, log_format)
    from headwater.connect.agent.monitor import monitored
    from headwater.connect.agent.process import AgentProcess
    from headwater.connect.config import default_state

    given = {"poll": poll, "heartbeat": heartbeat, "grace": grace}
    if clusters:
        if url:
            raise UsageError("--url and --clusters exclude each other")
        estate, reload = _from_file(clusters)
    else:
        estate = _from_options(
            cluster_config(
                url,
                login,
                kafka_bootstrap=kafka_bootstrap,
                registry_url=registry_url,
                namespace=namespace,
                name=name,
                worker_properties=worker_properties,
                mappings=mappings or [],
                sample=sample,
                consumer_groups=consumer_groups,
                skip_groups=skip_groups,
                producers=producers,
                skip_producers=skip_producers,
                times={key: value for key, value in given.items() if value is not None},
            ),
            worker_properties,
        )
        reload = lambda: None  # noqa: E731
    process = AgentProcess(estate, state or estate.state or default_state(), reload=reload)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: process.stop.set())
    if metrics_port is None:
        process.run()
        return
    with monitored(process, metrics_host, metrics_port) as address:
        log.info("health and metrics at %s", address)
        process.run()


def _from_options(config: Any, worker_properties: Path | None) -> AgentConfig:
    from headwater.connect.agent.clusters_file import AgentConfig
    from headwater.connect.config import read_openlineage, read_worker

    transport = None
    if worker_properties and not _has_transport():
        transport = read_openlineage(read_worker(worker_properties).openlineage).transport
    return AgentConfig((config,), "", transport)


def _has_transport() -> bool:
    names = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE")
    return any(os.environ.get(name) for name in names)


def _from_file(path: Path) -> tuple[AgentConfig, Any]:
    """The estate of a file, and a function that answers a new one whenever the file changes."""
    from headwater.connect.agent.clusters_file import read_agent_config

    estate = read_agent_config(path)
    stamp = path.stat().st_mtime_ns
    asked = [False]
    signal.signal(signal.SIGHUP, lambda *_: asked.__setitem__(0, True))

    def reload() -> AgentConfig | None:
        nonlocal stamp
        try:
            now = path.stat().st_mtime_ns
        except OSError:
            return None
        if now == stamp and not asked[0]:
            return None
        stamp, asked[0] = now, False
        try:
            found = read_agent_config(path)
        except UsageError as error:
            log.warning("%s; what was read before stays", error.message)
            return None
        log.warning("configuration reloaded from %s", path)
        return found

    return estate, reload


def _log(verbose: bool, log_format: LogFormat) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(log_format))
    root = logging.getLogger("headwater")
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    root.propagate = False
    logging.getLogger("headwater.connect.librdkafka").setLevel(logging.CRITICAL)
    logging.getLogger("openlineage").setLevel(logging.ERROR)
    if err.is_terminal and log_format is LogFormat.TEXT:
        err.print("watching; Ctrl-C ends it, runs stay open for the next start", style="dim")
