"""What an event changes of a dataset: its facets, columns, life and versions."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headwater.lineage import naming
from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.facets import ABOUT
from headwater.server.store.entities import INPUT, OUTPUT, Dataset, Held, Job, Run
from headwater.server.store.write import identity, set_by_hand, shared_symlinks
from headwater.server.store.write.incoming.prepared import EventPart, safe
from headwater.server.store.write.store_types import kind_of, type_of

if TYPE_CHECKING:
    from headwater.server.store.write.session import WriteSession

__all__ = ["DATASET", "DatasetProjection", "Numbers", "hold"]

DATASET = 0
Numbers = list[tuple[str, int]]
_UNDERSTOOD = {
    "headwater_cluster", "dataSource", "datasetType",
    "lifecycleStateChange",
}  # fmt: skip
_SHARED = {"symlinks", "headwater_cluster"}
"""Names of a dataset, which add up whoever reports them."""
_READER = 3
"""How many values are held of a facet; one that only a reader reported has one more."""


@lru_cache(maxsize=4_096)
def _plain_space(namespace: str) -> str:
    return naming.canonical(namespace, "x").namespace


_redacted = lru_cache(maxsize=4_096)(naming.redact)


def hold(held: dict[str, Held], numbers: Numbers, time: int) -> list[tuple[str, int]]:
    """Keep the latest facet of each name; answers those that are new at their time."""
    changed: list[tuple[str, int]] = []
    for name, number in numbers:
        now = held.get(name)
        if now is None or (now[0] != number and time >= now[2]):
            held[name] = [number, time, time]
            changed.append((name, number))
        elif now[0] == number:
            if time > now[2]:
                now[2] = time
            elif time < now[1]:
                now[1] = time
                changed.append((name, number))
        else:
            changed.append((name, number))
    return changed


def hold_ranked(
    held: dict[str, Held], numbers: Numbers, time: int, *, reader: bool
) -> list[tuple[str, int]]:
    """Keep the latest facet of each name, where what a reader reports never replaces a writer's."""
    changed: list[tuple[str, int]] = []
    for name, number in numbers:
        if name == "schema":  # claimed, and resolved by rank (write/schemas.py)
            continue
        now = held.get(name)
        if now is not None:
            if now[0] == number and now[1] <= time and (reader or len(now) == _READER):
                if time > now[2]:
                    now[2] = time
                continue
            if name not in _SHARED:
                theirs = len(now) > _READER
                if reader and not theirs:
                    if now[0] == number:
                        now[1], now[2] = min(now[1], time), max(now[2], time)
                    continue
                if theirs and not reader:
                    del held[name]
        found = hold(held, [(name, number)], time)
        if reader and name not in _SHARED and len(held[name]) == _READER:
            held[name].append(1)
        changed += found
    return changed


def _report(session: WriteSession, dataset: Dataset, time: int) -> None:
    """Note a report of a dataset that widens its life, or of one that was deleted."""
    if time < dataset.created:
        dataset.created = time
    if time > dataset.updated:
        dataset.updated = time
    if dataset.hidden:
        session.revive(dataset, time)
    session.dirty["dataset"][dataset.id] = dataset


class DatasetProjection:
    """Applies what events report of datasets to the working set."""

    def __init__(self, session: WriteSession, changes: list[dict[str, Any]]) -> None:
        self.session = session
        self.changes = changes

    def apply(
        self,
        named: EventPart,
        direction: int,
        time: int,
        job: Job | None,
        column_facet: int | None = None,
    ) -> Dataset:
        """Take in what an event reports of a dataset, apart from its schema; answers it."""
        session = self.session
        dataset = session.datasets.get(named.key)
        if dataset is None:
            dataset = session.new_dataset(named.key, time)
            identity.root(session, dataset, time)
            self.changes.append(
                {"change": "dataset", "namespace": named.key[0], "name": named.key[1]}
            )
        if (
            time < dataset.created
            or dataset.hidden
            or (direction != INPUT and time > dataset.updated)
        ):
            _report(session, dataset, time)
        for name, number in hold_ranked(
            dataset.state.facets, named.numbers or [], time, reader=direction == INPUT
        ):
            session.dirty["dataset"][dataset.id] = dataset
            dataset.updated = max(dataset.updated, time)
            session.rows["facet_change"].append((DATASET, dataset.id, name, time, number))
            held = dataset.state.facets[name]
            if name in set_by_hand.DESCRIBES:
                self._describe(dataset, name)
            if number and held[0] == number and name in _UNDERSTOOD:
                self._understand(dataset, name, session.body(number), time)
        if named.symlinks or dataset.state.rivals:
            shared_symlinks.claim(session, dataset, named.symlinks, time)
        if direction != INPUT:
            self._life(dataset, named.change, direction, time)
        if column_facet is None:
            column_facet = named.columns
        if column_facet is not None:
            self._columns(dataset, job, column_facet, time)
        if dataset.source is None:
            space = _plain_space(dataset.space)
            source = session.source(space, kind_of(space), space, time)
            dataset.source = source.id
        return dataset

    def _describe(self, dataset: Dataset, name: str) -> None:
        dataset.state.description = set_by_hand.description(self.session, dataset.state.facets)
        if name == ABOUT:
            self.changes.append(
                {"change": "dataset", "namespace": dataset.space, "name": dataset.name}
            )

    def _understand(self, dataset: Dataset, name: str, body: bytes, time: int) -> None:
        session, state = self.session, dataset.state
        if name == "headwater_cluster":
            identity.cluster(session, dataset, body, time)
        elif name == "dataSource":
            read = known.read(body, known.DataSourceFacet)
            if read and read.name:
                url = _redacted(read.uri or read.name)
                source = session.source(read.name, kind_of(url), url, time)
                dataset.source = source.id
        elif name == "datasetType":
            kind = known.read(body, known.DatasetTypeFacet)
            if kind and kind.datasetType:
                dataset.kind = type_of(dataset.space, kind.datasetType)
        elif name == "lifecycleStateChange":
            change = known.read(body, known.LifecycleFacet)
            state.lifecycle = (change.lifecycleStateChange if change else None) or ""
            before = change.previousIdentifier if change else None
            if before and state.lifecycle == "RENAME":
                key = safe(before.namespace, before.name)
                if key != (dataset.space, dataset.name):
                    identity.declare(session, dataset, [key], time)

    def _life(self, dataset: Dataset, change: str, direction: int, time: int) -> None:
        """Keep when the dataset was last dropped and last written, whichever is received first."""
        state = dataset.state
        if change == "DROP":
            if state.dropped is None or state.dropped < time:
                state.dropped = time
                self.session.dirty["dataset"][dataset.id] = dataset
        elif direction == OUTPUT and (state.written is None or state.written < time):
            state.written = time
            self.session.dirty["dataset"][dataset.id] = dataset
        if state.dropped is not None:
            state.lifecycle = "DROP" if state.gone else state.lifecycle.replace("DROP", "")

    def _columns(self, dataset: Dataset, job: Job | None, number: int, time: int) -> None:
        if job is not None:
            held = job.state.columns.get(dataset.id)
            if held is not None and held[0] == number and time >= held[1]:
                if time > held[2]:
                    held[2] = time
                return
            if held is not None and held[0] == number:
                held[1] = time
            elif held is None or time >= held[2]:
                job.state.columns[dataset.id] = [number, time, time]
        session = self.session
        owner = job.id if job is not None else 0
        session.rows["column_map"].append((dataset.id, owner, time, number))
        sources = session.sources_of(number) if number else set()
        session.load_datasets(sources)
        for key in sources:
            source = session.datasets.get(key)
            if source is None:
                source = session.new_dataset(key, time)
                identity.root(session, source, time)
            session.rows["column_link"].append((source.id, dataset.id, owner))

    def version(self, dataset: Dataset, run: Run | None, time: int) -> int:
        """Note a new version of a dataset; answers its id."""
        session = self.session
        schema = dataset.state.facets.get("schema")
        facet = schema[0] if schema else None
        what = f"{dataset.space}\0{dataset.name}\0{time}".encode()
        uuid = hashlib.sha256(what + (run.uuid if run else b"")).digest()[:16]
        number = session.number("dataset_version")
        row = (number, dataset.id, uuid, run.id if run else None, time, facet)
        session.rows["dataset_version"].append(row)
        dataset.version = number
        session.dirty["dataset"][dataset.id] = dataset
        return number
