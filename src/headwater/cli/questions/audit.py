"""`headwater audit`: the provenance of a dataset, and whether the log it is read from is intact."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import Annotated, Any

import typer
import typer.core

from headwater.cli.options import spread
from headwater.cli.output import (
    AsJson,
    err,
    escape,
    out,
    print_json,
    print_wide,
    private_file,
    table_of,
)
from headwater.cli.questions.from_lake import Lake, of_audit, say_source
from headwater.cli.questions.shown_names import ShownNames, job_names
from headwater.cli.questions.times import BEGINNING, TIME, moment, until
from headwater.cli.questions.trace import DatasetName  # noqa: TC001
from headwater.cli.server.client import ServerOptions
from headwater.cli.server.store_options import StoreUrl, check_file, opened
from headwater.errors import HeadwaterError, NotFoundError, UsageError
from headwater.lineage.url_paths import path_of
from headwater.lineage.wording import hidden_text

__all__ = ["app"]

CHANGED = 5
"""The exit code for a log that was altered."""
SHOWN = 100
Head = tuple[int, str]
JobNames = dict[tuple[str, str], str]


class _ReportFirst(typer.core.TyperGroup):
    """Takes what is no command for a dataset: `audit orders` is `audit report orders`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in where there is none."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["report", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ReportFirst,
    no_args_is_help=True,
    help="Report where a dataset came from and who had it; check the log's hash chain.\n\n"
    "`headwater audit DATASET[.COLUMN]` is short for `headwater audit report`.",
)


@app.command()
@spread
def report(
    dataset: DatasetName,
    how: ServerOptions,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help=f"{TIME}; else all that is kept.",
            callback=moment,
            show_default=False,
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TIME", help="The same; else now.", callback=until, show_default=False
        ),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, max=50, help="How many jobs away.")] = 20,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a report to print.", show_default=False),
    ] = None,
    lake: Lake = None,
) -> None:
    """Show where a dataset or a column came from in a period, what touched it, and who had it."""
    if html is not None and how.as_json:
        raise UsageError("--html and --json exclude each other", hint="ask twice")
    server = how.server() if lake is None else of_audit(lake, dataset, start, end, depth)
    named = server.find(dataset, at=end, since=start or BEGINNING)
    path = path_of("api", "v2", "datasets", named.namespace, named.name, "audit")
    query = {"column": named.field or None, "from": start, "to": end, "depth": depth}
    if html is not None:
        text = server.get_text(f"{path}/report", **query)
        with private_file(html) as written:
            written.write(text.encode())
        out.print(f"wrote {html}", markup=False, soft_wrap=True)
        return
    found = server.get(path, **query)
    if how.as_json:
        print_json(found)
        return
    _print_report(found)
    server.print_page("datasets", named.namespace, named.name, "audit")
    if found["truncated"]:
        err.print("[yellow]there is more than is shown[/]")
    say_source(found)


def _print(text: str) -> None:
    out.print(text, soft_wrap=True)


def _print_report(found: dict[str, Any]) -> None:
    column = f".{found['column']}" if found["column"] else ""
    period = f"{found['since'] or 'the first record kept'} to {found['until']}"
    names = _names(found)
    jobs = job_names([*found["writers"], *found["readers"]])
    name = names.of(found["node"], found["name"])
    _print(f"[bold cyan]{escape(name + column)}[/] from {period}")
    others = [node for node in found["sources"] if node != found["node"]]
    sources = ", ".join(escape(names.of(node)) for node in others)
    _print(f"came from {sources or 'no source that is known'}")
    if found["hidden"]:
        _print(f"[yellow]{hidden_text(found['hidden'], 'next to these')}[/]")
    _print_writers(found["writers"], jobs)
    _print_configuration(found["writers"], jobs)
    _print_schemas(found["upstream"], names)
    _print_readers(found["readers"], jobs, names)


def _names(found: dict[str, Any]) -> ShownNames:
    """What all datasets of a report are called."""
    nodes = [found["node"], *found["sources"]]
    nodes += [one["id"] for side in ("upstream", "downstream") for one in found[side]]
    return ShownNames([*nodes, *(node for job in found["readers"] for node in job["outputs"])])


def _print_writers(jobs: list[dict[str, Any]], names: JobNames) -> None:
    _print("\n[bold]what made it[/]")
    table = table_of("job", "kind", "run", "state", "started", "ended")
    for job in jobs:
        kind = " ".join(word for word in (job["integration"], job["processing"]) if word)
        first: tuple[str, ...] = (names[job["namespace"], job["name"]], kind)
        for run in job["runs"] or [{}]:
            rest = (
                (run["id"], run["state"], run["startedAt"], run["endedAt"] or "")
                if run
                else ("no run in the period", "", "", "")
            )
            table.add_row(*(escape(str(cell or "")) for cell in (*first, *rest)))
            first = ("", "")
    print_wide(table) if jobs else _print("no job is known to have written it in the period")


def _print_configuration(jobs: list[dict[str, Any]], names: JobNames) -> None:
    _print("\n[bold]configuration and code[/]")
    table = table_of("job", "facet", "held", "content")
    for job in jobs:
        for one in (*job["configuration"], *job["code"]):
            runs = len(one.get("runs", ()))
            held = f"in {runs} run{'s' * (runs > 1)}" if runs else f"since {one['since']}"
            name = names[job["namespace"], job["name"]]
            cells = (name, one["facet"], held, _content(one["content"]))
            table.add_row(*(escape(str(cell)) for cell in cells))
    print_wide(table) if table.row_count else _print("no producer reported any")


def _content(content: dict[str, Any]) -> str:
    """A facet in a line; --json has all of it."""
    texts = (value for value in content.values() if isinstance(value, str))
    line = ", ".join(" ".join(text.split()) for text in texts)
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def _print_schemas(datasets: list[dict[str, Any]], names: ShownNames) -> None:
    _print("\n[bold]schemas[/]")
    table = table_of("dataset", "since", "until", "changed", "columns")
    for dataset in datasets:
        name = names.of(dataset["id"], dataset["name"])
        for schema in dataset["schemas"]:
            columns = ", ".join(field["name"] for field in schema["fields"])
            changed = "; ".join(schema["changes"])
            cells = (name, schema["since"], schema["until"] or "", changed, columns)
            table.add_row(*(escape(str(cell)) for cell in cells))
            name = ""
    print_wide(table) if table.row_count else _print("no schema is known")


def _print_readers(jobs: list[dict[str, Any]], names: JobNames, datasets: ShownNames) -> None:
    _print("\n[bold]who had it downstream[/]")
    table = table_of("job", "owners", "wrote", "runs", "last")
    for job in jobs:
        runs = job["runs"]
        last = f"{runs[0]['startedAt']} {runs[0]['state']}" if runs else ""
        owners = ", ".join(owner["name"] for owner in job["owners"])
        wrote = ", ".join(datasets.of(node) for node in job["outputs"])
        name = names[job["namespace"], job["name"]]
        cells = (name, owners, wrote, job["runCount"], last)
        table.add_row(*(escape(str(cell)) for cell in cells))
    print_wide(table) if jobs else _print("no job is known to have read it in the period")


@app.command()
@spread
def head(how: ServerOptions, store: StoreUrl = None) -> None:
    """Print the head of the log's hash chain, to be kept where nobody can change it.

    It is the server's, or with --store that of a store.
    """
    if store is None:
        print_json(how.server().get("/api/v2/log/head"))
        return
    if how.url is not None:
        raise UsageError("--store and --url exclude each other")
    from headwater.server.store.keep.chain import head_of

    check_file(store)
    with opened(store) as target, target.database.reading() as connection:
        seq, chain = head_of(connection)
    print_json({"seq": seq, "chain": chain.hex()})


@app.command()
def verify(
    store: StoreUrl = None,
    head_file: Annotated[
        Path | None,
        typer.Option(
            "--head", metavar="FILE", help="A head that `audit head` printed.", show_default=False
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", help="Check --head against this server.", show_default=False),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="A file with the token; else in $HEADWATER_TOKEN."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find records of the log that were altered, moved or taken out since the last checkpoint.

    With --head, also whether the log was cut or rewritten since that head was exported. Exit code 5
    means that it was; 1 that it cannot be decided; 2 that there is no such store or head to check.
    """
    exported = _exported(head_file)
    if url is not None:
        if store is not None:
            raise UsageError("--store and --url exclude each other")
        if exported is None:
            raise UsageError("a server is only asked for a head", hint="give one with --head FILE")
        found = _ask(ServerOptions(url, token_file), exported)
    else:
        found = _check(store, exported)
    if as_json:
        print_json(found)
    elif found["intact"]:
        what = "" if found["records"] is None else f"{found['records']:,} records read, "
        _print(f"{what}the log is as it was written, up to record {found['seq']:,}")
    else:
        err.print(f"[bold red]changed:[/] {escape(found['problem'])}", soft_wrap=True)
    if not found["intact"]:
        raise typer.Exit(CHANGED)


def _exported(file: Path | None) -> Head | None:
    if file is None:
        return None
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        seq, chain = value["seq"], value["chain"]
        if not isinstance(seq, int) or len(bytes.fromhex(chain)) != 32:
            raise ValueError
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError):
        raise UsageError(
            f"{file} is not a head of the log", hint="make one: headwater audit head > FILE"
        ) from None
    return seq, chain


def _answer(seq: int, records: int | None, problem: HeadwaterError | str | None) -> dict[str, Any]:
    text = problem.message if isinstance(problem, HeadwaterError) else problem
    return {"intact": problem is None, "seq": seq, "records": records, "problem": text}


def _ask(how: ServerOptions, exported: Head) -> dict[str, Any]:
    """Whether a server still has the record of a head, with the same link."""
    server = how.server()
    seq, chain = exported
    last = server.get("/api/v2/log/head")
    if seq > last["seq"]:
        return _answer(
            last["seq"], None, f"the log was cut: it ends at record {last['seq']}, not {seq}"
        )
    try:
        there = server.get("/api/v2/log/head", seq=seq or None)
    except NotFoundError as error:
        raise HeadwaterError(
            f"the head cannot be checked: {error.message}", hint="old events may have been deleted"
        ) from error
    rewritten = seq and there["chain"] != chain
    problem = f"the log was rewritten: record {seq} is another one" if rewritten else None
    return _answer(last["seq"], None, problem)


def _check(store: str | None, exported: Head | None) -> dict[str, Any]:
    """Whether the log of a store is whole, as one moment has it."""
    from headwater.server.http.serve import default_store
    from headwater.server.store.database import DamagedError, TamperedError
    from headwater.server.store.keep.chain import check_head, head_of
    from headwater.server.store.keep.rebuild import verify as read_all

    url = store or default_store()
    check_file(url)
    with opened(url) as target, target.database.reading() as connection:
        seq, _ = head_of(connection)
        try:
            if exported is not None:
                check_head(connection, (exported[0], bytes.fromhex(exported[1])))
            records = read_all(target, connection)
        except (DamagedError, TamperedError) as error:
            return _answer(seq, None, error)
    return _answer(seq, records, None)
