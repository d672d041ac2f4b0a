"""`headwater lab up|status|down|…`: the services of a lab."""

from __future__ import annotations

import re
import shlex
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from headwater.cli.lab.options import Catalog, CatalogKind, Home, Services, open_lab
from headwater.cli.output import (
    AsJson,
    FetchBar,
    confirm,
    duration,
    err,
    escape,
    is_interactive,
    out,
    print_json,
    print_wide,
    remark,
    size,
    state,
)
from headwater.errors import UsageError

if TYPE_CHECKING:
    from headwater.lab.lab import Lab, ServiceStatus

STOPPING = "stopping, those that others need last: up to half a minute"


def up(
    services: Services = None,
    home: Home = None,
    port: Annotated[
        list[str] | None,
        typer.Option("--port", metavar="NAME=PORT", help="Fix a port, as kafka=9092; repeatable."),
    ] = None,
    tutorial: Annotated[
        bool,
        typer.Option(
            "--tutorial", help="Ports and names as in the tutorials, where the lab is new."
        ),
    ] = False,
    catalog: Catalog = CatalogKind.rest,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Kafka, Connect, registry and lineage server ask for logins, where the lab is new.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start services, downloading what they need at the first time. Those that run stay."""
    lab = open_lab(home)
    began = time.monotonic()

    def changed(service: str, to: str) -> None:
        if not as_json:
            err.print(f"{time.monotonic() - began:5.1f} s  {service:<15} {state(to)}")

    where = f" --home {shlex.quote(str(home))}" if home else ""
    try:
        with FetchBar() as progress:
            rows = lab.up(
                services or (),
                fixed=_ports(port or []),
                tutorial=tutorial,
                hive=catalog is CatalogKind.hive,
                secure=secure,
                progress=progress,
                changed=changed,
            )
    except KeyboardInterrupt:
        remark(f"interrupted; what was started goes on until: headwater lab down{where}")
        raise
    if as_json:
        print_json(rows)
        return
    _print_table(lab, rows)
    for row in rows:
        if row.page:
            out.print(f"The page of {row.service}: [cyan]{row.page}[/]", soft_wrap=True)
    out.print(f"What a client needs: [bold]headwater lab env{escape(where)}[/]", soft_wrap=True)


def status(services: Services = None, home: Home = None, as_json: AsJson = False) -> None:
    """Probe every service and show how it is. Exit code 1 when one that was started is not up."""
    rows = (lab := open_lab(home)).status(services or ())
    if as_json:
        print_json(rows)
    else:
        _print_table(lab, rows)
        for row in rows:
            if row.state in {"died", "unhealthy"}:
                _explain(row)
    if any(row.state not in {"running", "stopped"} for row in rows):
        raise typer.Exit(1)


def down(services: Services = None, home: Home = None, as_json: AsJson = False) -> None:
    """Stop what this lab started, and nothing else. Data stays."""
    with err.status(STOPPING):
        stopped = open_lab(home).down(services or ())
    if as_json:
        print_json({"stopped": stopped})
    else:
        text = f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
        out.print(text, soft_wrap=True)


def reset(
    home: Home = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop everything and wipe the lab's data."""
    lab = open_lab(home)
    if lab.home.exists and not yes and not as_json and is_interactive() and err.is_interactive:
        confirm(f"Wipe the data of the lab in {lab.home.root}?")
    there = lab.home.root.exists()
    with err.status(STOPPING):
        stopped = lab.reset()
    if as_json:
        print_json({"stopped": stopped, "wiped": str(lab.home.root) if there else None})
    else:
        text = "wiped" if there else "there is no lab in"
        out.print(f"{text} {escape(str(lab.home.root))}", soft_wrap=True)


def logs(
    service: Annotated[str, typer.Argument(help="The service.")],
    home: Home = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines as they come.")
    ] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many last lines.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Print the end of a service's log."""
    lab = open_lab(home)
    from headwater.lab.logs import follow as following
    from headwater.lab.logs import tail
    from headwater.lab.services import select

    select([service])
    path = lab.home.log(service)
    if not path.is_file():
        raise UsageError(
            f"{service} has no log yet in {lab.home.root}", hint=f"headwater lab up {service}"
        )
    if as_json:
        if follow:
            raise UsageError("--json and --follow exclude each other")
        print_json({"service": service, "log": str(path), "lines": tail(path, lines)})
    elif follow:
        for line in following(path, lines):
            out.out(line, end="")
    else:
        for line in tail(path, lines):
            out.out(line)


def fetch(services: Services = None, as_json: AsJson = False) -> None:
    """Download what the services need and verify every file; all of them when none is named."""
    from headwater.lab.files import fetch as fetching
    from headwater.lab.files.artifacts import lock
    from headwater.lab.files.cache import Cache
    from headwater.lab.services import SERVICES, select, with_needs

    cache = Cache()
    wanted = with_needs(select(services)) if services else list(SERVICES)
    try:
        with FetchBar() as progress:
            fetched = fetching.fetch(cache, lock().select(wanted), progress)
    except KeyboardInterrupt:
        remark("interrupted; what has arrived is kept: headwater lab fetch goes on from there")
        raise
    if as_json:
        print_json({**fetched._asdict(), "cache": str(cache.root)})
    else:
        out.print(
            f"{fetched.files} files, {size(fetched.size)}, verified in {escape(str(cache.root))} "
            f"({fetched.downloaded} downloaded now)",
            soft_wrap=True,
        )


class EnvFormat(str, Enum):
    shell = "shell"
    dotenv = "dotenv"
    json = "json"


def env(
    home: Home = None,
    form: Annotated[
        EnvFormat, typer.Option("--format", help="As shell exports, a .env file, or JSON.")
    ] = EnvFormat.shell,
    as_json: AsJson = False,
) -> None:
    """Print what a client needs: addresses and keys. For a shell: eval "$(headwater lab env)"."""
    found = open_lab(home).env()
    if as_json or form is EnvFormat.json:
        print_json(found)
    elif form is EnvFormat.dotenv:
        for name, value in found.items():
            out.out(f"{name}={_dotenv(value)}")
    else:
        for name, value in found.items():
            out.out(f"export {name}={shlex.quote(value)}")


def _ports(given: list[str]) -> dict[str, int]:
    ports = {}
    for item in given:
        name, _, number = item.partition("=")
        if not re.fullmatch(r"[0-9]{1,5}", number) or not 0 < int(number) < 65536:
            raise UsageError(f"--port {item}: not NAME=PORT", hint="for example --port kafka=9092")
        ports[name] = int(number)
    return ports


def _dotenv(value: str) -> str:
    """A value that a shell and the readers of `.env` files all read the same."""
    if re.fullmatch(r"[\w@%+=:,./-]*", value, re.ASCII):
        return value
    if "'" not in value:
        return f"'{value}'"
    return '"' + re.sub(r'([\\"$`])', r"\\\1", value) + '"'


def _print_table(lab: Lab, rows: list[ServiceStatus]) -> None:
    """Print the services, their logs relative to the home, which is printed once."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("service", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("port", "pid", "memory", "uptime"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("version", no_wrap=True)
    table.add_column("log", style="dim", overflow="fold")
    for row in rows:
        log = Path(row.log)
        table.add_row(
            row.service,
            state(row.state),
            str(row.port or ""),
            str(row.pid or ""),
            size(row.memory),
            duration(row.uptime),
            row.version,
            str(log.relative_to(lab.home.root)) if log.exists() else "",
        )
    total = sum(row.memory or 0 for row in rows)
    if total:
        table.add_section()
        table.add_row("", "", "", "", size(total), "", "", "", style="bold")
    print_wide(table)
    out.print(f"[dim]home[/] {escape(str(lab.home.root))}", soft_wrap=True)


def _explain(row: ServiceStatus) -> None:
    """Say why a service is not up: the end of its log, and what to do."""
    from headwater.lab.logs import tail

    text = "has died" if row.state == "died" else "is running but does not respond"
    err.print(f"\n[bold red]{row.service} {text}[/]; the end of its log:")
    for line in tail(Path(row.log)):
        err.out(f"  {line}")
    action = f"headwater lab up {row.service}"
    if row.state != "died":
        action = f"headwater lab down {row.service}, then {action}"
    err.print(
        f"[cyan]hint:[/] start it again: {action}; the whole log: headwater lab logs {row.service}",
        soft_wrap=True,
    )
