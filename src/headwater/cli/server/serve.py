"""`headwater server` and `headwater rebuild`."""

from __future__ import annotations

import logging
import socket
from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.options import LogFormatOption  # noqa: TC001  (typer reads it)
from headwater.cli.output import AsJson, err, out, print_json
from headwater.cli.server.store_options import StoreUrl, opened, seconds
from headwater.errors import EnvironmentProblem, UsageError
from headwater.logs import LogFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lineage.schema import Schema
    from headwater.server.app import App
    from headwater.server.store import Store

__all__ = ["check_certificate", "read_properties", "rebuild", "require_free", "server"]

log = logging.getLogger("headwater.server")


def server(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 5000,
    store: StoreUrl = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with tokens, one a line, that may do everything.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the web page.")] = True,
    insecure: Annotated[
        bool,
        typer.Option(
            help="Serve without any token beyond this machine, or where the last one was revoked."
        ),
    ] = False,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another host name that requests may be addressed to; may be repeated. A server "
            "on this machine alone answers to its own address and to localhost.",
            show_default=False,
        ),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS private key (PEM).")] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="Delete runs and events older than this, such as 90d."),
    ] = None,
    max_age: Annotated[
        str | None, typer.Option(help="Close runs that have been silent this long, such as 2d.")
    ] = None,
    body_limit: Annotated[
        int, typer.Option(min=1, help="The largest event or other body, in bytes, unpacked.")
    ] = 10 * 1024 * 1024,
    batch_limit: Annotated[
        int, typer.Option(min=1, help="The largest body of many events, in bytes, unpacked.")
    ] = 100 * 1024 * 1024,
    batch_events: Annotated[
        int, typer.Option(min=1, help="The most events or flow samples in one request.")
    ] = 10_000,
    event_values: Annotated[
        int, typer.Option(min=1, help="The most JSON values in one event.")
    ] = 250_000,
    event_datasets: Annotated[
        int, typer.Option(min=1, help="The most inputs, outputs, or other datasets of one event.")
    ] = 5_000,
    header_limit: Annotated[
        int, typer.Option(min=1_024, help="The largest address with headers, in bytes.")
    ] = 32 * 1024,
    bodies_limit: Annotated[
        int,
        typer.Option(min=1, help="The most bytes of all bodies being received or answered."),
    ] = 256 * 1024 * 1024,
    connections: Annotated[int, typer.Option(min=1, help="The most connections.")] = 1_000,
    client_connections: Annotated[
        int,
        typer.Option(
            min=1,
            help="The most connections from one address; of a client behind a trusted proxy, the "
            "most requests at a time.",
        ),
    ] = 250,
    request_timeout: Annotated[
        int,
        typer.Option(min=1, help="Seconds to send a request; a body gets one more per 16 KiB."),
    ] = 10,
    alerts: Annotated[
        Path | None,
        typer.Option(help="A file with alert rules (TOML): which channels are notified of what."),
    ] = None,
    kafka_bootstrap: Annotated[
        str | None, typer.Option(help="Also read events from this Kafka cluster.")
    ] = None,
    topic: Annotated[str, typer.Option(help="The topic with events.")] = "openlineage.events",
    kafka_group: Annotated[
        str, typer.Option(help="The consumer group that servers on one store share.")
    ] = "headwater",
    dead_letter_topic: Annotated[
        str | None,
        typer.Option(
            help="Where messages go that cannot be read.",
            show_default="the topic's name and .dead",
        ),
    ] = None,
    forward_kafka: Annotated[
        str | None,
        typer.Option(
            metavar="BOOTSTRAP[/TOPIC]",
            help="Also send the log, events and commands, to this topic, else to openlineage.events.",
            show_default=False,
        ),
    ] = None,
    lake: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Answer about moments older than --keep from the lake (iceberg://CATALOG/NAMESPACE).",
            show_default=False,
        ),
    ] = None,
    kafka_config: Annotated[
        Path | None,
        typer.Option(help="A file with more client settings, KEY=VALUE a line, such as SASL."),
    ] = None,
    root_path: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The path below which a proxy serves this, as /lineage."),
    ] = None,
    trusted_proxies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A proxy, or a network of them, whose X-Forwarded-For and --user-header are "
            "believed; may be repeated.",
            show_default=False,
        ),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The header in which a trusted proxy names the person it has signed in, as "
            "X-Forwarded-User.",
        ),
    ] = None,
    user_role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[USER=]ROLE",
            help="What people with --user-header may do: read, write, admin or none; may be "
            "repeated.",
            show_default="read",
        ),
    ] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Take OpenLineage events in and answer questions about the graph."""
    from headwater.lineage.openlineage.events import Limits
    from headwater.server.alerts.rules import read_rules
    from headwater.server.app import ServerSettings
    from headwater.server.http.auth import read_people
    from headwater.server.http.proxies import read_root_path
    from headwater.server.http.serve import read_tokens, serve

    check_certificate(certificate, key)
    settings = ServerSettings(
        tokens=read_tokens(token_file),
        page=page,
        keep=seconds(keep, "--keep"),
        max_age=seconds(max_age, "--max-age"),
        body_limit=body_limit,
        batch_limit=batch_limit,
        batch_events=batch_events,
        header_limit=header_limit,
        bodies_limit=bodies_limit,
        connections=connections,
        client_connections=client_connections,
        request_timeout=request_timeout,
        alerts=read_rules(alerts) if alerts else None,
        address="" if root_path or not page else _address(host, port, secure=bool(certificate)),
        root_path=read_root_path(root_path),
        trusted_proxies=trusted_proxies or [],
        user_header=user_header,
        people=read_people(user_role or []),
    )
    if user_role and not user_header:
        raise UsageError("--user-role needs --user-header")
    kafka = read_properties(kafka_config)
    configure: list[Any] = []

    # Not before the store is open: it may be refused.
    def say(text: str) -> None:
        configure.append(lambda _: _say(text, log_format))

    if kafka_bootstrap is not None or forward_kafka is not None:
        import confluent_kafka  # noqa: F401  (where it is missing, say so now and not at each retry)
    if kafka_bootstrap is not None:
        from headwater.server.ingest.kafka import KafkaSettings, consume

        source = KafkaSettings(
            bootstrap=kafka_bootstrap,
            topic=topic,
            group=kafka_group,
            member=f"{socket.gethostname()}-{port}",
            dead_letters=dead_letter_topic or "",
            config=kafka,
        )
        configure.append(lambda app: app.background.append(consume(source)))
        say(f"reading {source.topic} of {source.bootstrap}; dead letters: {source.dead}")
    configure.append(_with_preview)
    if lake is not None:
        from headwater.lake.analysis_results import LakeAnalysis
        from headwater.lake.history import LakeHistory
        from headwater.lake.iceberg import open_lake

        open_lake(lake)  # says what is wrong with the address before anything starts
        configure.append(lambda app: setattr(app.past, "history", LakeHistory(lake)))
        configure.append(lambda app: setattr(app, "analysis", LakeAnalysis(lake)))
    if forward_kafka is not None:
        from headwater.server.forward import ForwardSettings, forward, read_target

        bootstrap, target = read_target(forward_kafka)
        if kafka_bootstrap is not None and target == topic:
            raise UsageError(
                f"{target} would be read and written: commands in it are no events",
                hint="say another topic: --forward-kafka BOOTSTRAP/TOPIC",
            )
        out_to = ForwardSettings(bootstrap=bootstrap, topic=target, config=kafka)
        configure.append(lambda app: forward(app, out_to))
        say(f"forwarding the log to {target} of {bootstrap}")
    require_free(host, port)

    def listening(taken: int) -> None:
        shown = _web_address(host, taken, secure=bool(certificate))
        _say(f"headwater server on {shown}", log_format)

    serve(
        host=host,
        port=port,
        store=store,
        settings=settings,
        limits=Limits(values=event_values, datasets=event_datasets),
        insecure=insecure,
        allowed=allowed_host or (),
        certificate=certificate,
        key=key,
        log_format=log_format,
        configure=configure,
        listening=listening,
    )


def _address(host: str, port: int, *, secure: bool) -> str:
    """Where a browser finds the server; empty where it listens on every address, or any port."""
    if host in ("", "0.0.0.0", "::") or not port:  # noqa: S104
        return ""
    return _web_address(host, port, secure=secure)


def _web_address(host: str, port: int, *, secure: bool) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def _with_preview(app: App) -> None:
    """Let the page ask what the agent would make of a connector; the two never import each other."""

    def preview(
        text: str, bootstrap: str, schema_of: Callable[[str], Schema | None]
    ) -> dict[str, Any]:
        try:
            from headwater.connect.commands.preview import preview_text
        except ModuleNotFoundError as error:
            raise UsageError(
                f"a preview needs {error.name}, which the server's environment lacks: "
                "pip install 'headwater[connect]'"
            ) from None
        return preview_text(text, bootstrap, schema_of)

    app.preview = preview


def require_free(host: str, port: int) -> None:
    """Say at once, and in one line, where a server cannot listen; one address of a name is enough."""
    refused = None
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        places, refused = [], error
    for family, kind, protocol, _, address in places:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                return
        except OSError as error:
            refused = error
    raise EnvironmentProblem(
        f"cannot listen on {host}:{port}: {refused.strerror if refused else 'no such address'}",
        hint="say another --port or --host, or end what listens there",
    )


def _say(text: str, log_format: LogFormat) -> None:
    if log_format is LogFormat.JSON:
        log.info("%s", text)
    else:
        err.print(text, markup=False, soft_wrap=True)


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Refuse what TLS cannot be served with, before anything is opened."""
    if certificate is None or key is None:
        if certificate is not key:
            raise UsageError("TLS needs both --certificate and --key")
        return
    for file in (certificate, key):
        if not file.is_file():
            raise UsageError(f"{file} is not a file")
    try:
        # A key with a passphrase would otherwise be asked for on the terminal.
        SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:
        reason = (error.reason or "not PEM") if isinstance(error, SSLError) else error.strerror
        raise UsageError(
            f"--certificate {certificate} and --key {key} cannot be used: {reason}",
            hint="PEM files: the certificate with its chain, and its key without a passphrase",
        ) from None


def read_properties(file: Path | None) -> dict[str, str]:
    """Client settings from a file, so that secrets need not stand on the command line."""
    if file is None:
        return {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, sign, value = line.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"{file}, line {number} is not KEY=VALUE")
        found[name.strip()] = value.strip()
    return found


def rebuild(
    store: StoreUrl = None,
    from_lake: Annotated[
        str | None,
        typer.Option(
            "--from-lake",
            metavar="URL",
            help="Make a new store from the lake (iceberg://CATALOG/NAMESPACE).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the graph from the log, and verify the log's hash chain."""
    from headwater.server.store.keep.rebuild import rebuild as run

    with opened(store, new=from_lake is not None) as target:
        count = run(target) if from_lake is None else _restored(target, from_lake)
    if as_json:
        print_json({"records": count})
    elif from_lake is not None:
        out.print(f"{count:,} records of the lake taken in")
    else:
        out.print(f"{count:,} records read, hash chain verified, graph rebuilt")


def _restored(target: Store, url: str) -> int:
    from headwater.lake.iceberg import open_lake
    from headwater.lake.restore import restore

    return restore(target, open_lake(url).log())
