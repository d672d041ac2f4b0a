"""Whom a change hits: truth by hand, and the same as a naive search for everything it follows to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import ColumnUse, Effect, Impact, Passage, PlannedChange, impact
from headwater.lineage.columns import WHOLE
from headwater.lineage.model import NULL_TEST_ONLY, Transformation
from tests.properties import examples

from .nodes import Node, dataset, job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

IDENTITY = Transformation("DIRECT", "IDENTITY")
CHANGED = Transformation("DIRECT", "TRANSFORMATION")
SUM = Transformation("DIRECT", "AGGREGATION")
FILTER = Transformation("INDIRECT", "FILTER")
NULL_TEST = Transformation("INDIRECT", "FILTER", NULL_TEST_ONLY)
CONDITION = Transformation("INDIRECT", "CONDITIONAL")
DROP = PlannedChange("drop", "price")


class Estate:
    """Jobs and what they do with columns, written down by hand."""

    def __init__(
        self, *passages: Passage[Node], types: dict[str, dict[str, str]] | None = None
    ) -> None:
        self.passages_by_origin: dict[Node, list[Passage[Node]]] = defaultdict(list)
        for passage in passages:
            self.passages_by_origin[passage.origin].append(passage)
        self._types = {dataset(name): kinds for name, kinds in (types or {}).items()}
        self.asked = 0

    def passages(self, datasets: Collection[Node]) -> Iterable[Passage[Node]]:
        self.asked += 1
        return [one for each in sorted(datasets) for one in self.passages_by_origin[each]]

    def types(self, datasets: Collection[Node]) -> dict[Node, dict[str, str]]:
        return {one: self._types[one] for one in datasets if one in self._types}


def reads(
    name: str, origin: str, target: str | None, *uses: tuple[str, str, Transformation], **more: Any
) -> Passage[Node]:
    """A job that reads columns of one dataset into another; without uses nothing is known of them."""
    known = tuple(ColumnUse(column, output, (how,)) for column, output, how in uses)
    into = dataset(target) if target else None
    return Passage(job(name), dataset(origin), into, known or None, **more)


def connector(name: str, origin: str, target: str, *columns: str, **more: Any) -> Passage[Node]:
    """A connector that hands on these columns as they are."""
    uses = [(column, column, IDENTITY) for column in columns]
    return reads(name, origin, target, *uses, by_schema=True, **more)


def effects(found: Impact[Node]) -> dict[str, str]:
    named = {one.job.name: one.effect.value for one in found.struck}
    return named | {one.name: "unaffected" for one in found.unaffected}


def columns(found: Impact[Node]) -> dict[str, str]:
    return {
        f"{one.dataset.name}.{one.column or '*'}": one.effect.value
        for one in found.columns
        if one.effect is not Effect.ROWS
    }


def rows(found: Impact[Node]) -> set[str]:
    return {one.dataset.name for one in found.columns if one.effect is Effect.ROWS}


PIPELINE = (
    connector("source", "db", "topic", "order_id", "price", named=frozenset({"order_id"})),
    connector("sink", "topic", "landing", "order_id", "price"),
    reads("ingest", "topic", "lake", ("order_id", "order_id", IDENTITY),
          ("price", "price", IDENTITY), ("order_id", WHOLE, FILTER)),
    reads("stats", "lake", "totals", ("price", "total", SUM), ("order_id", WHOLE, FILTER)),
    reads("ids", "lake", "ids", ("order_id", "order_id", IDENTITY)),
    reads("report", "totals", "report", ("total", "total", IDENTITY)),
)  # fmt: skip


def test_the_first_job_that_names_the_column_breaks_and_what_it_derives_changes() -> None:
    found = impact(Estate(*PIPELINE), dataset("db"), [DROP])
    assert effects(found) == {
        "source": "carries",
        "sink": "carries",
        "ingest": "breaks",
        "stats": "changes",
        "report": "changes",
        "ids": "unaffected",
    }
    assert columns(found) == {
        "topic.price": "carries",
        "landing.price": "carries",
        "lake.price": "changes",
        "totals.total": "changes",
        "report.total": "changes",
    }
    assert rows(found) == set()
    assert (found.jobs, found.known, found.cut) == (6, 6, False)


def test_a_connector_that_names_the_column_breaks() -> None:
    found = impact(Estate(*PIPELINE), dataset("db"), [PlannedChange("drop", "order_id")])
    assert effects(found)["source"] == "breaks"
    assert effects(found)["ingest"] == "changes"
    assert rows(found) == {"lake", "ids", "totals", "report"}


def test_the_path_leads_from_the_changed_column_to_the_job() -> None:
    found = impact(Estate(*PIPELINE), dataset("db"), [DROP])
    (stats,) = [one for one in found.struck if one.job.name == "stats"]
    assert [(leg.dataset.name, leg.column, leg.job.name) for leg in stats.path] == [
        ("db", "price", "source"),
        ("topic", "price", "ingest"),
        ("lake", "price", "stats"),
    ]
    assert stats.path[-1].transformations == (SUM,)


def test_what_only_decides_about_rows_breaks_its_job_and_touches_the_rows_behind_it() -> None:
    found = impact(
        Estate(
            reads("filter", "db", "cheap", ("id", "id", IDENTITY), ("price", WHOLE, FILTER)),
            reads("copy", "cheap", "copy", ("id", "id", IDENTITY)),
            reads("blind", "cheap", "other"),
        ),
        dataset("db"),
        [DROP],
    )
    assert effects(found) == {"filter": "breaks", "copy": "rows", "blind": "rows"}
    assert rows(found) == {"cheap", "copy", "other"}
    assert columns(found) == {}


@pytest.mark.parametrize(
    ("change", "effect", "behind"),
    [
        (DROP, "breaks", {"sold"}),
        (PlannedChange("rename", "price", "cost"), "breaks", {"sold"}),
        (PlannedChange("type", "price", "string"), "unaffected", set()),
        (PlannedChange("nullable", "price"), "rows", {"sold"}),
    ],
)
def test_a_test_for_null_cares_about_the_column_and_not_about_its_type(
    change: PlannedChange, effect: str, behind: set[str]
) -> None:
    estate = Estate(
        reads("sold", "db", "sold", ("id", "id", IDENTITY), ("price", WHOLE, NULL_TEST)),
        types={"db": {"price": "int"}},
    )
    found = impact(estate, dataset("db"), [change])
    assert (effects(found), rows(found)) == ({"sold": effect}, behind)
    record = reads("all", "db", "all", ("value", WHOLE, NULL_TEST), from_topic=True)
    assert effects(impact(Estate(record), dataset("db"), [change])) == {"all": "unaffected"}


def test_a_job_that_is_unknown_is_not_known_for_what_else_holds_of_it() -> None:
    """Its rows are decided, or a column that it reads changes: nobody can tell whether it breaks."""
    group = Transformation("INDIRECT", "GROUP_BY")
    types = {"db": {"price": "int"}, "agg": {"g": "bigint"}}
    for how in ((IDENTITY,), (IDENTITY, group), (group, IDENTITY)):
        copied = Passage(job("agg"), dataset("db"), dataset("agg"),
                         (ColumnUse("price", "g", how),))  # fmt: skip
        estate = Estate(copied, reads("blind", "agg", "dark"), types=types)
        found = impact(estate, dataset("db"), [PlannedChange("type", "price", "bigint")])
        assert effects(found) == {"agg": "changes", "blind": "unknown"}, how
        assert columns(found) == {"agg.g": "changes", "dark.*": "unknown"}
        assert rows(found) == ({"agg", "dark"} if group in how else set())
    half = reads("half", "db", "out", ("price", "p", SUM), unknown=("score",))
    behind = reads("behind", "out", "end", ("p", "p", SUM), ("score", "p", SUM))
    found = impact(Estate(half, behind), dataset("db"), [DROP])
    assert effects(found) == {"half": "breaks", "behind": "unknown"}


def test_a_use_is_judged_by_each_way_in_which_it_takes_its_column() -> None:
    """A copy that is grouped by, too, still has to fit; a record that is filtered is still copied."""
    group = Transformation("INDIRECT", "GROUP_BY")
    copied = Passage(job("copy"), dataset("db"), dataset("out"),
                     (ColumnUse("price", "price", (IDENTITY, group)),))  # fmt: skip
    estate = Estate(copied, types={"db": {"price": "int"}, "out": {"price": "int"}})
    found = impact(estate, dataset("db"), [PlannedChange("type", "price", "bigint")])
    assert effects(found) == {"copy": "breaks"}
    assert found.struck[0].path[0].transformations == (IDENTITY, group)
    mirror = Passage(job("mirror"), dataset("db"), dataset("out"),
                     (ColumnUse("value", "value", (IDENTITY, FILTER)),),
                     from_topic=True, to_topic=True)  # fmt: skip
    use = reads("use", "out", "end", ("price", "p", SUM), from_topic=True)
    found = impact(Estate(mirror, use), dataset("db"), [DROP])
    assert effects(found) == {"mirror": "rows", "use": "breaks"}


def test_rows_that_an_unknown_column_decides_are_unknown_to_all_who_read_them() -> None:
    found = impact(
        Estate(
            reads("blind", "db", "made", ("id", "id", IDENTITY), unknown=("score",)),
            reads("best", "made", "best", ("id", "id", IDENTITY), ("score", "id", FILTER)),
            reads("ids", "best", "ids", ("other", "other", IDENTITY)),
        ),
        dataset("db"),
        [DROP],
    )
    assert effects(found) == {"blind": "unknown", "best": "unknown", "ids": "unknown"}
    assert columns(found)["best.*"] == "unknown"


def test_a_condition_inside_a_column_changes_that_column_and_no_rows() -> None:
    label = reads("label", "db", "labels", ("price", "label", CONDITION))
    found = impact(Estate(label), dataset("db"), [DROP])
    assert (columns(found), rows(found)) == ({"labels.label": "changes"}, set())


def test_what_nobody_can_judge_is_unknown_with_all_behind_it() -> None:
    found = impact(
        Estate(
            reads("blind", "db", "dark"),
            reads("behind", "dark", "out", ("x", "x", IDENTITY)),
            reads("group", "db", None),
            reads("trimmed", "db", "half", ("id", "id", IDENTITY), trimmed=True),
            reads("udf", "db", "made", ("id", "id", IDENTITY), unknown=("score",)),
            reads("scores", "made", "best", ("score", "score", IDENTITY)),
            reads("made_ids", "made", "ids", ("id", "id", IDENTITY)),
        ),
        dataset("db"),
        [DROP],
    )
    assert effects(found) == {
        "blind": "unknown",
        "behind": "unknown",
        "group": "unknown",
        "trimmed": "unknown",
        "udf": "unknown",
        "scores": "unknown",
        "made_ids": "unaffected",
    }
    assert columns(found) == {
        "dark.*": "unknown",
        "out.*": "unknown",
        "half.*": "unknown",
        "made.score": "unknown",
        "best.score": "unknown",
    }
    assert (found.jobs, found.known) == (7, 4)


def test_an_answer_that_was_cut_calls_nobody_unaffected() -> None:
    wide = [reads(f"job{n}", "db", f"out{n}", ("price", "p", SUM)) for n in range(9)]
    aside = reads("aside", "db", "ids", ("id", "id", IDENTITY))
    whole = impact(Estate(*wide, aside), dataset("db"), [DROP])
    assert (effects(whole)["aside"], whole.cut) == ("unaffected", False)
    cut = impact(Estate(*wide, aside), dataset("db"), [DROP], limit=4)
    assert (effects(cut)["aside"], cut.cut, cut.unaffected) == ("unknown", True, ())
    near = impact(Estate(*PIPELINE), dataset("db"), [DROP], depth=1)
    assert (near.cut, near.unaffected) == (True, ())


def test_a_deleted_dataset_breaks_every_reader_even_one_whose_columns_are_not_known() -> None:
    found = impact(
        Estate(
            connector("sink", "db", "copy", "price"),
            reads("blind", "db", "dark"),
            reads("count", "db", "counts", ("price", WHOLE, FILTER)),
            Passage(job("counter"), dataset("db"), dataset("n"), ()),
            reads("behind", "copy", "b", ("price", "p", SUM)),
        ),
        dataset("db"),
        [PlannedChange("delete")],
    )
    assert effects(found) == {
        "sink": "breaks", "blind": "breaks", "count": "breaks", "counter": "breaks",
        "behind": "changes",
    }  # fmt: skip
    assert columns(found) == {"copy.price": "changes", "dark.*": "unknown", "b.p": "changes"}
    assert rows(found) == {"counts"}


@pytest.mark.parametrize(
    ("new", "how", "effect"),
    [
        ("long", IDENTITY, "changes"),
        ("string", IDENTITY, "breaks"),
        ("decimal(10,2)", IDENTITY, "breaks"),
        ("double", SUM, "changes"),
        ("string", SUM, "breaks"),
        ("string", FILTER, "breaks"),
    ],
)
def test_a_new_type_breaks_the_uses_that_it_does_not_fit(
    new: str, how: Transformation, effect: str
) -> None:
    estate = Estate(
        connector("sink", "db", "topic", "n"),
        reads("use", "topic", "out", ("n", "n", how)),
        types={"db": {"n": "int"}, "topic": {"n": "INTEGER"}, "out": {"n": "bigint"}},
    )
    found = impact(estate, dataset("db"), [PlannedChange("type", "n", new)])
    assert effects(found) == {"sink": "carries", "use": effect}


def test_a_new_type_at_a_job_whose_types_are_not_known_is_unknown() -> None:
    estate = Estate(
        connector("sink", "db", "topic", "n"),
        reads("use", "topic", "out", ("n", "n", IDENTITY)),
        types={"db": {"n": "int"}},
    )
    found = impact(estate, dataset("db"), [PlannedChange("type", "n", "long")])
    assert effects(found) == {"sink": "carries", "use": "unknown"}


def test_a_column_that_may_be_missing_is_unknown_to_those_who_name_it() -> None:
    found = impact(Estate(*PIPELINE), dataset("db"), [PlannedChange("nullable", "price")])
    assert effects(found)["source"] == "carries"
    assert effects(found)["ingest"] == "unknown"


def test_records_that_are_handed_on_as_a_whole_carry_what_is_in_them() -> None:
    estate = Estate(
        reads("mirror", "topic", "copy", ("value", "value", IDENTITY), from_topic=True, to_topic=True),
        reads("parse", "topic", "parsed", ("value", "text", CHANGED), from_topic=True),
        reads("check", "topic", "checked", ("value", WHOLE, CONDITION), from_topic=True),
        reads("use", "copy", "out", ("price", "p", SUM), from_topic=True),
        reads("keys", "topic", "ids", ("key", "key", CHANGED), from_topic=True),
    )  # fmt: skip
    found = impact(estate, dataset("topic"), [DROP])
    assert effects(found) == {
        "mirror": "carries", "parse": "unknown", "check": "rows", "use": "breaks",
        "keys": "unaffected",
    }  # fmt: skip
    assert columns(found)["copy.price"] == "carries"
    assert rows(found) == {"checked"}
    found = impact(estate, dataset("topic"), [PlannedChange("drop", "key")])
    assert {name for name, effect in effects(found).items() if effect != "unaffected"} == {"keys"}


def test_a_record_around_a_column_and_the_columns_inside_one() -> None:
    estate = Estate(
        reads("whole", "db", "copy", ("address", "home", IDENTITY)),
        reads("city", "db", "cities", ("address.city", "city", IDENTITY)),
        reads("zip", "db", "codes", ("address.zip", "zip", IDENTITY)),
        reads("value", "db", "values", ("value", "v", IDENTITY)),
        reads("homes", "copy", "homes", ("home.city", "city", IDENTITY)),
    )
    found = impact(estate, dataset("db"), [PlannedChange("drop", "address.city")])
    assert effects(found) == {
        "whole": "carries", "city": "breaks", "zip": "unaffected", "value": "unaffected",
        "homes": "breaks",
    }  # fmt: skip
    found = impact(estate, dataset("db"), [PlannedChange("drop", "address")])
    assert {name for name, effect in effects(found).items() if effect == "breaks"} == {
        "whole", "city", "zip",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("to", "effect"),
    [("int", "breaks"), ("string", "breaks"), ("struct<city:int>", "unknown"), ("own", "unknown")],
)
def test_a_part_of_a_column_goes_where_the_columns_new_type_holds_nothing(
    to: str, effect: str
) -> None:
    """Whatever the type of the part: an int that was a struct has no city that is an int."""
    held = {"address": "struct", "address.city": "int"}
    estate = Estate(
        reads("city", "db", "cities", ("address.city", "city", IDENTITY)),
        reads("sum", "db", "sums", ("address.city", "n", SUM)),
        reads("sold", "db", "sold", ("address.city", WHOLE, NULL_TEST)),
        connector("sink", "db", "topic", "address", "address.city"),
        reads("behind", "topic", "out", ("address.city", "city", SUM)),
        types={"db": held, "topic": held, "cities": {"city": "int"}, "sums": {"n": "int"}},
    )
    found = impact(estate, dataset("db"), [PlannedChange("type", "address", to)])
    sold = "breaks" if effect == "breaks" else "unaffected"
    assert effects(found) == {
        "city": effect, "sum": effect, "sold": sold, "sink": "carries", "behind": effect,
    }  # fmt: skip


def test_a_new_type_of_a_part_is_handed_on_with_the_whole() -> None:
    held = {"address": "struct", "address.city": "int"}
    estate = Estate(
        reads("whole", "db", "copy", ("address", "address", IDENTITY)),
        reads("sum", "copy", "sums", ("address.city", "n", SUM)),
        types={"db": held, "copy": held, "sums": {"n": "int"}},
    )
    for to, effect in (("bigint", "changes"), ("string", "breaks")):
        found = impact(estate, dataset("db"), [PlannedChange("type", "address.city", to)])
        assert effects(found) == {"whole": "carries", "sum": effect}
    mirror = reads("mirror", "in", "out", ("value", "value", IDENTITY), from_topic=True, to_topic=True)  # fmt: skip
    use = reads("use", "out", "sums", ("price", "n", SUM), from_topic=True)
    types = {"in": {"price": "int"}, "out": {"price": "int"}}
    found = impact(Estate(mirror, use, types=types), dataset("in"), [PlannedChange("type", "price", "string")])  # fmt: skip
    assert effects(found) == {"mirror": "carries", "use": "breaks"}


def test_a_connector_that_names_a_part_of_the_column_breaks() -> None:
    sink = connector("sink", "db", "topic", "address", named=frozenset({"address.city"}))
    for column, effect in (("address", "breaks"), ("address.city", "breaks"), ("address.zip", "carries")):  # fmt: skip
        found = impact(Estate(sink), dataset("db"), [PlannedChange("drop", column)])
        assert effects(found) == {"sink": effect}, column


def test_a_job_counts_once_by_the_worst_of_several_changes() -> None:
    changes = [PlannedChange("drop", "order_id"), DROP]
    found = impact(Estate(*PIPELINE), dataset("db"), changes)
    worst = {one.job.name: (one.effect.value, one.change.column) for one in found.struck}
    assert worst["source"] == ("breaks", "order_id")
    assert worst["ingest"] == ("breaks", "price")
    assert effects(found)["ids"] == "changes"


def test_the_estate_is_asked_once_for_each_step_and_dataset() -> None:
    estate = Estate(*PIPELINE)
    impact(estate, dataset("db"), [DROP, PlannedChange("rename", "price", "cost")])
    assert estate.asked == 5  # db; topic; landing and lake; totals; report


def test_another_column_of_the_dataset_itself_is_in_the_answer() -> None:
    use = ColumnUse("a", "b", (IDENTITY,))
    table = dataset("t")
    again = Passage(job("copy"), table, table, (use,), by_schema=True)
    found = impact(Estate(again), table, [PlannedChange("drop", "a")])
    assert [(one.column, one.effect) for one in found.columns] == [("b", Effect.CARRIES)]


# Everything that a change follows to, found without a walk: facts are added until none is new.

NAMES = ("a", "b", "c")
HOW = st.sampled_from([IDENTITY, CHANGED, SUM, FILTER, CONDITION])
USE = st.builds(
    ColumnUse,
    st.sampled_from(NAMES),
    st.sampled_from((*NAMES, WHOLE)),
    st.lists(HOW, min_size=1, max_size=2).map(tuple),
)


@st.composite
def estates(draw: st.DrawFn) -> list[Passage[Node]]:
    made = {}
    for number in range(draw(st.integers(1, 8))):
        origin, target = draw(st.tuples(st.integers(0, 4), st.integers(0, 5)))
        uses = draw(st.none() | st.lists(USE, max_size=3))
        made[number % 6, origin, target] = Passage(
            job(f"j{number % 6}"),
            dataset(f"d{origin}"),
            dataset(f"d{target}") if target < 5 else None,
            None if uses is None else tuple(uses),
            tuple(draw(st.sets(st.sampled_from(NAMES), max_size=1))),
            trimmed=draw(st.booleans()) and draw(st.booleans()),
            by_schema=draw(st.booleans()),
            named=frozenset(draw(st.sets(st.sampled_from(NAMES), max_size=1))),
        )
    return list(made.values())


Fact = tuple[str, str, str]
"""What holds (`carries`, `changes`, `unknown`, `rows`) of which column of which dataset."""


def follow(fact: Fact, one: Passage[Node]) -> Iterable[tuple[str, Fact | None]]:
    """The effect on a job that reads what a fact is about, and the fact behind it."""
    what, where, column = fact
    if one.origin.name != where:
        return
    to = one.target.name if one.target else ""
    if what == "rows":
        yield "rows", ("rows", to, "")
        return
    if one.uses is None or (what == "unknown" and not column):
        yield "unknown", ("unknown", to, "")
        return
    if one.trimmed:
        yield "unknown", ("unknown", to, "")
    for output in one.unknown:
        yield "unknown", ("unknown", to, output)
    for use in one.uses:
        for how in use.transformations if use.column == column else ():
            yield from follow_use(what, one, use, how)


def follow_use(
    what: str, one: Passage[Node], use: ColumnUse, how: Transformation
) -> Iterable[tuple[str, Fact]]:
    """The same, of one way in which a job takes a column."""
    to = one.target.name if one.target else ""
    into_rows = use.output == WHOLE or how is FILTER
    if what == "unknown":
        yield "unknown", ("unknown", to, "" if into_rows else use.output)
    elif what == "changes":
        yield "changes", ("rows", to, "") if into_rows else ("changes", to, use.output)
    elif one.by_schema and use.column not in one.named:
        yield "carries", ("rows", to, "") if into_rows else ("carries", to, use.output)
    else:
        yield "breaks", ("rows", to, "") if into_rows else ("changes", to, use.output)


ORDER = [effect.value for effect in Effect]


@examples(1_000)
@given(estates())
def test_impact_is_what_a_naive_search_reaches(passages: list[Passage[Node]]) -> None:
    facts: set[Fact] = {("carries", "d0", "a")}
    hits: dict[str, set[str]] = defaultdict(set)
    grown = True
    while grown:
        before = len(facts)
        for fact in sorted(facts):
            for one in passages:
                for effect, behind in follow(fact, one):
                    hits[one.job.name].add(effect)
                    if behind is not None and behind[1]:
                        facts.add(behind)
        grown = len(facts) > before
    found = impact(Estate(*passages), dataset("d0"), [PlannedChange("drop", "a")])
    worst = {name: min(some, key=ORDER.index) for name, some in hits.items()}
    assert {one.job.name: one.effect.value for one in found.struck} == worst
    seen = {where for _, where, _ in facts}
    readers = {one.job.name for one in passages if one.origin.name in seen}
    assert {one.name for one in found.unaffected} == readers - worst.keys()
    told = {
        ("rows" if one.effect is Effect.ROWS else "", one.dataset.name, one.column)
        for one in found.columns
    }
    expected = {("rows" if what == "rows" else "", where, name) for what, where, name in facts}
    own = ("", "d0", "a")
    assert told - {own} == expected - {own}


@given(estates(), st.integers(1, 6), st.integers(1, 3))
def test_unknown_is_never_unaffected_however_much_is_cut(
    passages: list[Passage[Node]], limit: int, depth: int
) -> None:
    whole = impact(Estate(*passages), dataset("d0"), [PlannedChange("drop", "a")])
    cut = impact(
        Estate(*passages), dataset("d0"), [PlannedChange("drop", "a")], limit=limit, depth=depth
    )
    hit = {one.job for one in whole.struck}
    assert not hit & set(cut.unaffected)
    blind = {one.job for one in passages if one.uses is None and one.origin == dataset("d0")}
    assert not blind & set(cut.unaffected)
    if cut.cut:
        assert not cut.unaffected
    else:
        assert effects(cut) == effects(whole)


GROUP = Transformation("INDIRECT", "GROUP_BY")
TYPE = st.sampled_from(["int", "bigint", "string"])
CHANGE = st.one_of(
    st.sampled_from(
        [
            PlannedChange("drop", "a"),
            PlannedChange("rename", "a", "x"),
            PlannedChange("nullable", "a"),
            PlannedChange("delete"),
        ]
    ),
    TYPE.map(lambda to: PlannedChange("type", "a", to)),
)


@examples(3_000)
@given(
    estates(),
    CHANGE,
    st.dictionaries(
        st.sampled_from([f"d{n}" for n in range(5)]), st.dictionaries(st.sampled_from(NAMES), TYPE)
    ),
    st.data(),
)
def test_one_more_influence_never_gives_a_milder_answer(
    passages: list[Passage[Node]],
    change: PlannedChange,
    types: dict[str, dict[str, str]],
    data: st.DataObject,
) -> None:
    before = impact(Estate(*passages, types=types), dataset("d0"), [change])
    at = data.draw(st.integers(0, len(passages) - 1))
    one, how = passages[at], data.draw(st.sampled_from([FILTER, GROUP, CONDITION, NULL_TEST]))
    if one.uses is None:
        return  # what a job reports for the first time may well clear it
    uses = list(one.uses)
    joined: bool = data.draw(st.booleans())
    if uses and joined:
        place = data.draw(st.integers(0, len(uses) - 1))
        uses[place] = uses[place]._replace(transformations=(*uses[place].transformations, how))
    else:
        uses.append(data.draw(USE)._replace(transformations=(how,)))
    more = [*passages[:at], replace(one, uses=tuple(uses)), *passages[at + 1 :]]
    after = impact(Estate(*more, types=types), dataset("d0"), [change])
    then, now = effects(before), effects(after)
    assert {
        name for name, effect in then.items() if ORDER.index(now[name]) > ORDER.index(effect)
    } == set()
    bad = [sum(one in ("breaks", "unknown") for one in some.values()) for some in (then, now)]
    assert bad[0] <= bad[1]
    told = [
        {(c.dataset, c.column, c.effect is Effect.ROWS) for c in some.columns}
        for some in (before, after)
    ]
    assert told[0] <= told[1]


def test_a_column_that_its_dataset_is_known_to_lack_is_not_told() -> None:
    whole = reads("letters", "orders", "dead", ("value", "value", IDENTITY), from_topic=True, to_topic=True)  # fmt: skip
    assert columns(impact(Estate(whole), dataset("orders"), [DROP])) == {"dead.price": "carries"}
    known = Estate(whole, types={"dead": {"value": "bytes", "key.reason": "string"}})
    found = impact(known, dataset("orders"), [DROP])
    assert (columns(found), effects(found)) == ({}, {"letters": "carries"})


def test_the_jobs_of_which_no_columns_are_known_are_named() -> None:
    copy, look = connector("copy", "orders", "b", "price"), reads("look", "orders", None)
    found = impact(Estate(copy, look), dataset("orders"), [DROP])
    assert (found.jobs, found.known, found.blind) == (2, 1, (job("look"),))
