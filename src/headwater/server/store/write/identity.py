"""Which names stand for one dataset: symlinks, spellings, and the addresses of one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage import naming
from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset
    from headwater.server.store.write.session import WriteSession

__all__ = ["cluster", "declare", "root", "set_root", "withdraw"]


def root(session: WriteSession, dataset: Dataset, time: int) -> None:
    """Find what a new dataset's name stands for, if another name was there first.

    Another spelling of the name gives way: `s3://lake` is shown though `s3a://lake` came first.
    """
    key = (dataset.space, dataset.name)
    target = session.aliases.get(key)
    plain = _plain(*key)
    if target is not None and plain == key and _lead(session, dataset, target, time):
        return
    if target is None and plain != key:
        session.load_datasets([plain])
        found = session.datasets.get(plain)
        target = found.id if found else session.aliases.get(plain)
        if target is None:
            _alias(session, plain, dataset.id, time)
    if target is None:
        target = _sibling(session, dataset)
    if target is not None and target != dataset.id:
        _point(session, [dataset], target)


def _plain(space: str, name: str) -> tuple[str, str]:
    spelled = naming.canonical(space, name)
    return spelled.namespace, spelled.name


def _lead(session: WriteSession, dataset: Dataset, other: int, time: int) -> bool:
    """Let a dataset that spells its name otherwise, and stands for itself, stand for this one."""
    key = (dataset.space, dataset.name)
    found = session.datasets_of([other])
    if not found or found[0].root != other or _plain(found[0].space, found[0].name) != key:
        return False
    session.rows["alias"] = [row for row in session.rows["alias"] if row[:2] != key]
    session.connection.run("DELETE FROM alias WHERE namespace = ? AND name = ?", key)
    del session.aliases[key]
    declare(session, dataset, [(found[0].space, found[0].name)], time)
    return True


def declare(
    session: WriteSession, dataset: Dataset, keys: list[tuple[str, str]], time: int
) -> None:
    """Let other names stand for a dataset."""
    session.load_datasets(keys)
    for key in keys:
        _alias(session, key, dataset.id, time)
    named = [session.datasets[key] for key in keys if key in session.datasets]
    _point(session, [other for other in named if other.id != dataset.root], dataset.id)


def withdraw(session: WriteSession, key: tuple[str, str]) -> None:
    """Let a name that was declared to stand for another dataset stand for itself again.

    With it goes what stands for it by an alias, a spelling or a cluster of its own. If one of those
    joins it with what it was declared to be, it stays.
    """
    session.flush()
    session.connection.run("DELETE FROM alias WHERE namespace = ? AND name = ?", key)
    session.aliases.pop(key, None)
    session.load_datasets([key])
    dataset = session.datasets.get(key)
    if dataset is None or dataset.root == dataset.id:
        return
    rows = session.connection.all("SELECT id FROM dataset WHERE root = ?", (dataset.root,))
    members = {member.id: member for member in session.datasets_of(row[0] for row in rows)}
    beside = _joined(session, members)
    found, waiting = {dataset.id}, [dataset.id]
    while waiting:
        fresh = beside[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    if dataset.root in found:
        return
    for number in found:
        set_root(session, members[number], dataset.id)
        session.contested.update((number, *members[number].state.rivals))


def _joined(session: WriteSession, members: dict[int, Dataset]) -> dict[int, set[int]]:
    """Which of these datasets are one by an alias, a spelling or a cluster, each with its neighbours."""
    sql = "SELECT namespace, name, dataset FROM alias WHERE dataset IN ({in})"
    owners = {(row[0], row[1]): row[2] for row in within(session.connection, sql, members)}
    named = {(member.space, member.name): number for number, member in members.items()}
    clusters: dict[str, str] = dict(
        session.connection.all("SELECT dataset_namespace, id FROM cluster")
    )
    clustered: dict[tuple[str, str], int] = {}
    found: dict[int, set[int]] = {number: set() for number in members}

    def join(one: int, other: int | None) -> None:
        if other is not None and other != one:
            found[one].add(other)
            found[other].add(one)

    for key, number in named.items():
        join(number, owners.get(key))
        plain = _plain(*key)
        join(number, named.get(plain, owners.get(plain)))
        if (cluster_id := clusters.get(key[0])) is not None:
            join(number, clustered.setdefault((cluster_id, key[1]), number))
    return found


def cluster(session: WriteSession, dataset: Dataset, facet: bytes, time: int) -> None:
    """Note which cluster a topic's namespace belongs to; all its addresses are one."""
    read = known.read(facet, known.ClusterFacet)
    if read is None or session.clusters.get(dataset.space) == read.clusterId:
        return
    session.clusters[dataset.space] = read.clusterId
    session.rows["cluster"].append((dataset.space, read.clusterId, time))
    for member in session.datasets_in(dataset.space):
        target = _sibling(session, member)
        if target is not None and target != member.id:
            _point(session, [member], target)


def _sibling(session: WriteSession, dataset: Dataset) -> int | None:
    cluster_id = session.clusters.get(dataset.space)
    if cluster_id is None:
        return None
    spaces = [s for s, c in session.clusters.items() if c == cluster_id and s != dataset.space]
    keys = [(space, dataset.name) for space in spaces]
    session.load_datasets(keys)
    roots = {session.datasets[key].root for key in keys if key in session.datasets}
    return min(roots) if roots else None


def _alias(session: WriteSession, key: tuple[str, str], target: int, time: int) -> None:
    if session.aliases.get(key) != target:
        session.aliases[key] = target
        session.rows["alias"].append((*key, target, time))  # of rows with one key, the last is kept


def _point(session: WriteSession, datasets: list[Dataset], target: int) -> None:
    """Let some datasets, and all that stands for them, stand for `target`."""
    if not datasets:
        return
    found = session.datasets_of([target])
    final = found[0].root if found else target
    moving = {d.id: d for d in datasets if final not in (d.id, d.root)}
    sql = "SELECT id FROM dataset WHERE root IN ({in}) AND root <> id"
    rows = within(session.connection, sql, moving)
    moved = [*moving.values(), *session.datasets_of(row[0] for row in rows)]
    moved += [d for d in session.dirty["dataset"].values() if d.root in moving]
    for member in moved:
        set_root(session, member, final)


def set_root(session: WriteSession, dataset: Dataset, root: int) -> None:
    """Let a dataset stand for another, or for itself again."""
    if dataset.root != root:
        session.merged.update((dataset.root, root))
        dataset.root = root
        session.moved[dataset.id] = dataset
        session.dirty["dataset"][dataset.id] = dataset
