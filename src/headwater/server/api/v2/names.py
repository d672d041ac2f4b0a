"""Which datasets and columns a name that a person typed can mean."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, TypedDict

from headwater.lineage import naming
from headwater.server.api import describe
from headwater.server.api.lookup import column_node, dataset_node, had_column, has_column
from headwater.server.api.missing_columns import missing_column, row_of
from headwater.server.api.parameters import moment, text
from headwater.server.api.types import NameMatch
from headwater.server.http import HttpError, HttpNotFoundError
from headwater.server.routing import Routes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

CANDIDATES = 20
LIKE = 500
DOTS = 8
"""Ways to cut a text into a dataset and a column that are tried."""
Match = tuple["Dataset", str]
"""A dataset, and one of its columns or nothing."""


class MatchedName(NameMatch):
    """A dataset or a column that a text names, and what kind of store holds it."""

    store: str


class Matches(TypedDict):
    """What a name can mean: one match, or several to choose from.

    `others` end in a name that one dataset has as its full name: somebody may have meant them.
    """

    matches: list[MatchedName]
    others: list[NameMatch]
    truncated: bool


@api.get("/api/v2/names", answer=Matches)
def names(
    view: View,
    q: str = text(required=True, example="orders.price"),
    at: int | None = moment(),
    since: int | None = moment(name="since"),
) -> dict[str, Any]:
    """The datasets or columns that a text names: `NAMESPACE:NAME`, `NAME`, either with `.COLUMN`.

    A name without its namespace may also leave out leading parts (`orders` for `shop.public.orders`)
    where nothing has it as its full name. Where nothing is called so, it may be another name of a dataset, as
    a table has in its catalog. One with dots may mean columns of several datasets: all are
    listed. Node ids and addresses (`s3://exports/orders`) are taken too. 404 has the nearest names. With `at` a column that was there then
    is meant too; with `since`, one that was at some time from then until `at`.
    """

    def has(dataset: Dataset, field: str) -> bool | None:
        if since is None:
            now = has_column(view, dataset, field)
            return now if now or at is None else has_column(view, dataset, field, at)
        until = time.time_ns() // 1000 if at is None else at
        return had_column(view, dataset, field, since, until)

    found, others = _matches(view, q.strip(), has, at if since is None else None)
    shown = found[:CANDIDATES]
    facets = describe.Facets(view, [one.state.facets for one, _ in shown], "catalog", "storage")
    return {
        "matches": [
            {**row_of(dataset, field), "store": describe.store_of(dataset, facets)}
            for dataset, field in shown
        ],
        "others": [row_of(dataset, field) for dataset, field in others[:CANDIDATES]],
        "truncated": len(found) > CANDIDATES,
    }


def _matches(
    view: View, typed: str, has: Callable[[Dataset, str], bool | None], at: int | None
) -> tuple[list[Match], list[Match]]:
    """What a text names, and what else it may have been meant to name."""
    kind, _, rest = typed.partition(":")
    if kind == "datasetField" and rest:
        dataset, field = column_node(view, rest)
        if not has(dataset, field):
            raise missing_column(view, dataset, field, at)
        return [(dataset, field)], []
    typed = rest if kind == "dataset" and rest else typed
    exact, behind = _datasets(view, typed)
    if exact:
        return [(one, "") for one in exact], [(one, "") for one in behind]
    # A text with dots can be cut in several ways, and all that have it as their full name are meant.
    named: list[Match] = []
    ending: list[Match] = [(one, "") for one in behind]
    lacking: list[Match] = []
    for name, field in _cuts(typed):
        exact, behind = _datasets(view, name)
        named += [(one, field) for one in exact if has(one, field)]
        ending += [(one, field) for one in behind if has(one, field)]
        lacking += [(one, field) for one in exact or behind]
    if found := named or ending:
        return found, ending if named else []
    for one, field in _by_other_names(view, typed):
        (named if not field or has(one, field) else lacking).append((one, field))
    if named:
        return named, []
    if len(lacking) == 1:
        raise missing_column(view, *lacking[0], at)
    name = typed.rpartition(":")[2]
    message = f"no dataset is called '{typed[:200]}'"
    if view.all("SELECT 1 FROM job WHERE name = ? AND hidden = 0 LIMIT 1", (name,)):
        message += ", only a job"
    raise HttpNotFoundError(message, "dataset", name)


def _cuts(typed: str) -> Iterator[tuple[str, str]]:
    """The ways to cut a text at a dot, the longest dataset first."""
    parts = typed.split(".")
    for i in range(len(parts) - 1, max(0, len(parts) - 1 - DOTS), -1):
        yield ".".join(parts[:i]), ".".join(parts[i:])


def _by_other_names(view: View, typed: str) -> list[Match]:
    """Datasets with another name, such as a table's in its catalog, that a text or one of its cuts is."""
    cuts = {typed: "", **dict(_cuts(typed))}
    marks = ", ".join("?" * len(cuts))
    sql = (
        "SELECT DISTINCT a.name, t.root FROM alias a JOIN dataset t ON t.id = a.dataset"  # noqa: S608
        f" WHERE t.hidden = 0 AND a.name IN ({marks}) ORDER BY a.name DESC, t.root LIMIT ?"
    )
    rows = view.all(sql, (*cuts, LIKE))
    known = view.datasets({root for _, root in rows})
    return [(known[root], cuts[name]) for name, root in rows if root in known]


def _as_nodes(name: str) -> Iterator[str]:
    """What `NAMESPACE:NAME` a text may be: as it stands, or the address of a file or table."""
    if ":" in name:
        yield name
    if "://" in name:
        with contextlib.suppress(naming.NamingError):
            yield ":".join(naming.from_uri(name))


def _datasets(view: View, name: str) -> tuple[list[Dataset], list[Dataset]]:
    """The datasets that a text names: one by namespace and name or by its address, else all of that name.

    Behind them, those that have it behind leading parts.
    """
    if not name:
        return [], []
    for node in _as_nodes(name):
        try:
            return list(view.datasets([dataset_node(view, node).root]).values()), []
        except HttpError:
            pass
    sql = (
        "SELECT t.id, t.name, t.root FROM dataset t WHERE t.hidden = 0"  # noqa: S608
        f" AND t.id IN (SELECT id FROM dataset WHERE {view.connection.holds.format('dataset')})"
        " AND (t.name = ? OR substr(t.name, length(t.name) - ?, ?) IN (?, ?))"
        " ORDER BY length(t.name), t.id LIMIT ?"
    )
    ends = (f".{name}", f"/{name}")
    size = len(name)
    rows = view.all(sql, (view.connection.sought(name), name, size, size + 1, *ends, LIKE))
    exact = {root for _, full, root in rows if full == name}
    behind = {root for _, full, root in rows if full.endswith(ends)} - exact
    known = sorted(view.datasets(exact | behind).values(), key=lambda one: (one.name, one.space))
    return [one for one in known if one.id in exact], [one for one in known if one.id in behind]
