"""`headwater impact`: who is hit by a change, for people, for scripts and for a pull request."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads the annotation)
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.options import given, spread
from headwater.cli.output import escape, out, print_json, visible
from headwater.cli.questions.shown_names import ShownNames
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads it)
from headwater.errors import NotFoundError, UsageError
from headwater.lineage.wording import counted, hidden_text

if TYPE_CHECKING:
    from headwater.cli.server.client import ResolvedName
    from headwater.lineage.schema import Schema

__all__ = ["impact"]

BREAKS = 5
"""The exit code when something breaks."""
SHOWN = 50
"""Jobs, and columns, of one effect that are printed; `--json` has all."""
NAMED = 5
"""Jobs that are named in the last line."""
STYLE = {"breaks": "bold red", "changes": "yellow", "rows": "yellow", "unknown": "magenta"}
MEANS = {
    "breaks": "names what goes, or cannot take its new type",
    "unknown": "nobody can tell: it may break",
    "changes": "reads what a job before it derives, or takes the new type",
    "rows": "reads or holds other rows",
    "carries": "hands the change on",
}


@spread
def impact(
    dataset: Annotated[
        str | None,
        typer.Argument(help="NAME or NAMESPACE:NAME; with --subject, its topic is assumed."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column that goes; repeatable.")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(metavar="A=B", help="A column's new name; repeatable.")
    ] = None,
    retype: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="COL=TYPE", help="A column's new type; repeatable."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="The whole new schema: a file .avsc, .json (JSON Schema) or .proto."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="The dataset itself goes.")] = False,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Compare --schema with the version registered here, by --subject;"
            " its login in $SCHEMA_REGISTRY_USER_INFO.",
        ),
    ] = None,
    subject: Annotated[str | None, typer.Option(help="The registered subject.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a comment for a pull request.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Count what is unknown as broken.")
    ] = False,
    *,
    how: ServerOptions,
) -> None:
    """Say who is hit when a dataset changes: what breaks, what changes downstream, what is unknown.

    Exit code 5 when something breaks, so that it can guard a change in CI.
    """
    if how.as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="ask twice")
    changes = _changes(drop, rename, retype, delete=delete)
    if (schema is not None) + bool(changes) != 1:
        raise UsageError(
            "say what changes: --drop, --rename, --type or --delete, or --schema with the new one"
        )
    _check_registry(registry, subject, schema)
    named = _topic(subject) if dataset is None and subject is not None else dataset
    if named is None:
        raise UsageError("say which dataset changes")
    server = how.server()
    found = server.find_dataset(named, "{namespace}:{name} --drop {field}")
    body: dict[str, Any] = {"node": found.node}
    if schema is None:
        body["changes"] = changes
    else:
        body["schema"] = _fields(_read(schema))
    if registry is not None and subject is not None:
        body["before"] = _fields(_registered(registry, subject))
        body["part"] = "key" if subject.endswith("-key") else "value"
    answer = server.post("/api/v2/impact", body)
    if how.as_json:
        print_json(answer)
    elif markdown:
        out.print(_markdown(answer), markup=False, soft_wrap=True, end="")
    else:
        _print(answer, found)
        server.print_page("datasets", found.namespace, found.name)
    counts = answer["counts"]
    if counts["breaks"] or (strict and (counts["unknown"] or answer["truncated"])):
        raise typer.Exit(BREAKS)


def _changes(
    drop: list[str] | None, rename: list[str] | None, retype: list[str] | None, *, delete: bool
) -> list[dict[str, str]]:
    found = [
        {"kind": "drop", "column": given(column, "the column of --drop")} for column in drop or ()
    ]
    for kind, asked in (("rename", rename), ("type", retype)):
        for text in asked or ():
            column, equals, to = text.partition("=")
            if not (column.strip() and equals and to.strip()):
                raise UsageError(f"--{kind} {text!r}: say COLUMN=NEW")
            found.append({"kind": kind, "column": column, "to": to})
    if delete and found:
        raise UsageError("with --delete nothing else can change")
    return [{"kind": "delete"}] if delete else found


def _check_registry(registry: str | None, subject: str | None, schema: Path | None) -> None:
    for option, text in (("--subject", subject), ("--registry", registry)):
        if text is not None:
            given(text, option)
    if (registry is None) != (subject is None) or (registry is not None and schema is None):
        raise UsageError("--registry needs --subject and --schema")


def _topic(subject: str) -> str:
    topic, dash, part = subject.rpartition("-")
    return topic if dash and part in ("key", "value") else subject


def _read(path: Path) -> Schema:
    from headwater.lineage.schema import (
        SchemaError,
        read_avro,
        read_json_schema,
        read_protobuf,
    )

    try:
        text = path.read_text("utf-8")
        if path.suffix == ".proto":
            return read_protobuf(text)
        if path.suffix == ".avsc":
            return read_avro(text)
        if path.suffix == ".json":
            read = read_json_schema(text)
            if not read.fields and not read.type:
                raise SchemaError("schema: it has neither a type nor properties")
            return read
    except (OSError, UnicodeDecodeError, SchemaError) as error:
        raise UsageError(f"cannot read the schema {path}: {error}") from error
    raise UsageError(f"{path} is neither .avsc, .json (JSON Schema) nor .proto")


def _fields(schema: Schema) -> list[Any]:
    import msgspec

    fields: list[Any] = msgspec.to_builtins(schema.fields)
    return fields


def _registered(registry: str, subject: str) -> Schema:
    """The schema that is registered now."""
    from headwater.cli.connect.options import registry_endpoint
    from headwater.connect.services.registry import SchemaRegistry

    client = SchemaRegistry(registry_endpoint(registry, "--registry"))
    try:
        found = client.latest(subject)
    finally:
        client.close()
    if found is None or found.schema is None:
        problem = f": {found.problem}" if found and found.problem else ""
        raise NotFoundError(f"{subject} is not registered at {client.shown}{problem}")
    return found.schema


def _names(answer: dict[str, Any]) -> ShownNames:
    nodes = [answer["dataset"], *(one["dataset"] for one in answer["columns"])]
    nodes += answer["coverage"].get("columnsUnknown", ())
    for job in answer["jobs"]:
        nodes += [job["id"], *job["stops"]]
        nodes += [node for step in job["path"] for node in (step["dataset"], step["job"])]
    return ShownNames(nodes)


def _column(one: dict[str, Any], names: ShownNames) -> str:
    name = names.of(one["dataset"])
    return f"{name}.{one['column']}" if one["column"] else name


def _path(job: dict[str, Any], names: ShownNames) -> str:
    parts = []
    datasets = {names.of(step["dataset"]) for step in job["path"]}
    for step in job["path"]:
        how = ", ".join(str(t["subtype"] or t["type"]).lower() for t in step["transformations"])
        name = names.of(step["job"])
        name = f"job {name}" if name in datasets else name
        parts += [_column(step, names), name + (f" ({how})" if how else "")]
    return " → ".join(parts)


def _known_from(job: dict[str, Any]) -> str:
    """What the producers on the path know it from, each kind of evidence once."""
    kinds = {
        f"{one.get('source')} ({'observed' if one.get('observed') else 'derived'})": None
        for step in job["path"]
        for one in step["evidence"]
    }
    return ", ".join(kinds)


def _headline(answer: dict[str, Any], name: str, place: str = "") -> str:
    changes = [one["text"] for one in answer["changes"] if one["judged"]]
    others = [one["text"] for one in answer["changes"] if not one["judged"]]
    text = "; ".join(changes) or "nothing that a reader could miss"
    where = f" ({place})" if place else ""
    return f"{name}{where}: {text}" + (f" (and {'; '.join(others)})" if others else "")


def _coverage(answer: dict[str, Any], names: ShownNames) -> str:
    coverage, counts = answer["coverage"], answer["counts"]
    jobs, known = coverage["jobs"], coverage["columnsKnown"]
    reads = "reads" if jobs == 1 else "read"
    text = f"{counted(jobs, 'job')} {reads} what changes or lies behind it; the columns of {known} are known"
    if blind := coverage.get("columnsUnknown"):
        more = f" and {len(blind) - NAMED} more" if len(blind) > NAMED else ""
        text += f", not those of {', '.join(map(names.of, blind[:NAMED]))}{more}"
    text += f"; {counts['unaffected']} unaffected, {counts['unknown']} unknown"
    if coverage["hidden"]:
        text += f" ({hidden_text(coverage['hidden'], 'behind it')})"
    if answer["truncated"]:
        text += "; the answer was cut, there is more behind"
    return text


def _by_effect(answer: dict[str, Any], member: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {effect: [] for effect in MEANS}
    for one in answer[member]:
        found[one["effect"]].append(one)
    return {effect: some for effect, some in found.items() if some}


def _print(answer: dict[str, Any], named: ResolvedName) -> None:
    def line(text: str) -> None:
        out.print(text, soft_wrap=True)

    line(f"[bold]{escape(_headline(answer, named.name, named.place))}[/]")
    named.print_others()
    names = _names(answer)
    columns = _by_effect(answer, "columns")
    for effect, jobs in _by_effect(answer, "jobs").items():
        style = STYLE.get(effect, "none")
        line(f"\n[{style}]{effect}:[/] [dim]{MEANS[effect]}[/]")
        for job in jobs[:SHOWN]:
            owners = ", ".join(one["name"] for one in job["owners"])
            line(f"  [bold]{escape(names.of(job['id'], job['name']))}[/]: {escape(job['why'])}"
                 + (f" [dim]owned by {escape(owners)}[/]" if owners else ""))  # fmt: skip
            if job["path"]:
                line(f"    [dim]{escape(_path(job, names))}[/]")
            if evidence := _known_from(job):
                line(f"    [dim]known from {escape(evidence)}[/]")
            for stopped in job["stops"]:
                line(f"    [dim]writes[/] {escape(names.of(stopped))}")
        if len(jobs) > SHOWN:
            line(f"  and {len(jobs) - SHOWN} more: --json")
    if columns:
        line("\n[bold]columns[/]")
    for effect, some in columns.items():
        listed = ", ".join(escape(_column(one, names)) for one in some[:SHOWN])
        more = f" and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
        line(f"  [{STYLE.get(effect, 'none')}]{effect}:[/] {listed}{more}")
    line(f"\n[dim]{escape(_coverage(answer, names))}[/]")


def _cell(text: str) -> str:
    """A text that cannot leave its cell of a table, nor be read as a link, a mention or HTML."""
    # A backslash before the one that keeps a bar in its cell would take that one's meaning away.
    safe = visible(text).replace("\\|", "\\ |").replace("|", "\\|").replace("`", "'")
    return f"`{safe}`" if safe else ""


def _markdown(answer: dict[str, Any]) -> str:
    counts, names = answer["counts"], _names(answer)
    summary = ", ".join(f"{counts[effect]} {effect}" for effect in MEANS if counts[effect])
    lines = [
        f"### Impact of {_cell(_headline(answer, names.of(answer['dataset'])))}",
        "",
        summary or "Nobody is hit.",
        "",
    ]
    if answer["jobs"]:
        lines += ["| effect | job | why | owners | path |", "|---|---|---|---|---|"]
    for effect, jobs in _by_effect(answer, "jobs").items():
        for job in jobs[:SHOWN]:
            owners = ", ".join(one["name"] for one in job["owners"])
            cells = (names.of(job["id"], job["name"]), job["why"], owners, _path(job, names))
            lines.append(f"| **{effect}** | " + " | ".join(map(_cell, cells)) + " |")
        if len(jobs) > SHOWN:
            lines.append(f"| {effect} | and {len(jobs) - SHOWN} more | | | |")
    columns = _by_effect(answer, "columns")
    if columns:
        lines += ["", "<details><summary>Columns and rows</summary>", ""]
        for effect, some in columns.items():
            listed = ", ".join(_cell(_column(one, names)) for one in some[:SHOWN])
            more = f" and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
            lines.append(f"- {effect}: {listed}{more}")
        lines += ["", "</details>"]
    return "\n".join([*lines, "", f"{_coverage(answer, names)}.", ""])
