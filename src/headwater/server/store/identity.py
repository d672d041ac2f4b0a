"""Which names stand for one dataset: symlinks, spellings, and the addresses of one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage import facets as known
from headwater.lineage import naming

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset
    from headwater.server.store.session import Session

__all__ = ["cluster", "declare", "root", "symlinks"]


def root(session: Session, dataset: Dataset, time: int) -> None:
    """Find what a new dataset's name stands for, if another name was there first."""
    key = (dataset.space, dataset.name)
    target = session.aliases.get(key)
    if target is None:
        spelled = naming.canonical(*key)
        plain = (spelled.namespace, spelled.name)
        if plain != key:
            session.load_datasets([plain])
            found = session.datasets.get(plain)
            target = found.id if found else session.aliases.get(plain)
            if target is None:
                _alias(session, plain, dataset.id, time)
    if target is None:
        target = _sibling(session, dataset)
    if target is not None and target != dataset.id:
        _point(session, dataset, target)


def symlinks(session: Session, dataset: Dataset, facet: bytes, time: int) -> None:
    """Make the other names that a dataset declares stand for it."""
    read = known.read("symlinks", facet, known.Symlinks)
    others = [(s.namespace, s.name) for s in (read.identifiers if read else None) or ()]
    others = [key for key in others if key != (dataset.space, dataset.name)]
    session.load_datasets(others)
    for key in others:
        declare(session, dataset, key, time)


def declare(session: Session, dataset: Dataset, key: tuple[str, str], time: int) -> None:
    """Let the name `key` stand for a dataset."""
    session.load_datasets([key])
    _alias(session, key, dataset.id, time)
    named = session.datasets.get(key)
    if named is not None and named.id != dataset.root:
        _point(session, named, dataset.id)


def cluster(session: Session, dataset: Dataset, facet: bytes, time: int) -> None:
    """Note which cluster a topic's namespace belongs to; all its addresses are one."""
    read = known.read("headwater_cluster", facet, known.Cluster)
    if read is None or session.clusters.get(dataset.space) == read.clusterId:
        return
    session.clusters[dataset.space] = read.clusterId
    session.rows["cluster"].append((dataset.space, read.clusterId, time))
    for member in session.datasets_in(dataset.space):
        target = _sibling(session, member)
        if target is not None and target != member.id:
            _point(session, member, target)


def _sibling(session: Session, dataset: Dataset) -> int | None:
    cluster_id = session.clusters.get(dataset.space)
    if cluster_id is None:
        return None
    spaces = [s for s, c in session.clusters.items() if c == cluster_id and s != dataset.space]
    keys = [(space, dataset.name) for space in spaces]
    session.load_datasets(keys)
    roots = {session.datasets[key].root for key in keys if key in session.datasets}
    return min(roots) if roots else None


def _alias(session: Session, key: tuple[str, str], target: int, time: int) -> None:
    if session.aliases.get(key) != target:
        session.aliases[key] = target
        rows = session.rows["alias"]
        rows[:] = [row for row in rows if row[:2] != key]
        rows.append((*key, target, time))


def _point(session: Session, dataset: Dataset, target: int) -> None:
    """Let `dataset` and all that stands for it stand for `target`."""
    found = session.datasets_of([target])
    final = found[0].root if found else target
    if final in (dataset.id, dataset.root):
        return
    moved = [dataset]
    rows = session.connection.all(
        "SELECT id FROM dataset WHERE root = ? AND root <> id", (dataset.id,)
    )
    moved += session.datasets_of(row[0] for row in rows)
    moved += [d for d in session.dirty["dataset"].values() if d.root == dataset.id]
    for member in moved:
        member.root = final
        session.dirty["dataset"][member.id] = member
