"""The stored columns as a `Graph`: which columns a column comes from, and where it goes."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from headwater.lineage.columns import WHOLE, ColumnEdge, from_column_lineage
from headwater.lineage.graph import Direction
from headwater.lineage.model import Transformation
from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within
from headwater.server.store.entities import DELETED, OUTPUT
from headwater.server.store.read.deleted import deleted_by_hand

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from headwater.lineage.graph import Pairs, Step
    from headwater.server.store.entities import Column
    from headwater.server.store.view import View

__all__ = ["ColumnGraph", "both", "column_edges"]

Key = tuple[str, str]
ROWS = (Transformation("INDIRECT"),)
Ways = dict[int, tuple[Transformation, ...]]


@lru_cache(maxsize=4_096)
def column_edges(body: bytes) -> tuple[ColumnEdge, ...]:
    """The column edges of a stored facet."""
    read = known.read(body, known.ColumnLineageFacet)
    return tuple(from_column_lineage(read)) if read else ()


class ColumnGraph:
    """Column edges as the latest facet of each job that writes a dataset has them.

    With `since`, as every facet has them that was the latest at some time from then until `at`. With
    `rows`, a column that decides about the rows of a whole dataset leads into each of its columns. What
    deleted jobs wrote is in it only with `deleted_in`, a period in which they were deleted.
    """

    def __init__(
        self,
        view: View,
        at: int | None = None,
        since: int | None = None,
        *,
        rows: bool = False,
        deleted_in: tuple[int, int] | None = None,
    ) -> None:
        self.view = view
        self.at = at
        self.since = at if since is None else since
        self._into: dict[int, dict[tuple[Column, str], tuple[Transformation, ...]]] = {}
        self._rows = rows
        self._shown = f"j.hidden <> {DELETED}"
        if deleted_in is not None:
            self._shown += f" OR {deleted_by_hand(1, 'j', deleted_in)}"
        self._whole: dict[int, dict[Column, tuple[Transformation, ...]]] = defaultdict(dict)
        self._ways: dict[tuple[Column, Column], Ways] = {}
        self._roots: dict[Key, int] = {}
        self._members: dict[int, list[int]] = {}
        self._held: dict[int, list[tuple[int, int, int]]] = {}

    def outputs(self, roots: Iterable[int]) -> set[Column]:
        """The columns of these datasets that some column leads into."""
        wanted = list(roots)
        self._load(wanted)
        return {(root, output) for root in wanted for _, output in self._into[root]}

    def next(
        self, nodes: Collection[Column], direction: Direction | None
    ) -> Iterator[Step[Column]]:
        """The steps from these columns to those they come from, or to those they lead to."""
        wanted, roots = set(nodes), {column[0] for column in nodes}
        for forward in (False, True):
            if direction is not None and forward != (direction is Direction.DOWNSTREAM):
                continue
            targets = self.targets(roots) if forward else roots
            self._load(targets)
            for root in sorted(targets):
                edges = dict.fromkeys(self._into.get(root, ()))
                if self._rows:
                    edges |= dict.fromkeys(self._over_rows(root, wanted))
                for source, output in edges:
                    ends = (source, (root, output)) if forward else ((root, output), source)
                    if ends[0] in wanted:
                        yield (*ends, forward)

    def _over_rows(self, root: int, asked: Collection[Column]) -> Iterator[tuple[Column, str]]:
        """What decides about the rows of a dataset, with each of its columns that is known or asked for."""
        outputs = {output: None for _, output in self._into.get(root, ())}
        outputs |= {column: None for number, column in sorted(asked) if number == root}
        for source in self._whole.get(root, ()):
            yield from ((source, output) for output in outputs)

    def pairs(self, nodes: Collection[Column]) -> dict[Column, Pairs[Column]]:
        """None: a column leads into every column that it has an edge to."""
        return {}

    def how(self, source: Column, target: Column) -> tuple[Transformation, ...]:
        """What becomes of a column on its way into another one."""
        own = self._into[target[0]].get((source, target[1]))
        whole = self._whole.get(target[0], {}).get(source) if self._rows else None
        if whole is None:
            return self._into[target[0]][source, target[1]]
        return both(own, whole)

    def ways(self, source: Column, target: Column) -> Ways:
        """The same for each job that carries the column; a task job counts as its parent."""
        return self._ways.get((source, target), {})

    def carried(self, datasets: Collection[int]) -> list[tuple[int, int, int]]:
        """Source dataset, target dataset and job, for each job that writes columns of these.

        Datasets are those their names stand for; a task job counts as its parent.
        """
        members = self.members(datasets)
        sql = (
            "SELECT DISTINCT c.source, c.dataset, coalesce(f.whole, c.job) FROM column_link c"
            " LEFT JOIN fold f ON f.job = c.job WHERE c.dataset IN ({in})"
        )
        rows = within(self.view.connection, sql, list(members))
        roots = self.view.roots(row[0] for row in rows)
        return [(roots[row[0]], members[row[1]], row[2]) for row in rows if row[0] in roots]

    def reporting(self, datasets: Collection[int]) -> set[tuple[int, int]]:
        """Jobs that have at some time reported where a column of one of these comes from, and of which.

        It counts whether the reader may see where.
        """
        members = self.members(datasets)
        sql = (
            "SELECT DISTINCT coalesce(f.whole, c.job), c.dataset FROM column_link c"
            " LEFT JOIN fold f ON f.job = c.job WHERE c.dataset IN ({in})"
        )
        return {
            (job, members[dataset]) for job, dataset in within(self.view.connection, sql, members)
        }

    def partly_hidden(self, columns: Collection[Column]) -> set[int]:
        """The jobs that report one of these columns to come from a dataset that may not be read."""
        members = self.members({root for root, _ in columns})
        held = self.held(members)
        hidden = self.view.hidden_sources(number for _, _, number in held)
        return {
            job
            for dataset, job, number in held
            for output in hidden.get(number, ())
            if (members[dataset], output) in columns or (self._rows and output == WHOLE)
        }

    def carrying(self, datasets: Collection[int]) -> set[tuple[int, int]]:
        """Jobs that have at some time reported a column of one of these datasets as a source, and which.

        Those that were deleted since are left out.
        """
        members = self.members(datasets)
        sql = (
            "SELECT DISTINCT coalesce(f.whole, c.job), c.source FROM column_link c"  # noqa: S608
            " JOIN job j ON j.id = c.job LEFT JOIN fold f ON f.job = c.job"
            f" WHERE j.hidden <> {DELETED} AND c.source IN ({{in}})"
        )
        return {
            (job, members[source]) for job, source in within(self.view.connection, sql, members)
        }

    def targets(self, roots: Collection[int]) -> set[int]:
        """The datasets that have a column from one of these."""
        connection = self.view.connection
        members = self.members(roots)
        sql = (
            "SELECT DISTINCT d.root FROM column_link c JOIN dataset d ON d.id = c.dataset"
            " WHERE c.source IN ({in})"
        )
        return {row[0] for row in within(connection, sql, members)}

    def members(self, roots: Iterable[int]) -> dict[int, int]:
        """Every dataset that stands for one of these, with what it stands for."""
        wanted, known = set(roots), self._members
        missing = wanted - known.keys()
        known |= {root: [root] for root in missing}
        sql = "SELECT id, root FROM dataset WHERE root <> id AND root IN ({in})"
        for number, root in within(self.view.connection, sql, missing):
            known[root].append(number)
        return {number: root for root in wanted for number in known[root]}

    def _load(self, roots: Iterable[int]) -> None:
        """Read the column maps that lead into these datasets."""
        missing = [root for root in roots if root not in self._into]
        if not missing:
            return
        members = self.members(missing)
        held = self.held(members)
        bodies = self.view.bodies(number for _, _, number in held)
        read = [
            (members[dataset], job, column_edges(bodies[number]))
            for dataset, job, number in held
            if number in bodies
        ]
        self.resolve({(e.namespace, e.name) for _, _, edges in read for e in edges})
        sql = "SELECT job, whole FROM fold WHERE job IN ({in})"
        wholes: dict[int, int] = dict(
            within(self.view.connection, sql, list({job for _, job, _ in read}))
        )
        into: dict[int, dict[tuple[Column, str], tuple[Transformation, ...]]] = defaultdict(dict)
        for root, job, edges in read:
            for edge in edges:
                source = self._roots.get((edge.namespace, edge.name))
                if source is None:
                    continue
                if edge.output == WHOLE:
                    over = self._whole[root]
                    column = (source, edge.field)
                    over[column] = both(over.get(column), edge.transformations or ROWS)
                else:
                    key = ((source, edge.field), edge.output)
                    known = into[root].get(key)
                    into[root][key] = both(known, edge.transformations)
                    ways = self._ways.setdefault((key[0], (root, edge.output)), {})
                    whole = wholes.get(job, job)
                    ways[whole] = both(ways.get(whole), edge.transformations)
        for root in missing:
            self._into[root] = into.get(root, {})

    def held(self, members: Iterable[int]) -> list[tuple[int, int, int]]:
        """The facets in force for each dataset and job, where the job still writes the dataset.

        Those of a deleted job never are, as in the graph of jobs.
        """
        wanted = set(members)
        missing = wanted - self._held.keys()
        self._held |= {number: [] for number in missing}
        for one in self._read_held(missing) if missing else ():
            self._held[one[0]].append(one)
        return sorted(one for number in wanted for one in self._held[number])

    def _read_held(self, wanted: Collection[int]) -> Iterator[tuple[int, int, int]]:
        when = " AND c.time <= ?" if self.at is not None else ""
        held = "e.until IS NULL"
        params: tuple[int, ...] = ()
        if self.at is not None:
            held = "e.since <= ? AND (e.until IS NULL OR e.until > ?)"
            params = (OUTPUT, self.at, self.since or 0, self.at)
        else:
            params = (OUTPUT,)
        sql = (
            "SELECT c.dataset, c.job, c.time, c.facet FROM column_map c LEFT JOIN edge e"  # noqa: S608
            f" ON e.job = c.job AND e.dataset = c.dataset AND e.direction = ? AND {held}"
            " LEFT JOIN job j ON j.id = e.job"
            f" WHERE (c.job = 0 OR {self._shown}){when} AND c.dataset IN ({{in}})"
        )
        newest: dict[tuple[int, int], tuple[int, int]] = {}
        later: set[tuple[int, int, int]] = set()
        for dataset, job, time, number in within(self.view.connection, sql, wanted, params):
            key = (dataset, job)
            if self.since is not None and self.since < time:
                later.add((*key, number))
            else:
                newest[key] = max(newest.get(key, (-1, 0)), (time, number))
        first = {(*key, number) for key, (_, number) in newest.items()}
        return (one for one in first | later if one[2])

    def resolve(self, keys: set[Key]) -> dict[Key, int]:
        """What each name stands for, where it is known."""
        missing = [key for key in keys if key not in self._roots]
        sql = (
            "WITH k (space, name) AS ({in}) SELECT k.space, k.name, d.root FROM k"
            " JOIN namespace n ON n.name = k.space"
            " JOIN dataset d ON d.namespace = n.id AND d.name = k.name"
        )
        for namespace, name, root in within(self.view.connection, sql, missing):
            self._roots[namespace, name] = root
        return {key: self._roots[key] for key in keys if key in self._roots}


def both(
    known: tuple[Transformation, ...] | None, more: tuple[Transformation, ...]
) -> tuple[Transformation, ...]:
    """What becomes of a column that several jobs carry, or one job in several ways.

    A way that nobody described is one more, of no type: it does not mask what another one does.
    """
    if known is None or known == more:
        return more
    unknown = (Transformation(),)
    return tuple(dict.fromkeys((*(known or unknown), *(more or unknown))))
