"""Which jobs and datasets an answer can depend on, so that only their events have to be read.

Too many cost time, one too few makes the answer another one: in doubt a node is selected. So names that
may stand for one dataset count as one here, and all that ever touched a dataset of the answer is
selected with it, since any of it may have reported what the dataset is.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from headwater.lake.records import job_node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

__all__ = ["JoinedNames", "LakeAlias", "LakeEstate", "Span", "Use", "UseSource", "declared_aliases"]

Name = tuple[str, str]
Span = tuple[int, int]
"""The first and the last of some moments; of one moment both are that."""


class Use(NamedTuple):
    """A job or another reporter that touched a dataset, from when until when, and whether it wrote it."""

    node: str
    dataset: Name
    writes: bool
    since: int
    until: int | None

    def held(self, during: Span | None) -> bool:
        """Whether it held at some moment of a span, or does now."""
        if during is None:
            return self.until is None
        return self.since <= during[1] and (self.until is None or during[0] < self.until)


class LakeAlias(NamedTuple):
    """Two names that may stand for one dataset, job or cluster."""

    kind: str
    name: Name
    other: Name


class _Declared(msgspec.Struct, tag_field="command", tag="alias"):
    namespace: str
    name: str
    alias: Name


_declared = msgspec.json.Decoder(_Declared).decode


def declared_aliases(commands: Iterable[str | bytes]) -> Iterator[LakeAlias]:
    """The aliases that commands declare, by hand or by doctor, which no event reports.

    What doctor took back held for a while, and counts too.
    """
    for body in commands:
        with suppress(msgspec.DecodeError):
            found = _declared(body)
            yield LakeAlias("dataset", found.alias, (found.namespace, found.name))


class JoinedNames:
    """Names that belong together, each by one of them; some namespaces are those of one cluster."""

    def __init__(self, clusters: Mapping[str, str] | None = None) -> None:
        self._clusters = {} if clusters is None else clusters
        self._parent: dict[Name, Name] = {}

    def plain(self, name: Name) -> Name:
        """A name, whichever address of its cluster it was reported by."""
        cluster = self._clusters.get(name[0])
        return name if cluster is None else (f"\0{cluster}", name[1])

    def of(self, name: Name) -> Name:
        """The one that stands for all that belong together with a name."""
        found = name
        while (above := self._parent.get(found, found)) != found:
            found = above
        while name != found:
            self._parent[name], name = found, self._parent.get(name, found)
        return found

    def join(self, one: Name, other: Name) -> None:
        """Let two names, and what belongs to each, belong together."""
        self._parent[self.of(one)] = self.of(other)


class UseSource(Protocol):
    """Who touched which dataset, asked step by step: of a large estate an answer needs a small part."""

    def names(self) -> Iterable[Name]:
        """Every dataset that was ever named, some perhaps more than once."""
        ...

    def uses_of(self, datasets: Collection[Name]) -> Iterable[Use]:
        """Who touched some datasets, and when."""
        ...

    def uses_by(self, nodes: Collection[str]) -> Iterable[Use]:
        """What some nodes touched, and when."""
        ...

    def naming(self, datasets: Collection[Name]) -> Iterable[str]:
        """The nodes that ever named some datasets."""
        ...


class LakeEstate:
    """Who touched which dataset, by all their names."""

    def __init__(self, source: UseSource, aliases: Iterable[LakeAlias]) -> None:
        self._source = source
        declared = list(aliases)
        self._clusters = {one.name[0]: one.other[0] for one in declared if one.kind == "namespace"}
        self._datasets, self._jobs = JoinedNames(self._clusters), JoinedNames()
        self._joined: dict[Name, set[Name]] = defaultdict(set)
        self._members: dict[Name, set[str]] = defaultdict(set)
        self._declared: set[Name] = set()
        self._read_aliases(declared)

    def _read_aliases(self, aliases: list[LakeAlias]) -> None:
        for alias in aliases:
            if alias.kind == "dataset":
                self._datasets.join(
                    self._datasets.plain(alias.name), self._datasets.plain(alias.other)
                )
                # It may be asked for by a name under which nothing was ever reported.
                self._declared.add(alias.name)
            elif alias.kind == "job":
                self._jobs.join(("", job_node(*alias.name)), ("", job_node(*alias.other)))
        for alias in aliases:
            if alias.kind == "dataset":
                both = {self._datasets.plain(alias.name), self._datasets.plain(alias.other)}
                self._joined[self._one(alias.name)] |= both
            elif alias.kind == "job":
                nodes = {job_node(*alias.name), job_node(*alias.other)}
                self._members[self._job(job_node(*alias.name))] |= nodes

    def _one(self, name: Name) -> Name:
        """What stands for a dataset and all its names."""
        return self._datasets.of(self._datasets.plain(name))

    def _job(self, node: str) -> Name:
        return self._jobs.of(("", node))

    @cached_property
    def _known(self) -> set[Name]:
        """All names of datasets."""
        return {*self._source.names(), *self._declared}

    @cached_property
    def _spaces(self) -> dict[str, list[str]]:
        """The namespaces of each cluster."""
        found: dict[str, list[str]] = defaultdict(list)
        for space, cluster in self._clusters.items():
            found[f"\0{cluster}"].append(space)
        return found

    def _names(self, datasets: Iterable[Name]) -> set[Name]:
        """All names of some datasets."""
        return {
            (space, plain[1])
            for one in datasets
            for plain in self._joined.get(one, (one,))
            for space in self._spaces.get(plain[0], (plain[0],))
        }

    def _nodes(self, jobs: Iterable[Name]) -> set[str]:
        """The nodes of some jobs, each with those that are shown as one with it."""
        return {node for job in jobs for node in self._members.get(job, (job[1],))}

    def called(self, typed: str) -> set[Name]:
        """The datasets that a text may mean, alone, with a namespace or with a column behind it."""
        text = typed.casefold()
        found = set()
        for namespace, name in self._known:
            # Most names are no part of it, which is known without the namespace.
            end = name.casefold()
            if end not in text:
                continue
            for whole in (end, f"{namespace}:{name}".casefold()):
                if text == whole or text.startswith(f"{whole}."):
                    found.add(self._one((namespace, name)))
        return found

    def at_node(self, node: str) -> set[Name]:
        """The datasets that the id of a dataset or a column names, or that a job ever touched."""
        kind, _, rest = node.partition(":")
        if kind == "job":
            return self.touched_by([node])
        return {
            self._one((namespace, name))
            for namespace, name in self._known
            if rest == (whole := f"{namespace}:{name}")
            or (kind == "datasetField" and rest.startswith(f"{whole}:"))
        }

    def walk(
        self, start: Collection[Name], direction: str, during: Span | None, depth: int
    ) -> set[Name]:
        """The datasets within so many jobs of some, in a span: `up`, `down`, `both` or `around` them.

        `both` is what leads to them and what they lead to, `around` also what lies beside those.
        """
        if direction == "both":
            return self.walk(start, "up", during, depth) | self.walk(start, "down", during, depth)
        nearer = {"up": (True,), "down": (False,)}.get(direction, (True, False))
        reached, ahead = set(start), set(start)
        for _ in range(depth):
            jobs = {
                self._job(use.node)
                for use in self._source.uses_of(self._names(ahead))
                if use.writes in nearer and use.held(during)
            }
            ahead = {
                self._one(use.dataset)
                for use in self._source.uses_by(self._nodes(jobs))
                if (len(nearer) == 2 or use.writes not in nearer) and use.held(during)
            } - reached
            reached |= ahead
            if not ahead:
                break
        return reached

    def touched_by(self, nodes: Iterable[str]) -> set[Name]:
        """The datasets that some nodes ever touched."""
        some = set(nodes)
        uses = self._source.uses_by(self._nodes(map(self._job, some)))
        found = {self._one(use.dataset) for use in uses}
        if any(node.startswith("dataset:") for node in some):
            found |= {self._one(n) for n in self._known if f"dataset:{n[0]}:{n[1]}" in some}
        return found

    def shown_as_one(self, node: str) -> set[str]:
        """A job and the jobs that are shown as one with it."""
        return self._members.get(self._job(node), set()) | {node}

    def reporters(self, datasets: Iterable[Name]) -> set[str]:
        """All that ever reported something of some datasets, and what is shown as one with it."""
        names = self._names(datasets) & self._known
        nodes = {use.node for use in self._source.uses_of(names)}
        nodes.update(self._source.naming(names))
        found = {f"dataset:{namespace}:{name}" for namespace, name in names}
        return found.union(*map(self.shown_as_one, nodes))
