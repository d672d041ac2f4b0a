"""`headwater connect list|status|explain|apply|…`: connectors for people without another console."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.markup import escape
from rich.table import Table

from headwater.cli.output import AsJson, err, out, print_json
from headwater.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from headwater.connect.answers import Entry
    from headwater.connect.client import Connect
    from headwater.connect.config import ClusterConfig
    from headwater.connect.model import Derived

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
    typer.Option("--registry-url", metavar="U", help="The schema registry (Confluent API)."),
]
State = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="URL", help="A file, or postgresql://…  [default: a file of the user's]"
    ),
]
User = Annotated[str | None, typer.Option("--user", help="For basic auth.")]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", help="Its password; else in $CONNECT_PASSWORD."),
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="A bearer token; else in $CONNECT_TOKEN.")
]
Name = Annotated[str, typer.Argument(help="The connector.")]
STYLES = {"RUNNING": "green", "FAILED": "bold red", "PAUSED": "yellow", "STOPPED": "dim"}
PIPE_WIDTH = 200
LEAST_WIDTH = 40


def register(app: typer.Typer) -> None:
    """Put these commands below `headwater connect`."""
    app.command("list")(list_connectors)
    app.command()(status)
    app.command()(explain)
    app.command()(preview)
    app.command()(apply)
    for word, help_text in {
        "pause": "Pause a connector; its run completes.",
        "resume": "Let a paused or stopped connector go on; a new run starts.",
        "stop": "Stop a connector and let go of its tasks; its run is aborted.",
        "restart": "Restart a connector and its tasks; a new run starts.",
        "delete": "Delete a connector; its run completes.",
    }.items():
        app.command(word, help=help_text)(_action(word))


def cluster_config(
    urls: list[str] | None,
    *,
    kafka_bootstrap: str | None = None,
    registry_url: str | None = None,
    user: str | None = None,
    password_file: Path | None = None,
    token_file: Path | None = None,
    namespace: str | None = None,
    name: str | None = None,
    worker_properties: Path | None = None,
    mappings: list[Path] | None = None,
    sample: bool = False,
    times: dict[str, float] | None = None,
) -> ClusterConfig:
    """One cluster as options and environment describe it."""
    try:
        from headwater.connect.clusters import access_of
        from headwater.connect.config import (
            ClusterConfig,
            Worker,
            read_openlineage,
            read_worker,
        )
        from headwater.connect.pace import Times
    except ModuleNotFoundError as error:
        raise UsageError(
            f"this needs {error.name}, which is not installed",
            hint="pip install 'headwater[connect]'",
        ) from error
    if not urls:
        raise UsageError("where is Connect?", hint="--url http://HOST:8083, or $CONNECT_URL")
    worker = read_worker(worker_properties) if worker_properties else Worker()
    asked = read_openlineage(worker.openlineage)
    auth: dict[str, Any] = {}
    if user:
        auth["username"] = user
        auth["password"] = (
            {"file": str(password_file)} if password_file else {"env": "CONNECT_PASSWORD"}
        )
    if token_file:
        auth["token"] = {"file": str(token_file)}
    elif os.environ.get("CONNECT_TOKEN"):
        auth["token"] = {"env": "CONNECT_TOKEN"}
    access = access_of([part for one in urls for part in one.split(",")], auth, {}, "--url")
    bootstrap = kafka_bootstrap or worker.bootstrap
    given = {"poll": asked.poll, "heartbeat": asked.heartbeat, **(times or {})}
    registry = None
    if registry_url:
        info = os.environ.get("SCHEMA_REGISTRY_USER_INFO", "").partition(":")
        login = {"username": info[0], "password": info[2]} if info[0] else {}
        registry = access_of([registry_url], login, {}, "--registry-url")
    for key, value in given.items():
        if value is not None and value <= 0:
            raise UsageError(f"--{key} {value:g}: not a number of seconds above zero")
    return ClusterConfig(
        name=name or urlsplit(access.urls[0]).netloc,
        access=access,
        namespace=namespace
        or os.environ.get("OPENLINEAGE_NAMESPACE")
        or asked.namespace
        or "default",
        kafka={"bootstrap.servers": bootstrap, **worker.kafka} if bootstrap else {},
        registry=registry,
        defaults=worker.defaults,
        times=Times(**{key: value for key, value in given.items() if value is not None}),
        sample=sample,
        mappings=tuple(str(path) for path in mappings or ()),
    )


def list_connectors(
    url: Urls = None,
    kafka_bootstrap: Bootstrap = None,
    registry_url: RegistryUrl = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show every connector: state, tasks, lag, and what it reads and writes."""
    config = cluster_config(
        url, kafka_bootstrap=kafka_bootstrap, registry_url=registry_url, user=user,
        password_file=password_file, token_file=token_file,
    )  # fmt: skip
    from headwater.connect.look import look

    rows = look(config)
    if as_json:
        print_json(rows)
        return
    table = _table("connector", "type", "state", "tasks", "lag", "lineage")
    for row in rows:
        running = sum(task["state"] == "RUNNING" for task in row["tasks"])
        table.add_row(
            escape(row["name"]),
            row["type"],
            _state(row["state"]),
            f"{running}/{len(row['tasks'])} running" if row["tasks"] else "none",
            "" if row["lag"] is None else f"{row['lag']:,}",
            escape(row["lineage"] or row["problem"]),
        )
    _print(table)
    if not rows:
        out.print("no connectors")


def status(
    name: Annotated[str | None, typer.Argument(help="One connector; all without it.")] = None,
    url: Urls = None,
    state: State = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show states, tasks and traces, and what troubles the agent. Exit code 1 when one failed."""
    from headwater.connect.look import troubles

    config = cluster_config(url, user=user, password_file=password_file, token_file=token_file)
    connect = _connect(config)
    entries = [connect.entry(name)] if name else _entries(connect)
    said = troubles(state)
    if as_json:
        print_json(
            {
                "connectors": [{"name": e.info.name, **_plain(e, connect)} for e in entries],
                "troubles": said,
            }
        )
    else:
        _print_status(entries, connect)
        for one in said:
            where = f"{one['cluster']} {one['connector']}".strip()
            err.print(f"[yellow]{escape(where)}:[/] {escape(str(one['problem']))}", soft_wrap=True)
    if any("FAILED" in _states(entry) for entry in entries):
        raise typer.Exit(1)


def explain(
    name: Name,
    url: Urls = None,
    kafka_bootstrap: Bootstrap = None,
    registry_url: RegistryUrl = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say where each dataset and edge of a connector comes from: which key, rule or API."""
    from headwater.connect.look import derived_of

    config = cluster_config(
        url, kafka_bootstrap=kafka_bootstrap, registry_url=registry_url, user=user,
        password_file=password_file, token_file=token_file,
    )  # fmt: skip
    derived, problems = derived_of(config, name)
    if as_json:
        print_json(derived)
        return
    _print_derived(derived)
    for problem in [*derived.problems, *problems]:
        err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)


def preview(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE.json", help="As one would POST it to Connect.")
    ],
    kind: Annotated[
        str | None, typer.Option("--type", metavar="source|sink", help="What REST would say.")
    ] = None,
    topics: Annotated[
        str | None, typer.Option("--topics", metavar="a,b", help="What /topics would answer.")
    ] = None,
    kafka_bootstrap: Bootstrap = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", metavar="topic=FILE", help="A topic's value schema; repeatable."),
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Of the job.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the START event that a connector which is not deployed would send."""
    if kind not in (None, "source", "sink"):
        raise UsageError(f"--type {kind}: neither source nor sink")
    from headwater.connect.look import previewed

    pairs = [item.partition("=") for item in schema or ()]
    for topic, _, file in pairs:
        if not topic or not file:
            raise UsageError("--schema: not topic=FILE", hint="--schema orders=orders.avsc")
    derived, event = previewed(
        config,
        kind=kind,
        topics=tuple(t.strip() for t in (topics or "").split(",") if t.strip()),
        bootstrap=kafka_bootstrap,
        schemas={topic: Path(file) for topic, _, file in pairs},
        namespace=namespace or os.environ.get("OPENLINEAGE_NAMESPACE") or "default",
    )
    if as_json:
        print_json(event)
        return
    _print_derived(derived)
    for problem in derived.problems:
        err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)


def apply(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Connectors, one a file.")],
    url: Urls = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Make or change connectors: each is validated first, and what changes is shown."""
    from headwater.connect.deploy import changes, faults, fit, read_connector

    wanted = [read_connector(path) for path in files]
    connect = _connect(
        cluster_config(url, user=user, password_file=password_file, token_file=token_file)
    )
    available = {plugin["class"] for plugin in connect.plugins(connectors_only=False)}
    plans = []
    for name, asked in wanted:
        config, left_out = fit(asked, available)
        for transform in left_out:
            err.print(
                f"[yellow]note:[/] {escape(name)}: transform {transform} is left out: the worker "
                "lacks its plug-in; the agent reports the lineage without it",
                soft_wrap=True,
            )
        wrong = faults(connect.validate(config))
        if wrong:
            raise HeadwaterError(
                f"{name}: the plug-in refuses the configuration: {'; '.join(wrong)}",
                hint="nothing was changed",
            )
        declared = connect.passwords(config["connector.class"])
        before = connect.entry(name).info.config if connect.exists(name) else None
        plans.append((name, config, before is None, changes(before, config, declared), left_out))
    for name, config, _, found, _ in plans:
        if found and not dry_run:
            connect.put(name, config)
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "created": new,
                    "applied": bool(found) and not dry_run,
                    "changes": [change._asdict() for change in found],
                    "leftOut": left_out,
                }
                for name, _, new, found, left_out in plans
            ]
        )
        return
    for name, _, new, found, _ in plans:
        word = ("new" if new else "changed") if found else "as it was"
        out.print(f"[bold]{escape(name)}[/] {word}{' (not applied)' if dry_run else ''}")
        for key, old, now in found:
            if old is not None:
                out.print(f"  [red]- {escape(key)} = {escape(old)}[/]", soft_wrap=True)
            if now is not None:
                out.print(f"  [green]+ {escape(key)} = {escape(now)}[/]", soft_wrap=True)


def _action(word: str) -> Any:
    def act(
        names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The connectors.")],
        url: Urls = None,
        state: State = None,
        user: User = None,
        password_file: PasswordFile = None,
        token_file: TokenFile = None,
        as_json: AsJson = False,
    ) -> None:
        config = cluster_config(url, user=user, password_file=password_file, token_file=token_file)
        connect = _connect(config)
        for name in names:
            connect.act(name, word)
            if word == "restart":
                from headwater.connect.look import note_restart

                note_restart(state, config.access.urls[0], name)
        if as_json:
            print_json({"action": word, "connectors": names})
        else:
            done = {"stop": "stopped"}.get(word, f"{word.removesuffix('e')}ed")
            out.print(f"{done} {escape(', '.join(names))}")

    return act


def _connect(config: ClusterConfig) -> Connect:
    from headwater.connect.client import Connect

    return Connect(config.access)


def _entries(connect: Connect) -> list[Entry]:
    from headwater.connect.access import ConnectError
    from headwater.connect.answers import read_entry

    found = []
    for name, raw in sorted(connect.poll().items()):
        try:
            found.append(read_entry(name, raw))
        except ConnectError as error:
            err.print(f"[yellow]{escape(name)}:[/] {escape(error.message)}", soft_wrap=True)
    return found


def _states(entry: Entry) -> set[str]:
    return {entry.status.state, *(task.state for task in entry.status.tasks)}


def _plain(entry: Entry, connect: Connect) -> dict[str, Any]:
    import msgspec

    from headwater.connect.redact import scrub, secrets

    hidden = secrets(entry.info.config, connect.passwords(entry.info.config["connector.class"]))
    found: dict[str, Any] = msgspec.to_builtins(entry.status)
    for part in (found, *found["tasks"]):
        part["trace"] = scrub(part["trace"], hidden)
    return {"type": entry.info.type, **found}


def _print_status(entries: list[Entry], connect: Connect) -> None:
    table = _table("connector", "part", "state", "worker", "version")
    traces = []
    for entry in entries:
        found = _plain(entry, connect)
        parts = [("connector", found), *((f"task {t['id']}", t) for t in found["tasks"])]
        for at, (part, values) in enumerate(parts):
            name = escape(entry.info.name) if at == 0 else ""
            table.add_row(
                name, part, _state(values["state"]), values["worker_id"], values["version"]
            )
            if values["trace"]:
                traces.append((f"{entry.info.name} {part}", values["trace"]))
    _print(table)
    for where, trace in traces:
        out.print(f"\n[bold red]{escape(where)}[/]")
        out.print(escape(trace.strip()), soft_wrap=True)


def _print_derived(derived: Derived) -> None:
    out.print(
        f"[bold]{escape(derived.job_name)}[/] in {escape(derived.namespace)}: {derived.family}"
        f"{f', {derived.role}' if derived.role else ''}"
    )
    table = _table("", "dataset", "columns", "evidence")
    for side, datasets in (("reads", derived.inputs), ("writes", derived.outputs)):
        for dataset in datasets:
            count = len(dataset.schema.columns()) if dataset.schema else 0
            table.add_row(
                side,
                escape(f"{dataset.namespace} {dataset.name}"),
                str(count or "unknown"),
                escape(_evidence(dataset.evidence)),
            )
    _print(table)
    if derived.edges:
        edges = _table("from", "to", "columns", "evidence")
        for edge in derived.edges:
            known = "unknown" if edge.columns is None else f"{len(edge.columns)} edges"
            edges.add_row(
                escape(edge.input.name), escape(edge.output.name), known,
                escape(_evidence(edge.evidence)),
            )  # fmt: skip
        out.print()
        _print(edges)


def _evidence(found: Any) -> str:
    return "; ".join(
        f"{one.source}: {one.detail} ({'observed' if one.observed else 'derived'})" for one in found
    )


def _state(name: str) -> str:
    return f"[{STYLES.get(name, 'yellow')}]{name.lower()}[/]"


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(
            name, overflow="fold", min_width=LEAST_WIDTH if name == "evidence" else None
        )
    return table


def _print(table: Table) -> None:
    if table.row_count:
        out.print(table, width=None if out.is_terminal else PIPE_WIDTH)
