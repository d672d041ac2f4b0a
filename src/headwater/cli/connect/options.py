"""A Connect cluster as options and environment describe it."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from headwater.errors import UsageError

if TYPE_CHECKING:
    from headwater.connect.config import ClusterConfig
    from headwater.connect.services.endpoint import Endpoint
    from headwater.connect.services.rest import ConnectRest

Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url", metavar="CONNECT", help="Connect's REST address; repeat it for more workers.",
        envvar="CONNECT_URL",
    ),
]  # fmt: skip
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--kafka-bootstrap", metavar="H:P", help="Kafka's address.", envvar="KAFKA_BOOTSTRAP"
    ),
]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry-url",
        metavar="U",
        help="The schema registry (Confluent API); its login in $SCHEMA_REGISTRY_USER_INFO.",
    ),
]
Sample = Annotated[
    bool, typer.Option("--sample", help="Read a JSON record of topics without a schema.")
]
WorkerProperties = Annotated[
    Path | None,
    typer.Option("--worker-properties", metavar="FILE", help="A worker's own settings."),
]
State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="URL",
        help="A file, or postgresql://…",
        show_default="a file of the user's",
    ),
]


@dataclass(frozen=True)
class LoginOptions:
    """How to be let in: options of every command that talks to Connect."""

    user: Annotated[
        str | None, typer.Option("--user", help="For basic auth.", envvar="CONNECT_USER")
    ] = None
    password_file: Annotated[
        Path | None,
        typer.Option("--password-file", help="Its password; else in $CONNECT_PASSWORD."),
    ] = None
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="A bearer token; else in $CONNECT_TOKEN.")
    ] = None
    ca: Annotated[
        Path | None,
        typer.Option(
            "--ca", metavar="PEM", help="Certificates to trust for Connect.", envvar="CONNECT_CA"
        ),
    ] = None
    cert: Annotated[
        Path | None,
        typer.Option(
            "--cert",
            metavar="PEM",
            help="The client certificate to show to Connect.",
            envvar="CONNECT_CERT",
        ),
    ] = None
    key: Annotated[
        Path | None, typer.Option("--key", metavar="PEM", help="Its key.", envvar="CONNECT_KEY")
    ] = None

    def auth(self) -> dict[str, Any]:
        """Who we are, with secrets still where they are kept."""
        found: dict[str, Any] = {}
        if self.user:
            found["username"] = self.user
            found["password"] = (
                {"file": str(self.password_file)}
                if self.password_file
                else {"env": "CONNECT_PASSWORD"}
            )
        if self.token_file:
            found["token"] = {"file": str(self.token_file)}
        elif os.environ.get("CONNECT_TOKEN"):
            found["token"] = {"env": "CONNECT_TOKEN"}
        return found

    def tls(self) -> dict[str, str]:
        """Certificates, by their files."""
        return {name: str(getattr(self, name) or "") for name in ("ca", "cert", "key")}


@dataclass(frozen=True)
class ClusterOptions:
    """The addresses of a Connect cluster and of the Kafka and registry beside it."""

    url: Urls = None
    kafka_bootstrap: Bootstrap = None
    registry_url: RegistryUrl = None
    worker_properties: WorkerProperties = None

    def config(self, login: LoginOptions, *, sample: bool = False) -> ClusterConfig:
        """The cluster that is there."""
        return cluster_config(
            self.url,
            login,
            kafka_bootstrap=self.kafka_bootstrap,
            registry_url=self.registry_url,
            worker_properties=self.worker_properties,
            sample=sample,
        )


def cluster_config(
    urls: list[str] | None,
    login: LoginOptions,
    *,
    kafka_bootstrap: str | None = None,
    registry_url: str | None = None,
    namespace: str | None = None,
    name: str | None = None,
    worker_properties: Path | None = None,
    mappings: list[Path] | None = None,
    sample: bool = False,
    times: dict[str, float] | None = None,
    consumer_groups: bool = True,
    skip_groups: list[str] | None = None,
    producers: bool = True,
    skip_producers: list[str] | None = None,
) -> ClusterConfig:
    """One cluster as options and environment describe it."""
    from headwater.connect.agent.clusters_file import endpoint_of
    from headwater.connect.config import (
        ClusterConfig,
        WorkerConfig,
        read_openlineage,
        read_worker,
    )
    from headwater.connect.life.intervals import Intervals

    if not urls:
        raise UsageError("where is Connect?", hint="--url http://HOST:8083, or $CONNECT_URL")
    worker = read_worker(worker_properties) if worker_properties else WorkerConfig()
    asked = read_openlineage(worker.openlineage)
    parts = [part for one in urls for part in one.split(",")]
    endpoint = endpoint_of(parts, login.auth(), login.tls(), "--url")
    bootstrap = kafka_bootstrap or worker.bootstrap
    given = {"poll": asked.poll, "heartbeat": asked.heartbeat, **(times or {})}
    registry = registry_endpoint(registry_url, "--registry-url") if registry_url else None
    for option, value in given.items():
        if value is not None:
            check_interval(option, value)
    return ClusterConfig(
        name=name or urlsplit(endpoint.urls[0]).netloc,
        endpoint=endpoint,
        namespace=namespace
        or os.environ.get("OPENLINEAGE_NAMESPACE")
        or asked.namespace
        or "default",
        kafka={"bootstrap.servers": bootstrap, **worker.kafka} if bootstrap else {},
        registry=registry,
        defaults=worker.defaults,
        times=Intervals(**{option: value for option, value in given.items() if value is not None}),
        sample=sample,
        mappings=tuple(str(path) for path in mappings or ()),
        consumer_groups=consumer_groups,
        skip_groups=tuple(skip_groups or ()),
        producers=producers,
        skip_producers=tuple(skip_producers or ()),
    )


def check_interval(option: str, value: float) -> None:
    """Refuse what is no time between two polls or heartbeats."""
    if not 0 < value < math.inf:
        raise UsageError(f"--{option} {value:g}: not a number of seconds above zero")


def registry_endpoint(url: str, option: str) -> Endpoint:
    """A schema registry with the login that the environment or its address has."""
    from headwater.connect.agent.clusters_file import endpoint_of

    user, _, password = os.environ.get("SCHEMA_REGISTRY_USER_INFO", "").partition(":")
    known = {"username": user, "password": password} if user else {}
    return endpoint_of([url], known, {}, option)


def connect_to(config: ClusterConfig) -> ConnectRest:
    """A client of the cluster."""
    from headwater.connect.services.rest import ConnectRest

    return ConnectRest(config.endpoint)
