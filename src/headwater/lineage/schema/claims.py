"""One schema for a dataset from what many jobs report of it: claims in, versions and findings out.

A claim is what an event reports of a dataset's fields. The best rank present decides, and jobs of
the same rank add up. The result depends on the set of claims alone, not on their order or
repetition: a claim that was repeated without another between is kept as the first and the last time
it was made.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from .model import Field
from .types import normal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

T = TypeVar("T")
Part = Literal["whole", "value", "key"]
Author = tuple["Rank", str, str]
"""Whose claims replace each other: rank, author, and the part where parts are claimed on their own."""
Types = dict[str, str]
KEY = "key"
CATALOG = "catalog "
"""How the author begins that is a table of a catalog."""
BESIDE = 10
"""Beside how many others a claim is shown that contradicts them; of hundreds, each would contradict each."""


class Rank(IntEnum):
    """How much a claim counts; the lowest number decides."""

    SOURCE = 1
    """A registry or a catalog that was asked directly."""
    DECLARED = 2
    """A dataset event, or a schema given by hand."""
    WRITER = 3
    """An output of a run: of a stream from its first event, of a batch when it completed."""
    DEFINED = 4
    """An output of a job event."""
    READER = 5
    """An input of a run."""
    DEFINED_READER = 6
    """An input of a job event."""
    ANNOUNCED = 7
    """An output of a batch that has not completed."""

    @property
    def by_part(self) -> bool:
        """Whether the key and the value of a topic are claimed on their own.

        A job that reports no key says nothing of it; what a registry answers, and what is declared,
        is whole.
        """
        return self > _DECLARED

    @property
    def ends(self) -> bool:
        """Whether altering or overwriting the dataset ends such a claim."""
        return self > _DECLARED

    @property
    def ends_with_dataset(self) -> bool:
        """Whether creating or dropping the dataset ends such a claim."""
        return self is not _DECLARED


# A member is looked up through its class's class, which is slow where every event asks for it.
_DECLARED = Rank.DECLARED


class Claim(msgspec.Struct, frozen=True):
    """What one author reported of a dataset's fields, from the first to the last time it did.

    The author is a job; of rank SOURCE it is a subject or table, and `version` orders its claims
    where it has one (0 where not). Claims of one run are one as long as they do not differ; it
    replaces them, and of several runs of an author the one whose claim began last counts. `facet` is
    the caller's own mark and counts for nothing. `of` is the claim that this one is a part of, and
    `again` are later ones of the same run that differ in order or descriptions of fields alone.
    """

    rank: Rank
    author: str
    first: int
    last: int
    fields: tuple[Field, ...]
    run: str = ""
    version: int = 0
    facet: int = 0
    of: Claim | None = None
    again: tuple[Claim, ...] = ()


class Ends(NamedTuple):
    """When a dataset was created, altered, dropped or overwritten, and when created or dropped.

    Claims that were not made again since then no longer count: what a registry or a catalog
    answered only where the dataset is another one since.
    """

    all: Collection[int] = ()
    dataset: Collection[int] = ()


class ResolvedSchema(msgspec.Struct, frozen=True):
    """The schema of a dataset from a moment on, with the claims that it is made of.

    Order and descriptions of its fields are those reported when it began. `settled` is the moment
    from which on the claims have given this schema: later than `time` where a better rank corrected
    what the version began with.
    """

    time: int
    fields: tuple[Field, ...]
    claims: tuple[Claim, ...]
    settled: int = 0


class ClaimConflict(msgspec.Struct, frozen=True):
    """Two claims that cannot both be right, since when, and on which fields they disagree."""

    kind: Literal["type", "writers", "source"]
    since: int
    one: Claim
    other: Claim
    fields: tuple[str, ...]


def types(fields: Iterable[Field]) -> Types:
    """The type of each field in its normal form, by dotted path."""
    found: Types = {}
    _types(fields, "", found)
    return found


def _types(fields: Iterable[Field], prefix: str, found: Types) -> None:
    for field in fields:
        path = f"{prefix}{field.name}"
        found[path] = normal(field.type)
        _types(field.fields, f"{path}.", found)


def shape(fields: tuple[Field, ...]) -> bytes:
    """A hash of names and normal types: order of fields and descriptions are free."""
    text = "\0".join(f"{len(path)}:{path}{kind}" for path, kind in sorted(types(fields).items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def _content(fields: tuple[Field, ...]) -> bytes:
    """A hash of all that is said of fields, which decides where nothing else does."""
    return hashlib.sha256(msgspec.json.encode(fields)).digest()[:16]


class _Remembered(Generic[T]):
    """What is computed of fields again and again, as long as those are not too many."""

    def __init__(self, compute: Callable[[tuple[Field, ...]], T]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[tuple[Field, ...], T]] = {}
        self._fields = 0

    def of(self, fields: tuple[Field, ...]) -> T:
        """The same of fields that a caller keeps."""
        known = self._known.get(id(fields))
        if known is None or known[0] is not fields:
            if len(self._known) >= REMEMBERED or self._fields >= REMEMBERED_FIELDS:
                self._known.clear()
                self._fields = 0
            self._fields += len(fields)
            known = self._known[id(fields)] = (fields, self._compute(fields))
        return known[1]


def _of_topic(fields: tuple[Field, ...]) -> dict[Part, tuple[Field, ...]]:
    key = tuple(f for f in fields if f.name == KEY)
    if not key or len(key) == len(fields):
        part: Part = "key" if key else "value"
        return {part: fields} if fields else {}
    return {"value": tuple(f for f in fields if f.name != KEY), "key": key}


REMEMBERED = 8_192
REMEMBERED_FIELDS = 500_000
remembered_shape = _Remembered(shape).of
_remembered_content = _Remembered(_content).of
_topic_parts = _Remembered(_of_topic).of


def parts(fields: tuple[Field, ...], *, topic: bool) -> dict[Part, tuple[Field, ...]]:
    """The parts that a claim has fields of; a topic's key and value are claimed on their own."""
    if not topic:
        return {"whole": fields} if fields else {}
    return _topic_parts(fields)


def history_and_current(
    claims: Iterable[Claim],
    ends: Ends,
    *,
    topic: bool,
    since: int = 0,
    early: Sequence[ResolvedSchema] = (),
) -> tuple[list[ResolvedSchema], ResolvedSchema | None]:
    """Each schema that the dataset has had, the oldest first, and the one now as `current` has it.

    A better rank that is received for the first time corrects the version that holds then, because
    the dataset did not change. Where no claim is later than `since`, `early` may be the versions
    until then; they stay as they are.
    """
    found = list(early)
    ranks: dict[Part, tuple[Rank, bytes]] = {}
    held: _Claims = {}
    time = 0
    for time, held in _moments(claims, ends, since, topic=topic):
        before = found[-1].fields if found else ()
        version = _resolve(time, held, before, topic=topic)
        if version is None:
            ranks = {}
            continue
        known, ranks = ranks, _ranks(held, version, topic=topic)
        if time < since or remembered_shape(version.fields) == remembered_shape(before):
            continue
        if found and known and _corrected(known, ranks):
            version = msgspec.structs.replace(version, time=found.pop().time)
        if not found or remembered_shape(found[-1].fields) != remembered_shape(version.fields):
            found.append(version)
    now = _resolve(time, held, found[-1].fields if found else (), topic=topic)
    if now and found and remembered_shape(now.fields) != remembered_shape(found[-1].fields):
        # What is known of the time before `since` only now holds from then on.
        found.append(msgspec.structs.replace(now, time=max(since, found[-1].time + 1)))
    return found, now


def _ranks(
    held: _Claims, version: ResolvedSchema, *, topic: bool
) -> dict[Part, tuple[Rank, bytes]]:
    """Which rank decides each part, and its schema."""
    fields = parts(version.fields, topic=topic)
    by_part = _by_part(held, topic=topic)
    return {part: (min(by_part[part]), remembered_shape(fields[part])) for part in fields}


def _corrected(
    before: dict[Part, tuple[Rank, bytes]], after: dict[Part, tuple[Rank, bytes]]
) -> bool:
    """Whether every part that looks different now is decided by a better rank than before."""
    return before.keys() <= after.keys() and all(
        part not in before or rank < before[part][0]
        for part, (rank, looks) in after.items()
        if part not in before or before[part][1] != looks
    )


def current(
    claims: Iterable[Claim],
    ends: Ends,
    *,
    topic: bool,
    before: tuple[Field, ...] = (),
) -> ResolvedSchema | None:
    """The schema now, with descriptions as they were last reported."""
    held, time = _last(claims, ends, topic=topic)
    return _resolve(time, held, before, topic=topic)


def findings(
    claims: Iterable[Claim], ends: Ends, live: Collection[str], *, topic: bool
) -> list[ClaimConflict]:
    """What disagrees now; `live` are the jobs that write the dataset at this moment."""
    held, _ = _last(claims, ends, topic=topic)
    found: list[ClaimConflict] = []
    for part, ranks in _by_part(held, topic=topic).items():
        best = min(ranks)
        deciding = _typed(ranks[best], part, topic=topic)
        found += _contradictions("type", deciding, deciding)
        if best is Rank.WRITER:
            found += _fields_apart([one for one in deciding if one[0].claim.author in live])
        elif best is Rank.SOURCE:
            writers = _typed(ranks.get(Rank.WRITER, ()), part, topic=topic)
            found += _contradictions("source", deciding, writers)
    return found


class _CurrentClaim(NamedTuple):
    """The claim of an author that counts, and since when the author reports that schema.

    `since_end` is the same, but not before the last end of claims that it outlived: so far back the
    order of authors depends on nothing that may not be known any more.
    """

    since: int
    shape: bytes
    claim: Claim
    since_end: int


_Claims = dict[Author, _CurrentClaim]


def _last(claims: Iterable[Claim], ends: Ends, *, topic: bool) -> tuple[_Claims, int]:
    held: _Claims = {}
    time = 0
    for time, held in _moments(claims, ends, topic=topic):  # noqa: B007  (the last is wanted)
        pass
    return held, time


def _moments(
    claims: Iterable[Claim], ends: Ends, since: int = 0, *, topic: bool
) -> Iterator[tuple[int, _Claims]]:
    """Each moment at which some author's schema changes, with all that count from then on.

    Of those before `since` only the last. The mapping is one and the same and goes on changing.
    """
    stops, renewed = set(ends.all), set(ends.dataset)
    renewals = sorted(renewed)
    sorted_stops = sorted(stops)
    shapes: dict[int, bytes] = {}  # by the identity of the fields, which are large to hash
    authors = _by_author(claims, shapes, topic=topic)
    until = _succeeded(authors)
    succeeded: dict[int, list[Author]] = {}
    for author, moment in until.items():
        succeeded.setdefault(moment, []).append(author)
    changes = [
        (moment, author, claim)
        for author, made in authors.items()
        for moment, claim in _changes(author, made, shapes, renewals, sorted_stops)
        if moment < until.get(author, moment + 1)
    ]
    changes.sort(key=lambda change: change[:2])
    held: _Claims = {}
    place, moved = 0, False
    for time in sorted({*(change[0] for change in changes), *stops, *until.values()}):
        if moved and time >= since:
            moved = False
            yield since - 1, held
        while place < len(changes) and changes[place][0] == time:
            _, author, claim = changes[place]
            place += 1
            seen, found = held.get(author), shapes[id(claim.fields)]
            if seen is not None and seen.shape == found:
                held[author] = seen._replace(claim=claim)
            else:
                held[author] = _CurrentClaim(time, found, claim, time)
                moved = True
        for author in succeeded.get(time, ()):
            moved |= held.pop(author, None) is not None
        if time in stops:
            moved |= _end(held, time, renewed=time in renewed)
        if moved and time >= since:
            moved = False
            yield time, held
    if moved:
        yield since - 1, held


def _end(held: _Claims, time: int, *, renewed: bool) -> bool:
    """Let claims go that were not made again since a moment; True if there are such."""
    over: list[Author] = []
    for author, one in held.items():
        rank = author[0]
        if not (rank.ends_with_dataset if renewed else rank.ends):
            continue
        if one.claim.last < time:
            over.append(author)
        elif rank.ends:
            held[author] = one._replace(since_end=time)
    for author in over:
        del held[author]
    return bool(over)


def _by_author(
    claims: Iterable[Claim], shapes: dict[int, bytes], *, topic: bool
) -> dict[Author, list[Claim]]:
    """The claims of each author, those on a part for themselves where they are made so."""
    found: dict[Author, list[Claim]] = {}
    for part, of_part in _split(claims, topic=topic).items():
        for claim in _once(of_part, shapes):
            found.setdefault((claim.rank, claim.author, part), []).append(claim)
    return found


def _split(claims: Iterable[Claim], *, topic: bool) -> dict[str, list[Claim]]:
    """The claims on each part that is claimed on its own; under no part, those that are whole."""
    found: dict[str, list[Claim]] = {}
    for claim in claims:
        if not topic or not claim.rank.by_part:
            found.setdefault("", []).append(claim)
            continue
        for part, fields in _topic_parts(claim.fields).items():
            if fields is not claim.fields:
                one = msgspec.structs.replace(claim, fields=fields, of=claim)
            else:
                one = claim
            found.setdefault(part, []).append(one)
    return found


def _succeeded(authors: Mapping[Author, list[Claim]]) -> dict[Author, int]:
    """Until when each table of a catalog counts: of two on one dataset the later takes its place.

    A table that is dropped and created again is another table, whose versions begin again.
    """
    tables = sorted(
        (min(claim.first for claim in made), author)
        for author, made in authors.items()
        if author[0] is Rank.SOURCE and author[1].startswith(CATALOG)
    )
    return {author: later for (_, author), (later, _) in pairwise(tables)}


def _once(claims: Iterable[Claim], shapes: dict[int, bytes]) -> list[Claim]:
    """Claims that differ in time or description alone as one, within a run.

    Another one between them divides them, except where versions order them.
    """
    groups: dict[tuple[Any, ...], list[Claim]] = {}
    for claim in claims:
        found = shapes.get(id(claim.fields))
        if found is None:
            found = shapes[id(claim.fields)] = remembered_shape(claim.fields)
        key = (claim.rank, claim.author, claim.run, claim.version, found if claim.version else b"")
        groups.setdefault(key, []).append(claim)
    kept: list[Claim] = []
    for made in groups.values():
        if len(made) > 1:
            made.sort(key=lambda c: (c.first, shapes[id(c.fields)], _looks(c)))
        alike: list[Claim] = []
        for claim in made:
            if alike and shapes[id(claim.fields)] != shapes[id(alike[0].fields)]:
                kept.append(_as_one(alike))
                alike = []
            alike.append(claim)
        kept.append(_as_one(alike))
    return kept


def _as_one(alike: list[Claim]) -> Claim:
    """Claims that differ in order and descriptions of fields alone, as the first of them began."""
    if len(alike) == 1:
        return alike[0]
    last = max(claim.last for claim in alike)
    return msgspec.structs.replace(alike[0], last=last, again=tuple(alike[1:]))


def _looks(claim: Claim) -> bytes:
    """What decides between claims of one moment; of a part, all that was claimed with it."""
    return _remembered_content((claim.of or claim).fields)


def _as_reported(changes: list[tuple[int, Claim]]) -> Iterator[tuple[int, Claim]]:
    """The claims of one author over time, with fields as they were reported last at each moment."""
    for place, (moment, claim) in enumerate(changes, 1):
        if not claim.again:
            yield moment, claim
            continue
        until = changes[place][0] if place < len(changes) else None
        begun = [one for one in claim.again if one.first <= moment]
        later = [
            one
            for one in claim.again
            if one.first > moment and (until is None or one.first < until)
        ]
        for one in (begun[-1] if begun else claim, *later):
            yield (
                max(moment, one.first),
                msgspec.structs.replace(one, first=claim.first, last=claim.last, again=()),
            )


def _changes(
    author: Author,
    claims: list[Claim],
    shapes: Mapping[int, bytes],
    renewals: Sequence[int],
    stops: Sequence[int],
) -> Iterator[tuple[int, Claim]]:
    """The claim of one author over time, by version from the first claim on that has one.

    A dataset that was created or dropped in between may have its versions counted from the start.
    """
    versioned = [c for c in claims if c.version] if author[0] is Rank.SOURCE else []
    begin = min((c.first for c in versioned), default=None)
    plain = [c for c in claims if not versioned or not c.version]
    ending = stops if author[0].ends else renewals if author[0].ends_with_dataset else ()
    # What came before a version was known stays as it was: history only grows.
    found = [
        (moment, claim)
        for moment, claim in _by_time(plain, shapes, ending)
        if begin is None or moment < begin
    ]
    yield from _as_reported([*found, *_by_version(versioned, shapes, renewals)])


def _by_version(
    claims: list[Claim], shapes: Mapping[int, bytes], renewals: Sequence[int]
) -> Iterator[tuple[int, Claim]]:
    """The highest version, as it was first answered; from a renewal on, of those answered since."""

    def order(claim: Claim) -> tuple[int, int, bytes]:
        return -claim.version, claim.first, shapes[id(claim.fields)]

    claims = sorted(claims, key=lambda c: (c.first, *order(c)))
    begun: list[Claim] = []
    now: Claim | None = None
    place = 0
    for renewal in (*renewals, None):
        while place < len(claims) and (renewal is None or claims[place].first < renewal):
            begun.append(claims[place])
            place += 1
            if now is None or begun[-1].version > now.version:
                now = begun[-1]
                yield now.first, now
        if renewal is None or not begun:
            continue
        begun = [c for c in begun if c.last >= renewal]
        before, now = now, min(begun, key=order, default=None)
        if now is not None and now is not before:
            yield renewal, now


def _by_time(
    claims: list[Claim], shapes: Mapping[int, bytes], stops: Sequence[int]
) -> Iterator[tuple[int, Claim]]:
    """The claim that began last; from a stop on, of those made again since.

    Whether a run still reports counts for nothing else, so that two runs at once do not alternate.
    """
    claims = sorted(claims, key=lambda c: (c.first, shapes[id(c.fields)], _looks(c), c.run))
    begun: list[Claim] = []
    place = 0
    for stop in (*stops, None):
        while place < len(claims) and (stop is None or claims[place].first <= stop):
            begun.append(claims[place])
            yield begun[-1].first, begun[-1]
            place += 1
        if stop is None or not begun:
            continue
        now, begun = begun[-1], [c for c in begun if c.last >= stop]
        if begun and begun[-1] is not now:
            yield stop, begun[-1]


def _resolve(
    time: int, held: _Claims, before: tuple[Field, ...], *, topic: bool
) -> ResolvedSchema | None:
    fields: tuple[Field, ...] = ()
    made: dict[int, Claim] = {}
    known: Types | None = None
    for part, ranks in _by_part(held, topic=topic).items():
        deciding = ranks[min(ranks)]
        schemas = [_part(one, part, topic=topic) for one in deciding]
        if len(schemas) > 1:
            known = types(before) if known is None else known
            schemas = [_merged(schemas, known)]
        # Most schemas are those of one claim: that very tuple, of which more is known by then.
        fields = (*fields, *schemas[0]) if fields else schemas[0]
        made.update({id(claim): claim for claim in map(_whole, deciding)})
    return ResolvedSchema(time, fields, tuple(made.values()), time) if fields else None


def _by_part(held: _Claims, *, topic: bool) -> dict[Part, dict[Rank, list[_CurrentClaim]]]:
    """The claims on each part by rank, the earlier first."""
    found: dict[Part, dict[Rank, list[_CurrentClaim]]] = {}
    for one in sorted(held.values(), key=_precedence):
        for part in parts(one.claim.fields, topic=topic):
            found.setdefault(part, {}).setdefault(one.claim.rank, []).append(one)
    order: tuple[Part, ...] = ("whole", "value", "key")
    return {part: found[part] for part in order if part in found}


def _precedence(one: _CurrentClaim) -> tuple[int, int, bytes, bytes]:
    return one.since_end, one.claim.first, one.shape, _looks(one.claim)


def _part(one: _CurrentClaim, part: Part, *, topic: bool) -> tuple[Field, ...]:
    return parts(one.claim.fields, topic=topic).get(part, ())


def _whole(one: _CurrentClaim) -> Claim:
    """The claim as it was made, with all its parts."""
    return one.claim.of or one.claim


def _merged(
    schemas: Iterable[tuple[Field, ...]], before: Types, prefix: str = ""
) -> tuple[Field, ...]:
    """The union of some fields; of two types the one that held before, else that was first."""
    kept: dict[str, Field] = {}
    for fields in schemas:
        for field in fields:
            seen = kept.get(field.name)
            kept[field.name] = field if seen is None else _joined(seen, field, before, prefix)
    return tuple(kept.values())


def _joined(one: Field, other: Field, before: Types, prefix: str) -> Field:
    if one == other:
        return one
    path = f"{prefix}{one.name}"
    same = not (one.type and other.type) or normal(one.type) == normal(other.type)
    if not same and before.get(path) == normal(other.type):
        one, other = other, one
    return msgspec.structs.replace(
        one,
        type=one.type or other.type,
        description=one.description or other.description,
        fields=_merged((one.fields, other.fields), before, f"{path}.") if same else one.fields,
    )


_Typed = tuple[_CurrentClaim, Types]


def _typed(claims: Iterable[_CurrentClaim], part: Part, *, topic: bool) -> list[_Typed]:
    return [(one, types(_part(one, part, topic=topic))) for one in claims]


def _first_types(claims: Iterable[_Typed]) -> dict[str, tuple[_CurrentClaim, str]]:
    """Of each field the first claim that says its type, or has it at all, and that type."""
    known: dict[str, tuple[_CurrentClaim, str]] = {}
    for one, theirs in claims:
        for path, kind in theirs.items():
            if path not in known or not known[path][1]:
                known[path] = one, kind
    return known


def _contradictions(
    kind: Literal["type", "source"], deciding: list[_Typed], claims: list[_Typed]
) -> Iterator[ClaimConflict]:
    """Each claim beside the first ones that decide and have a field of it with another type.

    Of a field that none of them has, beside the first of all.
    """
    known = _first_types(deciding)
    for other, theirs in claims:
        wrong: dict[int, tuple[_CurrentClaim, list[str]]] = {}
        for path in sorted(theirs, key=lambda path: (path not in known, path)):
            one, first = known.get(path, (deciding[0][0], ""))
            if path not in known or (first and theirs[path] and first != theirs[path]):
                wrong.setdefault(id(one), (one, []))[1].append(path)
        for one, paths in islice(wrong.values(), BESIDE):
            yield _conflict(kind, one, other, tuple(paths))


def _fields_apart(claims: list[_Typed]) -> Iterator[ClaimConflict]:
    """The first claim beside each other one that has other fields and no other types."""
    for other, theirs in claims[1:]:
        one, base = claims[0]
        wrong = tuple(sorted(base.keys() ^ theirs.keys()))
        if wrong and not any(
            base[path] and theirs[path] and base[path] != theirs[path]
            for path in base.keys() & theirs.keys()
        ):
            yield _conflict("writers", one, other, wrong)


def _conflict(
    kind: Literal["type", "writers", "source"],
    one: _CurrentClaim,
    other: _CurrentClaim,
    fields: tuple[str, ...],
) -> ClaimConflict:
    return ClaimConflict(kind, max(one.since, other.since), _whole(one), _whole(other), fields)
