"""`headwater why`: is a dataset up to date, and if not, because of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.cli.options import spread
from headwater.cli.output import escape, out, print_json
from headwater.cli.questions.freshness import last_write
from headwater.cli.questions.shown_names import ShownNames, dataset_id
from headwater.cli.questions.trace import DatasetName  # noqa: TC001
from headwater.cli.questions.unknown_columns import unknown_inputs
from headwater.cli.server.client import ServerOptions  # noqa: TC001
from headwater.lineage.url_paths import path_of
from headwater.lineage.wording import counted, hidden_text

if TYPE_CHECKING:
    from headwater.cli.server.client import ServerClient

__all__ = ["why"]

WORDS = {
    "late": "is overdue",
    "lagging": "lags",
    "schema": "changed its schema",
    "ended": "ended; nothing writes any more",
    "quality": "failed its checks",
    "paused": "was paused (planned)",
    "stopped": "was stopped (planned)",
}
OF_DATASETS = {"stopped": "is written by nothing any more (planned)"}
STYLE = {"live": "green", "fresh": "green", "stale": "bold red"}


@spread
def why(dataset: DatasetName, how: ServerOptions) -> None:
    """Say whether a dataset is up to date and, if not, what is wrong upstream; of a column, what changed."""
    server = how.server()
    named = server.find(dataset)
    path = path_of("api", "v2", "datasets", named.namespace, named.name, "why")
    found = server.get(path, column=named.field or None)
    if how.as_json:
        print_json(found)
        return
    since = f" since {found['since']}" if found["since"] else ""
    if found["verdict"] == "unknown":
        verdict = f"of unknown freshness ({_unjudged(server, found)})"
    else:
        verdict = f"[{STYLE[found['verdict']]}]{found['verdict']}[/]"
    _print(
        f"[cyan]{escape(named.name)}[/] [dim]({escape(named.place)})[/]"
        f" is {verdict}{since}{last_write(found)}"
    )
    named.print_others()
    silent = found.get("unknown") or []
    names = _names(found, silent)
    for cause in found["causes"]:
        _print_cause(cause, names)
    if not found["causes"]:
        seen = ", as far as you may see" if found.get("hidden") else ""
        looked = ", as far as was looked" if found["truncated"] else ""
        _print(f"nothing is wrong upstream{seen}{looked}")
    for change in found.get("recent", ()):
        _print(
            f"  changed recently: {change['time']} {escape(names.of(change['node']))}:"
            f" {escape(change['text'])}"
        )
    if count := found.get("hidden"):
        _print(f"[yellow]{hidden_text(count, 'upstream')}[/]")
    if found["truncated"]:
        _print("[yellow]there is more than was looked at[/]")
    if found["inputs"] is not None:
        _print_inputs(named.field, found["inputs"], silent, names)
    server.print_page("datasets", named.namespace, named.name)


def _print(text: str) -> None:
    out.print(text, soft_wrap=True)


def _unjudged(server: ServerClient, found: dict[str, Any]) -> str:
    """Why it is not known how fresh a dataset is."""
    if any(one["kind"] == "stopped" and one["node"] == found["node"] for one in found["causes"]):
        return "nothing writes it any more"
    if found["lastWrittenAt"]:
        return "no usual time between its runs is known yet"
    writers = server.get("/api/v2/trace", node=found["node"], depth=1)["rows"][1:]
    return "no write of it is known yet" if writers else "no job that writes it is known"


def _names(found: dict[str, Any], silent: list[dict[str, Any]]) -> ShownNames:
    nodes = [node for cause in found["causes"] for node in (cause["node"], *cause["path"])]
    nodes += [change["node"] for cause in found["causes"] for change in cause["changes"]]
    nodes += [found["node"], *map(dataset_id, found["inputs"] or ())]
    nodes += [one["job"] for one in silent]
    return ShownNames([*nodes, *(change["node"] for change in found.get("recent", ()))])


def _print_cause(cause: dict[str, Any], names: ShownNames) -> None:
    words = WORDS | OF_DATASETS if cause["node"].startswith("dataset:") else WORDS
    word = words.get(cause["kind"], cause["kind"])
    style = "dim" if cause["planned"] else "red" if cause["root"] else "none"
    lead = "because" if cause["root"] else "and so"
    kind, name = cause["node"].partition(":")[0], names.of(cause["node"], cause["named"]["name"])
    other = "dataset" if kind == "job" else "job"
    both = any(node.startswith(f"{other}:") and names.of(node) == name for node in cause["path"])
    name = escape(f"{kind} {name}" if both else name)
    by = f" by {escape(cause['by'])}" if cause.get("by") else ""
    _print(f"  [{style}]{lead}[/] [bold]{name}[/] {word}{by} since {cause['since']}")
    if cause["detail"]:
        _print(f"      {escape(cause['detail'])}")
    _print(f"      [dim]{escape(names.path(cause['path']))}[/]")
    for change in cause["changes"]:
        _print(
            f"      before: {change['time']} {escape(names.of(change['node']))}:"
            f" {escape(change['text'])}"
        )


def _print_inputs(
    field: str, inputs: list[dict[str, Any]], silent: list[dict[str, Any]], names: ShownNames
) -> None:
    order = ", the one that changed last first" if len(inputs) > 1 else ""
    if inputs:
        _print(f"{escape(field)} comes from {counted(len(inputs), 'column')}{order}:")
    elif not silent:
        _print(f"{escape(field)} comes from no column that is known")
    for one in inputs:
        change = f"{one['changedAt']} {one['change']}" if one["change"] else "no change is known"
        name = names.of(dataset_id(one), one["name"])
        _print(f"  [cyan]{escape(name)}.{escape(one['field'])}[/]  {escape(change)}")
    if silent:
        _print(f"[yellow]{escape(unknown_inputs(field, silent, names, more=bool(inputs)))}[/]")
