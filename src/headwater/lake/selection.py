"""Which jobs and datasets an answer can depend on, so that only their events have to be read.

Too many cost time, one too few makes the answer another one: in doubt a node is selected. So names that
may stand for one dataset count as one here, and all that ever touched a dataset of the answer is
selected with it, since any of it may have reported what the dataset is.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.lake.records import job_node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["JoinedNames", "LakeAlias", "LakeEstate", "Span", "Use", "declared_aliases"]

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
    """The aliases that commands declare, by hand or by doctor, which no event tells.

    What doctor took back held for a while, and counts too.
    """
    for body in commands:
        with suppress(msgspec.DecodeError):
            found = _declared(body)
            yield LakeAlias("dataset", found.alias, (found.namespace, found.name))


class JoinedNames:
    """Names that belong together, each by one of them."""

    def __init__(self) -> None:
        self._parent: dict[Name, Name] = {}

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


class LakeEstate:
    """Who touched which dataset, by all their names."""

    def __init__(
        self, uses: Iterable[Use], named: Iterable[tuple[str, Name]], aliases: Iterable[LakeAlias]
    ) -> None:
        self._clusters: dict[str, str] = {}
        self._datasets, self._jobs = JoinedNames(), JoinedNames()
        self._names: dict[Name, set[Name]] = defaultdict(set)
        self._members: dict[Name, set[str]] = defaultdict(set)
        self._read_aliases(list(aliases))
        self._writing: dict[bool, dict[Name, list[Use]]] = {True: {}, False: {}}
        self._by_job: dict[Name, list[Use]] = defaultdict(list)
        self._touched: dict[Name, set[str]] = defaultdict(set)
        for use in uses:
            one = self._one(use.dataset)
            self._writing[use.writes].setdefault(one, []).append(use)
            self._by_job[self._job(use.node)].append(use)
            self._members[self._job(use.node)].add(use.node)
            self._touched[one].add(use.node)
        for node, dataset in named:
            self._touched[self._one(dataset)].add(node)

    def _read_aliases(self, aliases: list[LakeAlias]) -> None:
        for alias in aliases:
            if alias.kind == "namespace":
                self._clusters[alias.name[0]] = alias.other[0]
        for alias in aliases:
            if alias.kind == "dataset":
                self._datasets.join(self._plain(alias.name), self._plain(alias.other))
            elif alias.kind == "job":
                self._jobs.join(("", job_node(*alias.name)), ("", job_node(*alias.other)))
        for alias in aliases:
            if alias.kind == "dataset":
                # It may be asked for by a name under which nothing was ever reported.
                self._one(alias.name)
            elif alias.kind == "job":
                both = {job_node(*alias.name), job_node(*alias.other)}
                self._members[self._job(job_node(*alias.name))] |= both

    def _plain(self, name: Name) -> Name:
        cluster = self._clusters.get(name[0])
        return name if cluster is None else (f"\0{cluster}", name[1])

    def _one(self, name: Name) -> Name:
        """What stands for a dataset and all its names."""
        found = self._datasets.of(self._plain(name))
        self._names[found].add(name)
        return found

    def _job(self, node: str) -> Name:
        return self._jobs.of(("", node))

    def called(self, typed: str) -> set[Name]:
        """The datasets that a text may mean, alone, with a namespace or with a column behind it."""
        found = set()
        for one, names in self._names.items():
            for namespace, name in names:
                for whole in (name, f"{namespace}:{name}"):
                    if typed.casefold() == whole.casefold() or typed.casefold().startswith(
                        f"{whole.casefold()}."
                    ):
                        found.add(one)
        return found

    def at_node(self, node: str) -> set[Name]:
        """The datasets that the id of a dataset or a column names, or that a job ever touched."""
        kind, _, rest = node.partition(":")
        if kind == "job":
            return self.touched_by([node])
        return {
            one
            for one, names in self._names.items()
            for whole in (f"{namespace}:{name}" for namespace, name in names)
            if rest == whole or (kind == "datasetField" and rest.startswith(f"{whole}:"))
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
                for writes in nearer
                for dataset in ahead
                for use in self._writing[writes].get(dataset, ())
                if use.held(during)
            }
            ahead = {
                self._one(use.dataset)
                for job in jobs
                for use in self._by_job[job]
                if (len(nearer) == 2 or use.writes not in nearer) and use.held(during)
            } - reached
            reached |= ahead
            if not ahead:
                break
        return reached

    def touched_by(self, nodes: Iterable[str]) -> set[Name]:
        """The datasets that some nodes ever touched."""
        found = set()
        for node in nodes:
            found |= {self._one(use.dataset) for use in self._by_job.get(self._job(node), ())}
            kind, _, rest = node.partition(":")
            if kind == "dataset":
                found |= {
                    one
                    for one, names in self._names.items()
                    if any(rest == f"{namespace}:{name}" for namespace, name in names)
                }
        return found

    def shown_as_one(self, node: str) -> set[str]:
        """A job and the jobs that are shown as one with it."""
        return self._members.get(self._job(node), set()) | {node}

    def reporters(self, datasets: Iterable[Name]) -> set[str]:
        """All that ever reported something of some datasets, and what is shown as one with it."""
        found: set[str] = set()
        for one in datasets:
            for node in self._touched.get(one, ()):
                found |= self.shown_as_one(node)
            found |= {f"dataset:{namespace}:{name}" for namespace, name in self._names.get(one, ())}
        return found
