"""One schema from many claims: ranks, unions, ends, findings, and no influence of their order."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.schema.claims import (
    BESIDE,
    Claim,
    Ends,
    Rank,
    ResolvedSchema,
    current,
    findings,
    history_and_current,
    shape,
    types,
)
from headwater.lineage.schema.model import Field

if TYPE_CHECKING:
    from collections.abc import Iterable


def fields(text: str) -> tuple[Field, ...]:
    """`id int, name` as fields."""
    pairs = [(*item.split(), "")[:2] for item in text.split(", ")]
    return tuple(Field(name, kind) for name, kind in pairs)


def claim(rank: Rank, author: str, time: int, text: str, last: int = 0, **more: Any) -> Claim:
    return Claim(rank, author, time, last or time, fields(text), **more)


def history(claims: Iterable[Claim], ends: Ends, **more: Any) -> list[ResolvedSchema]:
    return history_and_current(claims, ends, **more)[0]


def told(versions: list[ResolvedSchema]) -> list[tuple[int, str]]:
    return [(v.time, shown(v)) for v in versions]


def shown(version: ResolvedSchema) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types(version.fields).items())


def ended(times: Iterable[int] = ()) -> Ends:
    """Ends at these moments; at every third the dataset was dropped or created."""
    found = tuple(times)
    return Ends(found, [time for time in found if time % 3 == 0])


def versions(*claims: Claim, ends: tuple[int, ...] = (), topic: bool = False) -> list[Any]:
    return told(history(claims, ended(ends), topic=topic))


W, R, S = Rank.WRITER, Rank.READER, Rank.SOURCE


def test_a_reader_does_not_take_away_what_the_writer_reports() -> None:
    made = [claim(W, "connector", t, "id long, key string", run="c") for t in (0, 15, 30)]
    read = [claim(R, "stream", t, "id int, name string") for t in (5, 20, 35)]
    assert versions(*made, *read, topic=True) == [(0, "id long, key string")]


def test_each_part_of_a_topic_has_its_own_best_rank() -> None:
    known = claim(S, "orders-value", 9, "id long, price double", version=1)
    made = claim(W, "connector", 0, "id int, key string", run="c")
    assert versions(made, known, topic=True) == [(0, "id long, price double, key string")]
    assert versions(made, known, topic=False) == [(0, "id long, price double")]


def test_a_better_rank_corrects_a_guess_and_is_no_change() -> None:
    guess = [claim(W, "sink", t, "price decimal(10,2)", run="s") for t in (0, 10)]
    answer = [claim(S, "db.orders", t, "price decimal(38,2)") for t in (1, 11)]
    assert versions(*guess, *answer) == [(0, "price decimal(38,2)")]
    early = [claim(W, "sink", t, "price int", run="r") for t in (0, 3)]
    late = [
        msgspec.structs.replace(c, first=c.first + 9, last=c.last + 9) for c in (*guess, *answer)
    ]
    assert versions(*early, *late) == [(0, "price int"), (9, "price decimal(38,2)")]


def test_a_table_that_is_made_anew_takes_the_place_of_the_old_one() -> None:
    """Its uuid is another one, and the numbers of its schemas begin anew."""
    old = [
        claim(S, "catalog 11-aa", 0, "id int", last=6, version=1),
        claim(S, "catalog 11-aa", 6, "id int, was int", last=9, version=3),
    ]
    new = claim(S, "catalog 22-bb", 10, "id int, name string", last=30, version=1)
    late = claim(S, "catalog 11-aa", 12, "id int, was int, more int", last=20, version=5)
    stream = claim(W, "stream", 1, "id int, was int", last=20, run="s")
    assert versions(*old, new, late, stream) == [
        (0, "id int"),
        (6, "id int, was int"),
        (10, "id int, name string"),
    ]


def test_what_was_answered_of_a_dataset_ends_with_the_dataset() -> None:
    asked = claim(S, "registry orders-value", 0, "a int", last=5, version=7)
    plain = claim(W, "writer", 12, "b int", run="w")
    assert versions(asked, plain, ends=(10,)) == [(0, "a int")], "overwritten: the answer stays"
    assert versions(asked, plain, ends=(9,)) == [(0, "a int"), (12, "b int")], "made anew"
    again = claim(S, "registry orders-value", 14, "c int", version=1)
    assert versions(asked, again, ends=(10,)) == [(0, "a int")]
    assert versions(asked, again, ends=(9,)) == [(0, "a int"), (14, "c int")]
    still = msgspec.structs.replace(asked, last=20)
    assert versions(still, again, ends=(9,)) == [(0, "a int")], "asked again since: it is the same"


def test_what_the_better_rank_then_changes_is_a_version() -> None:
    known = [claim(S, "v", t, f"id long, c{n} int", version=n) for n, t in ((1, 5), (2, 9))]
    read = claim(R, "stream", 0, "id int")
    assert versions(read, *known, topic=True) == [(0, "id long, c1 int"), (9, "id long, c2 int")]


def test_a_registry_is_ordered_by_version_not_by_time() -> None:
    old = claim(S, "orders-value", 20, "id int", last=99, version=1)
    new = claim(S, "orders-value", 10, "id int, name string", version=2)
    assert versions(old, new) == [(10, "id int, name string")]


def test_several_subjects_are_a_union() -> None:
    one = claim(S, "Order", 0, "id long, price double", version=3)
    other = claim(S, "Refund", 5, "id long, reason string", version=1)
    assert versions(one, other, topic=True)[-1] == (5, "id long, price double, reason string")


def test_a_job_replaces_its_own_claim_and_others_add_up() -> None:
    assert versions(
        claim(W, "a", 0, "x int, y int", run="1"),
        claim(W, "a", 10, "x int", run="2"),
        claim(W, "b", 20, "z int", run="3"),
    ) == [(0, "x int, y int"), (10, "x int"), (20, "x int, z int")]


def test_spelling_order_and_descriptions_are_no_change() -> None:
    said = msgspec.structs.replace(fields("b string")[0], description="of the customer")
    again = Claim(W, "a", 5, 5, (said, *fields("a bigint")), "2")
    assert versions(claim(W, "a", 0, "a LONG, b text", run="1"), again) == [(0, "a long, b string")]
    found = current([again], ended(), topic=False)
    assert found is not None
    assert found.fields[0].description == "of the customer"


def test_overwriting_ends_what_others_wrote_before() -> None:
    runs = [(1, "a", "x int"), (5, "b", "y int"), (10, "a", "x int"), (15, "b", "y int")]
    claims = [claim(W, job, t, text, run=str(t)) for t, job, text in runs]
    assert versions(*claims, ends=(1, 5, 10, 15)) == [(t, text) for t, _, text in runs]
    assert versions(*claims) == [(1, "x int"), (5, "x int, y int")]


def test_what_is_still_written_after_an_alter_counts_on() -> None:
    stream = claim(W, "stream", 0, "x int", last=100, run="1")
    alter = claim(W, "alter", 50, "x int, y int", run="2")
    assert versions(stream, alter, ends=(50,)) == [(0, "x int"), (50, "x int, y int")]


def test_an_end_leaves_what_a_registry_and_a_person_declared() -> None:
    declared = claim(Rank.DECLARED, "", 0, "x int")
    assert versions(declared, ends=(10,)) == [(0, "x int")]
    assert current([declared], ended((10,)), topic=False) is not None
    assert current([claim(W, "a", 0, "x int")], ended((10,)), topic=False) is None


def test_a_conflict_of_types_is_a_finding_and_no_version() -> None:
    claims = [
        claim(W, "a", 0, "id int", run="1"),
        claim(W, "b", 5, "id long", run="2"),
        claim(W, "a", 9, "id int, n int", run="3"),
    ]
    assert versions(*claims) == [(0, "id int"), (9, "id int, n int")]
    (found,) = findings(claims, ended(), (), topic=False)
    assert (found.kind, found.since, found.fields) == ("type", 9, ("id",))
    assert {found.one.author, found.other.author} == {"a", "b"}


def test_a_conflict_of_types_is_a_finding_whether_the_first_claim_has_the_field_or_not() -> None:
    claims = [
        claim(W, "a", 0, "id int"),
        claim(W, "b", 5, "id int, x int"),
        claim(W, "c", 9, "id int, x text"),
    ]
    (found,) = findings(claims, ended(), (), topic=False)
    assert (found.kind, found.since, found.fields) == ("type", 9, ("x",))
    assert (found.one.author, found.other.author) == ("b", "c")


def test_writers_that_differ_are_a_finding_while_both_are_live() -> None:
    claims = [claim(W, "a", 0, "id int, x int"), claim(W, "b", 5, "id int, y int")]
    (found,) = findings(claims, ended(), {"a", "b"}, topic=False)
    assert (found.kind, found.since, found.fields) == ("writers", 5, ("x", "y"))
    assert not findings(claims, ended(), {"a"}, topic=False)


def test_a_writer_that_contradicts_the_registry_is_a_finding() -> None:
    known = claim(S, "orders-value", 3, "id long", version=1)
    writers = [claim(W, "right", 0, "id bigint"), claim(W, "wrong", 1, "id int, extra int")]
    (found,) = findings([known, *writers], ended(), (), topic=True)
    assert (found.kind, found.since, found.fields) == ("source", 3, ("id", "extra"))
    assert found.other.author == "wrong"


def test_a_writer_is_shown_beside_the_source_that_it_contradicts() -> None:
    sources = [claim(S, "a", 0, "id int"), claim(S, "b", 2, "x int"), claim(S, "c", 3, "u")]
    writers = [
        claim(W, "w", 1, "x text"),
        claim(W, "all", 5, "id text, x text, u int, v int"),
        claim(W, "right", 6, "id int, x int"),
    ]
    found = findings([*sources, *writers], ended(), (), topic=False)
    assert [(f.kind, f.since, f.one.author, f.other.author, f.fields) for f in found] == [
        ("source", 2, "b", "w", ("x",)),
        # That no source has a field, each could be shown for.
        ("source", 5, "a", "all", ("id", "v")),
        ("source", 5, "b", "all", ("x",)),
    ]


def test_of_hundreds_of_claims_that_contradict_each_other_each_is_shown_beside_a_few() -> None:
    every = ", ".join(f"c{n} text" for n in range(200))
    claims = [claim(W, f"a{n}", n, f"c{n} int") for n in range(200)]
    claims += [claim(W, f"b{n}", 200 + n, every) for n in range(200)]
    found = findings(claims, ended(), (), topic=False)
    assert len(found) == 200 * BESIDE
    assert {f.other.author for f in found} == {f"b{n}" for n in range(200)}


SHAPES = ("x int", "x long", "x int, y int", "key string, x int", "y text", "z.y int, x BIGINT")
OTHERS = ("x double", "y text, x int", "key int, y int")


def claims_of(shapes: tuple[str, ...]) -> st.SearchStrategy[list[Claim]]:
    made = st.builds(
        lambda rank, author, time, text, run, version: claim(
            rank,
            f"catalog {author}" if rank is S and run else author,
            time,
            text,
            run=f"{author}{run}" if rank is W else "",
            version=version if rank is S else 0,
        ),
        st.sampled_from(list(Rank)),
        st.sampled_from("ab"),
        st.integers(0, 12),
        st.sampled_from(shapes),
        st.integers(0, 2),
        st.integers(0, 3),
    )
    return st.lists(made, max_size=12)


some = claims_of(SHAPES)
moments = st.lists(st.integers(0, 12), max_size=3)


@given(st.data(), some, moments, st.booleans())
def test_order_and_repetition_change_nothing(
    data: st.DataObject, claims: list[Claim], ends: list[int], topic: bool
) -> None:
    again = data.draw(st.lists(st.sampled_from(claims), max_size=4)) if claims else []
    shuffled = data.draw(st.permutations([*claims, *again]))
    mixed = data.draw(st.permutations([*ends, *ends]))
    assert versions(*shuffled, ends=tuple(mixed), topic=topic) == versions(
        *claims, ends=tuple(ends), topic=topic
    )
    one, other = (
        [(f.kind, f.since, f.fields) for f in findings(c, ended(ends), "ab", topic=topic)]
        for c in (claims, shuffled)
    )
    assert one == other


@given(some, claims_of(OTHERS), moments, moments, st.booleans())
def test_later_claims_extend_a_history(
    old: list[Claim], new: list[Claim], ends: list[int], later: list[int], topic: bool
) -> None:
    since = 20
    new = [msgspec.structs.replace(c, first=c.first + since, last=c.last + since) for c in new]
    stops = [*ends, *(one + since for one in later)]
    early = history(old, ended(ends), topic=topic)
    rest = history([*old, *new], ended(stops), topic=topic, since=since, early=early)
    assert told(rest) == told(history([*old, *new], ended(stops), topic=topic))


@given(some, claims_of(OTHERS), moments, st.booleans())
def test_the_schema_now_is_the_same_in_one_pass(
    old: list[Claim], new: list[Claim], ends: list[int], topic: bool
) -> None:
    claims = [*old, *new]
    found, now = history_and_current(claims, ended(ends), topic=topic)
    before = found[-1].fields if found else ()
    alone = current(claims, ended(ends), topic=topic, before=before)
    assert (now and now.fields) == (alone and alone.fields)


def test_one_more_claim_costs_in_proportion_to_those_before() -> None:
    """Each author was once looked at for every claim of any other: quadratic for one event."""

    def seconds(count: int) -> float:
        made = [claim(W, str(n), n, f"id int, c{n} int") for n in range(count)]
        early = [ResolvedSchema(count - 2, fields("id int"), ())]
        taken = []
        for _ in range(3):
            began = time.thread_time()
            history(made, Ends(), topic=False, since=count - 1, early=early)
            taken.append(time.thread_time() - began)
        return min(taken)

    assert seconds(3_200) < 10 * seconds(800)


@given(some, moments)
def test_no_version_follows_its_equal(claims: list[Claim], ends: list[int]) -> None:
    shapes = [shape(v.fields) for v in history(claims, ended(ends), topic=False)]
    assert all(a != b for a, b in pairwise(shapes))
