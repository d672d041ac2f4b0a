"""Keeps the one schema of a dataset, and its history, true to what every event claims of it.

Most events repeat what was claimed before: they only move the time at which a run or a job last
made its claim, which stands in the state that is written anyway. A claim that cannot change the
result is one row more. Only what may change it is recomputed, by the rule in `lineage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.lifecycle import State
from headwater.lineage.schema.claims import (
    Claim,
    Ends,
    Rank,
    ResolvedSchema,
    history_and_current,
    parts,
    remembered_shape,
)
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT, slot, to_run, unslot
from headwater.server.store.write.claim_periods import (
    KEY,
    VALUE,
    WHOLE,
    ClaimKey,
    ClaimPeriod,
    divided,
    with_claim,
)
from headwater.server.store.write.store_types import type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.lineage.schema.claims import Part
    from headwater.lineage.schema.model import Field
    from headwater.server.store.database import ReadConnection
    from headwater.server.store.entities import Dataset, Held, Io, Job, Run
    from headwater.server.store.write.incoming.prepared import EventPart
    from headwater.server.store.write.session import WriteSession

__all__ = ["SchemaProjection", "is_topic", "read_claims", "to_claims"]

DATASET = 0
_COMPLETED = State.COMPLETED
_SOURCE, _WRITER, _READER, _ANNOUNCED = Rank.SOURCE, Rank.WRITER, Rank.READER, Rank.ANNOUNCED
UNDECIDED = 99
"""The rank of a topic of which the key or the value is not known yet."""
ENDING = frozenset({"CREATE", "ALTER", "DROP", "OVERWRITE"})
RENEWING = frozenset({"CREATE", "DROP"})
"""Changes after which a dataset is another one; such an end is stored as `-1 - run`."""
AT_ONCE = 1
"""The last of what a run keeps of an end that does not wait for the run to complete."""
_COLUMNS = (
    "SELECT rank, job, run, subject, version, facet, first, last, dataset, side FROM claim WHERE "
)
_CLAIMS = _COLUMNS + "dataset IN ({in})"
# What a run claimed before an end goes on if it claims the same again, in whatever spelling.
_LATER = (
    _COLUMNS  # noqa: S608
    + "(rank <= 2 OR last >= ? OR EXISTS (SELECT 1 FROM claim o WHERE o.dataset = claim.dataset"
    " AND o.job = claim.job AND o.run = claim.run AND o.side = claim.side"
    " AND o.subject = claim.subject AND o.version = claim.version AND o.last >= ?))"
    " AND dataset IN ({in})"
)
_HISTORY = "facet_change WHERE kind = 0 AND name = 'schema' AND time "
_OF_KEY = (
    " FROM claim"
    " WHERE dataset = ? AND job = ? AND run = ? AND side = ? AND subject = ? AND version = ?"
)
_PERIODS = "SELECT mark, facet, first, last" + _OF_KEY
# The latest claim of each dataset, part, job and rank stays: that which began last, of batches was made.
OUTDATED = """
DELETE FROM claim WHERE last < ? AND EXISTS (
  SELECT 1 FROM claim o WHERE o.dataset = claim.dataset AND o.job = claim.job
  AND o.side = claim.side AND o.subject = claim.subject AND o.rank = claim.rank
  AND (o.parts & claim.parts) = claim.parts
  AND (o.version, CASE WHEN o.run < 0 THEN o.last ELSE o.first END, o.last, o.run, o.mark)
    > (claim.version, CASE WHEN claim.run < 0 THEN claim.last ELSE claim.first END,
       claim.last, claim.run, claim.mark))
"""
KEPT, KEPT_OF_ONE = 1_000, 100
"""Claims on a dataset that are kept beside the latest of each author, and claims of one run. Schemas
from before the oldest stay as they were computed, so that what alternates for ever costs no more."""
_AS_READER = f" {int(Rank.READER)}  0"
"""The end of the place where a job keeps what it claims of its inputs."""


def _repeated(dataset: Dataset, held: Held | None, facet: int, time: int) -> bool:
    """Whether a claim is the one its author made last, made again; the time is noted then."""
    if held is None or held[0] != facet or held[1] > time:
        return False
    if time > held[2]:
        if dataset.root != dataset.id or dataset.state.ended is not None:
            return False  # an end may lie between the two
        held[2] = time
    return True


def is_topic(dataset: Dataset) -> bool:
    """Whether the key and the value of a dataset are claimed on their own."""
    return type_of(dataset.space, "DB_TABLE") == "STREAM"


def read_claims(
    connection: ReadConnection, ids: Sequence[int], since: int = 0
) -> tuple[list[tuple[Any, ...]], Ends]:
    """The stored claims on a dataset under all its names, and when earlier ones ended.

    Those that ended before `since` are left out.
    """
    sql = "SELECT time, run FROM schema_end WHERE dataset IN ({in})"
    found = within(connection, sql, ids)
    low = max((time for time, _ in found if time < since), default=0)
    renewals = {time for time, run in found if run < 0}
    # Claims of the best ranks are always read, so what may have ended them must be known.
    ends = Ends(renewals.union(time for time, _ in found if time >= low), renewals)
    if not low:
        return within(connection, _CLAIMS, ids), ends
    return within(connection, _LATER, ids, (low, low)), ends


def to_claims(rows: Iterable[tuple[Any, ...]], fields: Any) -> list[Claim]:
    """The claims that stored rows stand for; `fields` answers those of a facet."""
    found: list[Claim] = []
    for rank, job, run, subject, version, facet, first, last, dataset, side in rows:
        author = subject if rank == Rank.SOURCE else str(job)
        claimed = fields(facet)
        of_run = "" if version else f"{dataset} {side} {job} {run} {subject}"
        if rank in (Rank.WRITER, Rank.ANNOUNCED) and run < 0:
            # A batch: announced by its first event, and written once it completed.
            found.append(Claim(Rank.ANNOUNCED, author, first, first, claimed, of_run, facet=facet))
            if rank == Rank.WRITER:
                found.append(Claim(Rank.WRITER, author, last, last, claimed, of_run, facet=facet))
            continue
        found.append(Claim(Rank(rank), author, first, last, claimed, of_run, version, facet))
    return found


class SchemaProjection:
    """Applies the claims of events to the working set."""

    def __init__(self, session: WriteSession, changes: list[dict[str, Any]]) -> None:
        self.session = session
        self.changes = changes

    def claim(
        self, dataset: Dataset, part: EventPart, direction: int, time: int,
        job: Job | None, run: Run | None, held: Io | None, *, streaming: bool, producer: str = "",
    ) -> None:  # fmt: skip
        """Take in what an event claims of a dataset's schema, and whether it ends earlier claims."""
        number = job.id if job is not None else 0
        for subject, version, facet in part.origins:
            key = ClaimKey(Rank.SOURCE, dataset.id, number, 0, direction, subject, version)
            self._interval(dataset, key, job, facet, time)
        facet = part.schema
        drop = part.change == "DROP"
        if facet and not drop:
            if run is None:
                key = ClaimKey(Rank.DECLARED, dataset.id, 0, 0, direction, producer)
                self._interval(dataset, key, None, facet, time)
            elif run.state.static:
                rank = Rank.DEFINED if direction == OUTPUT else Rank.DEFINED_READER
                self._interval(
                    dataset, ClaimKey(rank, dataset.id, number, 0, direction), job, facet, time
                )
            elif streaming:
                assert held is not None
                if not _repeated(dataset, held.stream, facet, time):
                    rank = Rank.READER if direction == INPUT else Rank.WRITER
                    key = ClaimKey(rank, dataset.id, number, run.id, direction)
                    held.stream = self._made(dataset, key, held.stream, facet, time)
            else:
                assert held is not None
                assert job is not None
                self.of_batch(dataset, facet, direction, time, job, held)
        if part.change in ENDING and direction != INPUT:
            renewed = part.change in RENEWING
            self._ended(dataset, run, held, time, streaming=streaming, renewed=renewed)
        if dataset.root != dataset.id:
            self._follow(dataset)

    def of_batch(
        self, dataset: Dataset, facet: int, direction: int, time: int, job: Job, held: Io
    ) -> None:
        """Take in what a run of a batch claims, which is all that most events do."""
        if direction != INPUT:
            self._batch(held, facet, time)
            return
        # Of the inputs of batches a job has one claim after the other, not one for each run.
        claims = job.state.claims
        place = f"{slot(dataset.id, INPUT)}{_AS_READER}"
        made = claims.get(place)
        if not _repeated(dataset, made, facet, time):
            key = ClaimKey(_READER, dataset.id, job.id, 0, INPUT)
            claims[place] = self._made(dataset, key, made, facet, time)

    def _ended(
        self,
        dataset: Dataset,
        run: Run | None,
        held: Io | None,
        time: int,
        *,
        streaming: bool,
        renewed: bool,
    ) -> None:
        """Note that an event ends earlier claims: at once, or when the batch has completed."""
        number = run.id if run is not None and held is not None else 0
        mark = -1 - number if renewed else number
        if held is None or run is None:
            self._end(dataset, mark, time)
            return
        known = held.ended
        if known is not None and len(known) == 2:
            known.append(run.id)  # as stored before such ends had a mark
        if streaming:
            if known is None or (time, mark) < (known[0], known[2]):
                self._end(dataset, mark, time, (known[2], known[1]) if known else None)
                held.ended = [time, time, mark, AT_ONCE]
        elif known is None:
            held.ended = [time, -1, mark]
        elif mark < 0 <= known[2]:
            if known[1] >= 0:
                self._end(dataset, mark, known[1], (known[2], known[1]))
            known[2] = mark

    def merge(self) -> None:
        """Resolve again which datasets other names stand for since this event."""
        merged = sorted(self.session.merged)
        self.session.merged.clear()
        self.resolve(merged)

    def resolve(self, datasets: Iterable[int]) -> None:
        """Resolve the schemas of these datasets again from all claims about them."""
        for number in datasets:
            found = self._dataset(number)
            if found is not None:
                root = self._root(found)
                self._refresh(root)
                self._recompute(root)

    def settle(self, job: Job, run: Run) -> None:
        """Bring the claims of a batch up to date: they count once the run has completed."""
        life = run.state.life
        done = life.end if life.state is _COMPLETED else None
        mark = -1 if done is None else done
        for key, held in run.state.io.items():
            batch, ended = held.batch, held.ended
            moved = ended is not None and _with_batch(held) and ended[1] != mark
            if not moved and (batch is None or _is_stored(batch, mark)):
                continue
            dataset = self._dataset(unslot(key)[0])
            if dataset is None:
                continue
            if moved and ended is not None:
                number = ended[2] if len(ended) > 2 else run.id
                self._end(dataset, number, done, (number, ended[1]) if ended[1] >= 0 else None)
                ended[1] = mark
            if batch is not None:
                self._written(dataset, job, run, held, done)

    def _dataset(self, number: int) -> Dataset | None:
        found = self.session.datasets_by_id.get(number)
        if found is None:
            found = next(iter(self.session.datasets_of([number])), None)
        return found

    def _batch(self, held: Io, facet: int, time: int) -> None:
        """Keep what a batch claimed last; equal times are decided by content, not by arrival."""
        if held.batch is None:
            held.batch = [facet, time, time, 0, 0, 0]
            return
        before = held.batch
        newer = time > before[2] or (
            time == before[2] and self.session.body(facet) > self.session.body(before[0])
        )
        if newer:
            before[0] = facet
        if time < before[1]:
            before[1] = time
        if time > before[2]:
            before[2] = time

    def _written(self, dataset: Dataset, job: Job, run: Run, held: Io, done: int | None) -> None:
        """Store the claim of a batch as it stands now, if that is new."""
        assert held.batch is not None
        facet, first, _, *stored = held.batch
        rank = _ANNOUNCED if done is None else _WRITER
        last = first if done is None else done
        now = [facet, first, last if done is not None else -1]
        if stored == now:
            return
        held.batch[3:] = now
        key = ClaimKey(rank, dataset.id, job.id, -run.id, OUTPUT)
        root = self._root(dataset)
        self._store(root, key, facet, first, last, single=True)
        if not stored[0]:
            self._effect(root, _ANNOUNCED, facet, first)
            if done is not None:
                self._effect(root, rank, facet, last)
        elif stored[:2] == now[:2] and stored[2] == -1 and done is not None:
            self._effect(root, rank, facet, last)
        else:
            self._recompute(root)

    def _interval(
        self, dataset: Dataset, key: ClaimKey, job: Job | None, facet: int, time: int
    ) -> None:
        """A claim that an author makes again and again, kept in the state of the author."""
        if job is not None:
            place = f"{slot(key.dataset, key.side)} {key.rank} {key.subject} {key.version}"
            held = self._made(dataset, key, job.state.claims.get(place), facet, time)
            job.state.claims[place] = held
        else:
            place = f"{key.rank} {key.subject} {key.version}"
            held = self._made(dataset, key, dataset.state.claims.get(place), facet, time)
            dataset.state.claims[place] = held
            self.session.dirty["dataset"][dataset.id] = dataset

    def _made(
        self, dataset: Dataset, key: ClaimKey, held: Held | None, facet: int, time: int
    ) -> Held:
        """Take one more claim in; answers the one that its author made last."""
        if held is not None and held[0] == facet and held[1] <= time:
            if time > held[2]:
                ended = self._root(dataset).state.ended
                # Any of the ends may lie between, also one before the last.
                crossed = ended is not None and held[2] < ended
                held[2] = time
                if crossed:
                    self._store(self._root(dataset), key, *held)
                    self._recompute(self._root(dataset))
            return held
        root = self._root(dataset)
        if held is None:
            self._store(root, key, facet, time, time)
            self._effect(root, key.rank, facet, time)
            return [facet, time, time]
        if key.version:
            return self._answered(root, key, held, facet, time)
        if time <= held[2]:
            return self._late(dataset, key, held, facet, time)
        self._store(root, key, *held)
        self._store(root, key, facet, time, time)
        self._recompute(
            root, 0 if self._goes_on(root, key, held, facet) else self._since(root, time)
        )
        return [facet, time, time]

    def _goes_on(self, root: Dataset, key: ClaimKey, held: Held, facet: int) -> bool:
        """Whether a newer claim may be one from before an end, made again in part or in other words.

        It counts on from that end then, not from its own time.
        """
        ended = root.state.ended
        if ended is None:
            return False
        if held[2] < ended:
            return True
        if not key.rank.by_part or not is_topic(root):
            return False
        fields = self.session.fields
        return not _parts(fields(facet)) <= _parts(fields(held[0]))

    def _store(
        self,
        root: Dataset,
        key: ClaimKey,
        facet: int,
        first: int,
        last: int,
        *,
        single: bool = False,
    ) -> None:
        """Store a claim with the parts of the dataset that it is about."""
        about = WHOLE
        if is_topic(root) and key.rank.by_part:
            found = _parts(self.session.fields(facet))
            about = VALUE * ("value" in found) | KEY * ("key" in found)
        self.session.rows["claim"].append(key.row(facet, first, last, single=single, parts=about))

    def _answered(self, root: Dataset, key: ClaimKey, held: Held, facet: int, time: int) -> Held:
        """Take in what a registry or catalog answered as one version, beside what it answered last."""
        session = self.session
        first = last = time
        if held[0] == facet:
            last = held[2]
        else:
            session.rows["claim"].append(key.row(*held))
            session.write("claim")
            sql = "SELECT first, last" + _OF_KEY + " AND mark = ?"
            for since, until in session.connection.all(sql, (*key[1:], facet)):
                first, last = min(first, since), max(last, until)
        session.rows["claim"].append(key.row(facet, first, last))
        # After an end, an answer of this version in other words may be what outlived it.
        later = first == last and time > held[2] and root.state.ended is None
        self._recompute(root, self._since(root, time) if later else 0)
        return [facet, first, last] if held[0] == facet or last > held[2] else held

    def _late(self, dataset: Dataset, key: ClaimKey, held: Held, facet: int, time: int) -> Held:
        """Take in a claim from before the last one of its author; answers the last one."""
        session, connection = self.session, self.session.connection
        if time == held[2] and session.body(facet) < session.body(held[0]):
            return held
        root = self._root(dataset)
        self._store(root, key, *held)
        session.write("claim")
        sql = _PERIODS + " AND first <= ? ORDER BY first DESC, last DESC LIMIT 2"
        rows = connection.all(sql, (*key[1:], time))
        sql = _PERIODS + " AND first > ? ORDER BY first LIMIT 1"
        rows += connection.all(sql, (*key[1:], time))
        known = [ClaimPeriod(*row[1:]) for row in rows]
        found = with_claim(
            known, facet, time, lambda one: divided(session, dataset, key, one, facet, time)
        )
        if set(found) == set(known):
            return held
        for mark, *one in rows:
            if ClaimPeriod(*one) not in found:
                connection.run("DELETE" + _OF_KEY + " AND mark = ?", (*key[1:], mark))
        for period in found:
            if period not in known:
                self._store(root, key, *period)
        self._recompute(root)
        newest = max(found, key=lambda one: one.first)
        return [*newest] if ClaimPeriod(*held) in known else held

    def _end(
        self, dataset: Dataset, mark: int, time: int | None, before: tuple[int, int] | None = None
    ) -> None:
        """Note when a dataset was created, altered, dropped or overwritten, or that it was not.

        `before` are the mark and the time that were noted for the same end.
        """
        session, root = self.session, self._root(dataset)
        if before is not None:
            session.write("schema_end")
            sql = "DELETE FROM schema_end WHERE dataset = ? AND run = ? AND time = ?"
            session.connection.run(sql, (dataset.id, *before))
        if time is not None:
            session.rows["schema_end"].append((dataset.id, mark, time))
            root.state.ended = max(root.state.ended or 0, time)
            session.dirty["dataset"][root.id] = root
        if root.state.schema is not None:
            self._refresh(root)
            moved = before is not None or time is None
            self._recompute(root, 0 if moved or time is None else self._since(root, time))

    def _refresh(self, root: Dataset) -> None:
        """Store when each claim was last made, as their authors' states have it."""
        session = self.session
        session.write("claim")
        ids = self._members(root)
        sql = (
            "SELECT dataset, job, run, side, subject, version, mark, rank, facet, first, last, parts"
            " FROM claim WHERE rank <> 2 AND run >= 0 AND dataset IN ({in})"
        )
        rows = within(session.connection, sql, ids)
        runs = self._runs({row[2] for row in rows if row[2]})
        for row in rows:
            dataset, job, run, side, subject, version, _, rank, facet, first, last, about = row
            held: Held | None
            if run:
                use = runs[run].state.io.get(slot(dataset, side)) if run in runs else None
                held = use.stream if use is not None else None
            elif job:
                place = f"{slot(dataset, side)} {rank} {subject} {version}"
                held = session.job_of(job).state.claims.get(place)
            else:
                member = self._dataset(dataset)
                place = f"{rank} {subject} {version}"
                held = member.state.claims.get(place) if member is not None else None
            if held is not None and held[:2] == [facet, first] and held[2] > last:
                session.rows["claim"].append((*row[:10], held[2], about))

    def _runs(self, ids: set[int]) -> dict[int, Run]:
        session = self.session
        known = {run.id: run for run in session.runs.values() if run.id in ids}
        missing = ids - known.keys()
        sql = "SELECT id, uuid, job, state FROM run WHERE id IN ({in})"
        for row in within(session.connection, sql, missing) if missing else ():
            known[row[0]] = to_run(row)
        return known

    def _root(self, dataset: Dataset) -> Dataset:
        if dataset.root == dataset.id:
            return dataset
        return self._dataset(dataset.root) or dataset

    def _follow(self, dataset: Dataset) -> None:
        """Show the schema under this name too."""
        held = self._root(dataset).state.facets.get("schema")
        if held is not None and dataset.state.facets.get("schema") != held:
            dataset.state.facets["schema"] = list(held)
            self.session.dirty["dataset"][dataset.id] = dataset

    def _effect(self, root: Dataset, rank: Rank, facet: int, time: int) -> None:
        """Let a new claim count; whether it may change the result is known without reading any."""
        state = root.state
        known = state.schema
        if known is None:
            fields = self.session.fields(facet)
            if not fields or state.ended is not None or "schema" in state.facets:
                self._recompute(root)
                return
            whole = not is_topic(root) or len(parts(fields, topic=True)) > 1
            state.schema = [facet, rank if whole else UNDECIDED, time, time]
            self.session.rows["facet_change"].append((DATASET, root.id, "schema", time, facet))
            self._show(root, self._members(root), [facet, time, time])
            return
        # Up to the moment from which on claims have given this schema, even the same one may count: it
        # may be earlier than what a better rank corrected, or decide at the same moment.
        # A table of a catalog ends the one before it, which may be all that holds the schema later on.
        alone = rank is not _SOURCE or time >= known[2]
        same = known[0] == facet and time > known[3] and alone
        if same or (time >= known[2] and rank > known[1] and not is_topic(root)):
            known[2] = max(known[2], time)
            if same and rank < known[1] != UNDECIDED and time >= (state.ended or 0):
                known[1] = rank
            self.session.dirty["dataset"][root.id] = root
            return
        self._recompute(root, self._since(root, time))

    @staticmethod
    def _since(root: Dataset, time: int) -> int:
        """From when on the history is to be computed: all of it, if something later is known."""
        known = root.state.schema
        return time if known is not None and time > known[2] else 0

    def _recompute(self, root: Dataset, since: int = 0) -> None:
        """Recompute the schema and its history, from `since` on where nothing is later."""
        session, state = self.session, root.state
        for name in ("claim", "schema_end", "facet_change"):
            session.write(name)
        ids = self._members(root)
        floor = max(one.state.floor for one in session.datasets_of(ids))
        since = max(since, session.floor, floor)
        rows, ends = read_claims(session.connection, ids, since)
        claims = [c for c in to_claims(rows, session.fields) if c.fields]
        early = self._early(ids, since)
        topic = is_topic(root)
        versions, now = history_and_current(claims, ends, topic=topic, since=since, early=early)
        last = self._replace(root, ids, early, versions)
        state.ended = max(ends.all, default=state.ended)
        seen = max((c.last for c in claims), default=0)
        latest = max(seen, state.ended or 0, state.schema[2] if state.schema else 0)
        session.dirty["dataset"][root.id] = root
        if now is None:  # a dataset that is gone keeps the schema that it had
            state.schema = [0, UNDECIDED, latest, latest] if claims else None
        else:
            last = self._facet(now)
            settled = versions[-1].settled if versions else 0
            if not settled:  # a version from before `since`: of that one the state knows
                known = state.schema
                settled = known[3] if known is not None and known[0] == last else latest
            state.schema = [last, _worst(now, topic=topic), latest, settled]
        if len(rows) > KEPT_OF_ONE:
            self._let_go(root, ids, rows)
        if versions:
            self._show(root, ids, [last, versions[-1].time, latest])
        else:
            for member in session.datasets_of(ids):
                member.state.facets.pop("schema", None)

    def _let_go(self, root: Dataset, ids: list[int], rows: list[tuple[Any, ...]]) -> None:
        """Let the older half of the claims on a dataset go once they are too many."""
        times: dict[tuple[Any, ...], list[int]] = {}
        for rank, job, run, subject, version, _, _, last, dataset, side in rows:
            times.setdefault((rank, job, run, subject, version, dataset, side), []).append(last)
        most = max(times.values(), key=len)
        if len(most) <= KEPT_OF_ONE:
            # Of a topic, the latest of each author stays for the value and for the key.
            each = 2 if is_topic(root) else 1
            if len(rows) - each * len({(*key[:2], key[3], *key[5:]) for key in times}) <= KEPT:
                return
            most = [row[7] for row in rows]
        root.state.floor = sorted(most)[len(most) // 2]
        sql = OUTDATED + " AND dataset IN ({in}) RETURNING 1"
        within(self.session.connection, sql, ids, (root.state.floor,))

    def _show(self, root: Dataset, ids: list[int], held: Held) -> None:
        """Let the dataset have this schema under all its names; True if it is another one."""
        session = self.session
        before = root.state.facets.get("schema")
        for member in session.datasets_of(ids):
            member.state.facets["schema"] = list(held)
            member.updated = max(member.updated, held[1])
            session.dirty["dataset"][member.id] = member
        if not before or not before[0] or before[0] == held[0] or before[1] == held[1]:
            return  # the first schema, or one that corrects it, is no change
        change = {"change": "schema", "namespace": root.space, "name": root.name}
        if _shape(session, before[0]) != _shape(session, held[0]) and change not in self.changes:
            self.changes.append(change)

    def _early(self, ids: list[int], since: int) -> list[ResolvedSchema]:
        """The last versions before a moment, the oldest first."""
        if not since:
            return []
        sql = f"SELECT time, facet FROM {_HISTORY} < ? AND entity IN ({{in}}) ORDER BY time DESC LIMIT 2"  # noqa: S608
        rows = within(self.session.connection, sql, ids, (since,))
        fields = self.session.fields
        return [ResolvedSchema(time, fields(facet), ()) for time, facet in sorted(rows) if facet]

    def _replace(
        self,
        root: Dataset,
        ids: list[int],
        early: list[ResolvedSchema],
        versions: list[ResolvedSchema],
    ) -> int:
        """Let the stored history be this one, and answer its last facet; the rest stays."""
        session = self.session
        low = early[0].time if early else 0
        kept = {id(version) for version in early}
        sql = f"DELETE FROM {_HISTORY} >= ? AND entity IN ({{in}}) RETURNING time, facet"  # noqa: S608
        stored: dict[int, int] = dict(within(session.connection, sql, ids, (low,)))
        facet = 0
        for version in versions:
            same = id(version) in kept
            facet = stored[version.time] if same else self._facet(version)
            session.rows["facet_change"].append((DATASET, root.id, "schema", version.time, facet))
        return facet

    def _facet(self, version: ResolvedSchema) -> int:
        """The facet of a schema: that of the claim that is all of it, or a new one."""
        looks = remembered_shape(version.fields)
        session = self.session
        whole = (c for c in version.claims if remembered_shape(c.fields) == looks)
        claim = next(whole, None)
        if claim is None:
            return session.facet_of(
                self._of_several(version.claims, version.claims[0]), version.fields
            )
        return self._of_several(version.claims, claim)

    def _of_several(self, claims: Sequence[Claim], claim: Claim) -> int:
        """The facet of a claim; of those that say the same of the fields, the first by content."""
        same = {c.facet for c in claims if c.facet != claim.facet and c.fields == claim.fields}
        return min(same | {claim.facet}, key=self.session.body) if same else claim.facet

    def _members(self, root: Dataset) -> list[int]:
        session, found = self.session, set[int]()
        if not session.moved and root.id in session.fresh:
            return [root.id]
        if root.id not in session.fresh:
            sql = "SELECT id FROM dataset WHERE root = ? AND root <> id"
            found = {row[0] for row in session.connection.all(sql, (root.id,))}
        for dataset in session.moved.values():
            if dataset.root == root.id:
                found.add(dataset.id)
            else:
                found.discard(dataset.id)
        return [root.id, *sorted(found - {root.id})]


def _is_stored(batch: Held, mark: int) -> bool:
    """Whether the claim of a batch is stored as it is now, as the last three numbers say."""
    return batch[5] == mark and batch[3] == batch[0] and batch[4] == batch[1]


def _with_batch(held: Io) -> bool:
    """Whether the end that a run has noted counts when it completes, and not from its time on."""
    return held.ended is not None and len(held.ended) < 4 and held.stream is None


def _parts(fields: tuple[Field, ...]) -> set[Part]:
    return set(parts(fields, topic=True))


def _shape(session: WriteSession, facet: int) -> bytes:
    return remembered_shape(session.fields(facet))


def _worst(version: ResolvedSchema, *, topic: bool) -> int:
    """The rank that a claim must reach to matter; of a topic, to matter for its key or value."""
    if topic and len(parts(version.fields, topic=True)) < 2:
        return UNDECIDED
    return max(claim.rank for claim in version.claims)
