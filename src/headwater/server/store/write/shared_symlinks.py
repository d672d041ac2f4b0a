"""Datasets that declare the same symlink: one dataset under two names, or a table that moved.

Two that share a symlink are one if the times at which events declared it overlap and no job reads
one and writes the other. Otherwise the table moved from one to the other, when the later one was
first declared; of two that were declared at once, the later is what a job wrote from the other. The
answer follows from the set of events, so it is recomputed whenever one arrives that may change it; an
order of arrival changes nothing. It goes by jobs and not by runs, whose reads and writes are not
kept as long: a job that ever read one and ever wrote the other keeps them apart.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from headwater.server.store.write import identity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Dataset
    from headwater.server.store.write.session import WriteSession

__all__ = ["claim", "declared", "settle"]

# Enough for any estate; more declarations of one name are somebody's mistake, and every pair counts.
MAX_RIVALS = 32
MAX_FACETS = 16

Key = tuple[str, str]


class DeclaredSpan(NamedTuple):
    """When a dataset first and last declared a symlink."""

    since: int
    until: int


def claim(session: WriteSession, dataset: Dataset, symlinks: int, time: int) -> None:
    """Take in that an event names a dataset, and the symlinks facet that it declares, if any."""
    if symlinks:
        _declare(session, dataset, symlinks, time)
    if dataset.state.rivals:
        session.dirty["dataset"][dataset.id] = dataset
        session.contested.add(dataset.id)


def _declare(session: WriteSession, dataset: Dataset, number: int, time: int) -> None:
    held = dataset.state.links.get(number)
    if held is None:
        dataset.state.links[number] = [number, time, time]
        _bound(dataset)
        session.dirty["dataset"][dataset.id] = dataset
        own = (dataset.space, dataset.name)
        _join(session, dataset, [key for key in session.symlinks_of(number) if key != own], time)
    elif time < held[1]:
        held[1] = time
        session.dirty["dataset"][dataset.id] = dataset
    elif time > held[2]:
        # Written for events that only read the dataset too: a restart must not judge by another end.
        held[2] = time
        session.dirty["dataset"][dataset.id] = dataset


def _bound(dataset: Dataset) -> None:
    links = dataset.state.links
    if len(links) > MAX_FACETS:
        del links[min(links, key=lambda number: links[number][2])]


def _join(session: WriteSession, dataset: Dataset, keys: list[Key], time: int) -> None:
    """Let symlinks stand for a dataset; one that another declares too makes them rivals."""
    session.load_datasets(keys)
    free: list[Key] = []
    claims: dict[int, dict[Key, DeclaredSpan]] = {}
    for key in keys:
        # Of a name that is no dataset, loading has found out already what it stands for.
        known = key in session.datasets
        target = session.alias_of(key) if known else session.aliases.get(key)
        found = session.datasets_of([target]) if target not in (None, dataset.id) else []
        if found and found[0].id not in claims:
            claims[found[0].id] = declared(session, found[0])
        if found and key in claims[found[0].id]:
            _make_rivals(session, dataset, found[0])
        else:
            free.append(key)
    identity.declare(session, dataset, free, time)


def _make_rivals(session: WriteSession, dataset: Dataset, holder: Dataset) -> None:
    for other in (holder, *session.datasets_of(holder.state.rivals)):
        if other.id == dataset.id or len(other.state.rivals) >= MAX_RIVALS:
            continue
        for one, two in ((dataset, other), (other, dataset)):
            if two.id not in one.state.rivals:
                one.state.rivals.append(two.id)
            session.dirty["dataset"][one.id] = one


def declared(session: WriteSession, dataset: Dataset) -> dict[Key, DeclaredSpan]:
    """Every symlink that events declared for a dataset, with the first and the last time."""
    found: dict[Key, DeclaredSpan] = {}
    for number, (_, since, until) in dataset.state.links.items():
        for key in session.symlinks_of(number):
            if key == (dataset.space, dataset.name):
                continue
            seen = found.get(key, DeclaredSpan(since, until))
            found[key] = DeclaredSpan(min(seen.since, since), max(seen.until, until))
    return found


def settle(session: WriteSession) -> None:
    """Decide again for datasets whose claims or edges have changed."""
    left = set(session.contested)
    session.contested.clear()
    while left:
        group = _group(session, min(left))
        left -= {min(left), *(member.id for member in group)}
        if len(group) > 1:
            _decide(session, group)


def _group(session: WriteSession, first: int) -> list[Dataset]:
    """A dataset with those that share a symlink with it, directly or through others."""
    found: dict[int, Dataset] = {}
    wanted = {first}
    while wanted:
        more = session.datasets_of(wanted)
        found.update((dataset.id, dataset) for dataset in more)
        wanted = {rival for dataset in more for rival in dataset.state.rivals} - found.keys()
        if len(found) > MAX_RIVALS:
            break
    return list(found.values())


def _decide(session: WriteSession, group: list[Dataset]) -> None:
    claims = {member.id: declared(session, member) for member in group}
    ranked = sorted((m for m in group if claims[m.id]), key=lambda m: _first(m, claims[m.id]))
    leader = {member.id: member for member in ranked}
    for one, two in combinations(ranked, 2):
        if _are_one(session, one, two, claims) and leader[one.id] is not leader[two.id]:
            kept, gone = sorted(
                (leader[one.id], leader[two.id]), key=lambda m: _first(m, claims[m.id])
            )
            leader.update({i: kept for i, found in leader.items() if found is gone})
    _set_roots(session, ranked, leader)
    for key in {key for member in ranked for key in claims[member.id]}:
        holders = [member for member in ranked if key in claims[member.id]]
        if len(holders) > 1:
            last = max(claims[member.id][key].since for member in holders)
            newest = _latest(session, [m for m in holders if claims[m.id][key].since == last])
            identity.declare(session, newest, [key], last)


def _latest(session: WriteSession, at_once: list[Dataset]) -> Dataset:
    """Of datasets that declared a symlink at one time the one that was written from the others."""

    def written(one: Dataset) -> int:
        return sum(_feeds(session, other.id, one.id) for other in at_once if other is not one)

    return max(at_once, key=lambda m: (written(m), m.space, m.name))


def _first(dataset: Dataset, claims: dict[Key, DeclaredSpan]) -> tuple[int, str, str]:
    return min(span.since for span in claims.values()), dataset.space, dataset.name


def _are_one(
    session: WriteSession, one: Dataset, two: Dataset, claims: dict[int, dict[Key, DeclaredSpan]]
) -> bool:
    shared = claims[one.id].keys() & claims[two.id].keys()
    spans = [(claims[one.id][key], claims[two.id][key]) for key in shared]
    overlap = any(a.since <= b.until and b.since <= a.until for a, b in spans)
    return overlap and not _crossed(session, one.id, two.id)


def _crossed(session: WriteSession, one: int, two: int) -> bool:
    """Whether a job reads one of two datasets and writes the other."""
    return _feeds(session, one, two) or _feeds(session, two, one)


def _feeds(session: WriteSession, one: int, two: int) -> bool:
    """Whether a job reads one dataset and writes another."""
    sql = (
        "SELECT 1 FROM edge a JOIN edge b ON b.job = a.job AND a.direction = 0 AND b.direction = 1"
        " WHERE a.dataset = ? AND b.dataset = ? LIMIT 1"
    )
    if session.connection.all(sql, (one, two)):
        return True
    for job, rows in session.edges.items():
        pending = {(row[1], row[2]) for row in rows if row[1] in (one, two)}
        if not pending:
            continue
        stored = session.connection.all(
            "SELECT dataset, direction FROM edge WHERE job = ? AND dataset IN (?, ?)",
            (job, one, two),
        )
        if {(one, 0), (two, 1)} <= pending | set(stored):
            return True
    return False


def _set_roots(session: WriteSession, group: list[Dataset], leader: dict[int, Dataset]) -> None:
    """Give each its leader's root, and what stood for them the root of what it stands for."""
    members = {member.id for member in group}
    before = {member.id: member.root for member in group}
    roots = {
        member.id: head.id if head.root in members else head.root
        for member in group
        for head in (leader[member.id],)
    }
    if roots == before:
        return
    followers = _standing_for(session, {*before.values(), *members}, members)
    for member in group:
        identity.set_root(session, member, roots[member.id])
    for follower in followers:
        owner = session.alias_of((follower.space, follower.name))
        owner = follower.root if owner is None else owner
        if owner in roots:
            identity.set_root(session, follower, roots[owner])


def _standing_for(session: WriteSession, roots: Iterable[int], members: set[int]) -> list[Dataset]:
    wanted = set(roots)
    found: dict[int, Dataset] = {}
    for root in wanted:
        rows = session.connection.all(
            "SELECT id FROM dataset WHERE root = ? AND root <> id", (root,)
        )
        found.update((d.id, d) for d in session.datasets_of(row[0] for row in rows))
    found.update((d.id, d) for d in session.dirty["dataset"].values())
    followers = [d for d in found.values() if d.root in wanted and d.id not in members]
    return [d for d in followers if d.root != d.id]
