"""A job that returns to a schema which it reported before has it in its history, in any order of events.

What the stores compute is compared with a plain function over all claims at once.
"""

from __future__ import annotations

import json
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.server.store import open_store
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.retention import retain
from headwater.server.store.read.timeline import members, schemas
from headwater.server.store.view import Bodies, View
from headwater.server.store.write import claim_periods
from headwater.server.store.write import schemas as schema_projection
from tests.properties import examples, orders

from .making import dataset, event, facet
from .schema_rules import (
    OF_TOPICS,
    TEXTS,
    A,
    B,
    C,
    Report,
    Said,
    history,
    link_to,
    linked,
    namespace_of,
)
from .test_schemas import KAFKA, STREAM, beat, fields, send, stamp, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.store import Store

A_AGAIN = [("00:00", A), ("00:20", B), ("00:40", A)]


def out(second: int, text: str, run: int = 1, name: str = "t") -> dict[str, Any]:
    return beat(second, "writer", run, outputs=[dataset(name, schema=fields(text))])


def returning() -> list[dict[str, Any]]:
    """A stream that writes A, then B, then A, each of them reported three times."""
    moments = {A: (0, 5, 10, 40, 45, 50), B: (20, 25, 30)}
    sent = [out(second, text) for text, found in moments.items() for second in found]
    return sorted(sent, key=lambda e: e["eventTime"])


def test_a_stream_that_returns_to_a_schema_has_three_versions(store: Store) -> None:
    for one in returning():
        send(store, one)
    assert told(store, "t") == A_AGAIN
    rebuild(store)
    assert told(store, "t") == A_AGAIN
    retain(store, time.time_ns() // 1000)
    rebuild(store)
    assert told(store, "t") == A_AGAIN


@pytest.mark.parametrize("streaming", [True, False])
def test_a_run_goes_on_that_noted_an_end_before_ends_had_marks(
    store: Store, streaming: bool
) -> None:
    job_facets = STREAM if streaming else {}

    def made(second: int, kind: str) -> dict[str, Any]:
        about = dataset(
            "t", schema=fields(A), lifecycleStateChange=facet(lifecycleStateChange=kind)
        )
        return event("RUNNING", second, job="j", run=1, job_facets=job_facets, outputs=[about])

    send(store, made(5, "ALTER"))
    for run in store.session.runs.values():
        for use in run.state.io.values():
            assert use.ended is not None
            del use.ended[2:]
    send(store, made(1, "ALTER"), made(6, "DROP"))
    assert told(store, "t") == [("00:01", A)]


def test_what_comes_late_divides_what_looked_like_one_stretch(store: Store) -> None:
    sent = returning()
    late = [
        one for one in sent if "b" in json.dumps(one["outputs"][0]["facets"]["schema"]["fields"])
    ]
    send(store, *[one for one in sent if one not in late])
    assert told(store, "t") == [("00:00", A)]
    send(store, beat(1, "other", 9, outputs=[dataset("gone")]))
    purge(store, PurgeTarget("dataset", "s3://lake", "gone"))  # a checkpoint, with the log kept
    send(store, late[1])
    assert told(store, "t") == [("00:00", A), ("00:25", B), ("00:40", A)]
    send(store, late[2], late[0])
    assert told(store, "t") == A_AGAIN
    rebuild(store)
    assert told(store, "t") == A_AGAIN


def test_the_log_of_a_job_that_reports_much_else_is_read_to_a_bound(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    records = claim_periods._records
    monkeypatch.setattr(claim_periods, "READ_AT_MOST", 64)

    def counted(*values: Any, **more: Any) -> Any:
        for record in records(*values, **more):
            read.append(1)
            yield record

    monkeypatch.setattr(claim_periods, "_records", counted)
    send(store, *[out(second, A) for second in (0, 3000)])
    send(store, *[beat(n, "writer", 1, outputs=[dataset("else")]) for n in range(1, 2900, 10)])
    send(store, out(1500, B))
    assert told(store, "t") == [("00:00", A), ("25:00", B), ("50:00", A)]
    assert len(read) == 2 * 64


def test_two_runs_of_a_job_at_once_do_not_alternate(store: Store) -> None:
    sides = ("inputs", "outputs")
    for second in range(0, 60, 10):
        for number, text in enumerate((A, B)):
            both = {side: [dataset(side, schema=fields(text))] for side in sides}
            send(store, beat(second + number, "job", 1 + number, **both))
    for side in sides:
        assert told(store, side) == [("00:00", A), ("00:01", B)]


def test_a_run_that_goes_on_after_an_alter_counts_again(store: Store) -> None:
    """Its claim began before that of the other run, which is not heard of since."""
    altered = dataset("t", lifecycleStateChange=facet(lifecycleStateChange="ALTER"))
    sent = [
        out(0, A, run=1),
        out(5, C, run=2),
        out(20, A, run=1),
        event("COMPLETE", 10, job="alter", run=3, outputs=[altered]),
    ]
    expected = [("00:00", A), ("00:05", C), ("00:10", A)]
    for number, order in enumerate(orders(range(4))):
        for one in order:
            moved = json.dumps(sent[one]).replace('"t"', f'"t{number}"')
            moved = moved.replace("-8000-", f"-{8000 + number}-")
            send(store, json.loads(moved))
        assert told(store, f"t{number}") == expected


def altered(second: int, namespace: str, job: str = "alter", run: int = 9) -> dict[str, Any]:
    about = dataset("t", namespace, lifecycleStateChange=facet(lifecycleStateChange="ALTER"))
    return beat(second, job, run, outputs=[about])


def said(
    second: int, text: str, namespace: str, job: str = "writer", run: int = 1, words: str = ""
) -> dict[str, Any]:
    found = fields(text)
    if words:
        found["fields"][0]["description"] = words
    return beat(second, job, run, outputs=[dataset("t", namespace, schema=found)])


def in_every_order(store: Store, sent: list[dict[str, Any]]) -> Iterator[str]:
    """Send events in every order, each time of datasets, jobs and runs of their own."""
    for number, order in enumerate(orders(sent)):
        for one in order:
            moved = json.dumps(one).replace('"t"', f'"t{number}"')
            moved = moved.replace('"writer"', f'"writer{number}"')
            send(store, json.loads(moved.replace("-8000-", f"-{8000 + number}-")))
        yield f"t{number}"


BOTH_PARTS = "a int, key int"
LAKE = "s3://lake"
GOES_ON: dict[str, tuple[str, list[dict[str, Any]], list[tuple[str, str]]]] = {
    "the value alone": (
        KAFKA,
        [
            said(0, BOTH_PARTS, KAFKA),
            altered(1, KAFKA, "writer", 1),
            said(2, A, KAFKA),
        ],
        [("00:00", BOTH_PARTS), ("00:01", A)],
    ),
    "first the key, then the value": (
        KAFKA,
        [
            said(0, BOTH_PARTS, KAFKA),
            said(0, "b int", KAFKA, "other", 2),
            altered(1, KAFKA, "writer", 1),
            said(2, "key int", KAFKA),
            said(5, A, KAFKA),
        ],
        [("00:00", "a int, b int, key int"), ("00:01", BOTH_PARTS)],
    ),
    "with another description": (
        LAKE,
        [
            said(0, A, LAKE, words="x"),
            said(0, "b int", LAKE, "other", 2),
            altered(1, LAKE),
            said(5, A, LAKE, words="y"),
        ],
        [("00:00", B), ("00:01", A)],
    ),
    "while another run of the job began": (
        LAKE,
        [
            said(0, A, LAKE, words="x"),
            altered(1, LAKE),
            said(2, C, LAKE, run=2),
            said(3, A, LAKE, words="y"),
            said(10, "d int", LAKE, "else", 3),
        ],
        [("00:00", A), ("00:02", C), ("00:10", "c int, d int")],
    ),
    "which another name of the dataset says": (
        LAKE,
        [
            said(0, A, LAKE),
            said(9, A, LAKE),
            said(4, C, LAKE, "other", 2),
            altered(5, "hive://m"),
            beat(1, "linker", 7, inputs=[dataset("t", LAKE, symlinks=facet(
                identifiers=[{"namespace": "hive://m", "name": "t", "type": "TABLE"}]))]),
        ],
        [("00:00", A), ("00:04", "a int, c int"), ("00:05", A)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", GOES_ON)
def test_what_goes_on_after_an_alter_counts_from_it_in_any_order(store: Store, how: str) -> None:
    namespace, sent, expected = GOES_ON[how]
    for name in in_every_order(store, sent):
        assert told(store, name, namespace) == expected


def in_full(store: Store, name: str, namespace: str) -> list[tuple[str, Any]]:
    """The history of a dataset with all that is said of its fields, and last the schema now."""
    view = View(store.connection, Bodies(store.packer))
    found = view.dataset(namespace, name)
    if found is None:
        return []
    rows = schemas(view, members(view, found.root), None, 100)[::-1]
    rows.append((0, found.state.facets.get("schema", [0])[0]))
    bodies = view.bodies([facet for _, facet in rows if facet])
    return [(stamp(time), json.loads(bodies[number])) for time, number in rows if number]


def test_a_version_has_the_descriptions_with_which_it_began_in_any_order(store: Store) -> None:
    other = said(0, "b int", LAKE, "other", 2, words="of b")
    sent = [said(0, A, LAKE, words="x"), said(5, A, LAKE, words="y"), other, altered(7, LAKE)]
    sent.append(said(9, A, LAKE, words="z"))
    began: list[tuple[str, str]] = []
    for name in in_every_order(store, sent):
        found = [
            (moment, [(one["name"], one["description"]) for one in schema["fields"]])
            for moment, schema in in_full(store, name, LAKE)
        ]
        began = began or found[0][1]
        assert sorted(began) == [("a", "x"), ("b", "of b")]
        assert found == [
            ("00:00", began),
            ("00:07", [("a", "y")]),
            ("00:00", [("a", "z")]),
        ]


def test_of_two_jobs_of_one_moment_content_decides_not_which_was_seen_first(store: Store) -> None:
    sent = [said(3, "a int, key int", KAFKA), said(3, "key int, a int", KAFKA, "other", 2)]
    assert (
        len({json.dumps(in_full(store, name, KAFKA)) for name in in_every_order(store, sent)}) == 1
    )


def test_order_and_descriptions_of_fields_are_the_same_in_any_order(store: Store) -> None:
    expected: dict[tuple[str, str], Any] = {}
    numbers = count()

    @examples(600)
    @given(st.data(), st.booleans())
    def compare(data: st.DataObject, topic: bool) -> None:
        namespace = namespace_of(topic=topic)
        reports = data.draw(some_reports(topic=topic))
        total = sum(len(report.said) for report in reports)
        spelt = data.draw(st.lists(st.integers(0, 3), min_size=total, max_size=total))
        seen = []
        for _ in range(2):
            number = next(numbers)
            sent = [one for report in reports for one in report.events(number, namespace)]
            sent = [in_other_words(*one) for one in zip(sent, spelt, strict=True)]
            if any(report.alias for report in reports):
                sent.append(linked(number, namespace))
            places = [*range(len(sent))]
            again = data.draw(st.lists(st.sampled_from(places), max_size=3))
            shuffled = [sent[one] for one in data.draw(st.permutations([*places, *again]))]
            while shuffled:
                cut = data.draw(st.integers(1, len(shuffled)))
                send(store, *shuffled[:cut])
                shuffled = shuffled[cut:]
            name = (f"t{number}", namespace)
            expected[name] = in_full(store, *name)
            seen.append(expected[name])
        assert seen[0] == seen[1]

    compare()
    rebuild(store)
    assert {name: in_full(store, *name) for name in expected} == expected


def in_other_words(event: dict[str, Any], how: int) -> dict[str, Any]:
    """An event with its fields in another order, or with descriptions; its types are the same."""
    event = json.loads(json.dumps(event))
    about = [*event.get("inputs", ()), *event.get("outputs", ()), event.get("dataset", {})]
    for schema in [one["facets"]["schema"] for one in about if "schema" in one.get("facets", {})]:
        if how % 2:
            schema["fields"].reverse()
        if how > 1:
            schema["fields"][0]["description"] = f"how {how}"
    return event


def test_a_stream_that_only_drops_the_table_ends_what_was_claimed(store: Store) -> None:
    dropped = dataset("t", lifecycleStateChange=facet(lifecycleStateChange="DROP"))
    send(store, beat(5, "dropper", 2, outputs=[dropped]), out(10, A))
    send(store, beat(4, "reader", 3, inputs=[dataset("t", schema=fields(B))]))
    assert told(store, "t") == [("00:04", B), ("00:10", A)]


def test_of_several_changes_by_a_stream_the_first_counts_in_any_order(store: Store) -> None:
    """Also where the later one, received before it, was of another kind."""
    for number, order in enumerate(orders(range(3))):
        name = f"t{number}"

        def changed(second: int, kind: str, name: str = name, run: int = 2 + 2 * number) -> Any:
            about = dataset(name, lifecycleStateChange=facet(lifecycleStateChange=kind))
            return beat(second, "changer", run, outputs=[about])

        sent = [changed(2, "CREATE"), changed(7, "ALTER"), out(3, A, run=1 + 2 * number, name=name)]
        send(store, *[sent[one] for one in order])
        send(store, beat(4, "reader", 99, inputs=[dataset(name, schema=fields(B))]))
        assert told(store, name) == [("00:03", A)]
        ((ends,),) = store.connection.all(
            "SELECT count(*) FROM schema_end e JOIN dataset d ON d.id = e.dataset WHERE d.name = ?",
            (name,),
        )
        assert ends == 1


def test_a_batch_that_is_announced_under_another_name_is_shown_under_both(store: Store) -> None:
    send(store, linked(1, "s3://lake"))
    about = {**dataset("", schema=fields(A)), **link_to(1)}
    send(store, event("START", 5, outputs=[about]))
    for name in (("t1", "s3://lake"), ("db.t1", "hive://m")):
        assert told(store, *name) == [("00:05", A)]


def test_what_alternates_for_ever_keeps_a_bounded_number_of_claims(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_projection, "KEPT_OF_ONE", 20)
    for number in range(200):
        send(store, out(2 * number, (A, B)[number % 2]))
    sql = "SELECT time, facet FROM facet_change WHERE kind = 0 AND name = 'schema' ORDER BY time"
    found = store.connection.all(sql)
    assert len(found) == 200
    ((rows,),) = store.connection.all("SELECT count(*) FROM claim")
    assert rows <= 22
    send(store, out(391, C), out(3, C))
    late = store.connection.all(sql)
    newest = [("06:30", B), ("06:31", C), ("06:32", A), ("06:34", B), ("06:36", A), ("06:38", B)]
    assert told(store, "t")[-6:] == newest
    assert late[:150] == found[:150], "what is older than the claims that are kept stays"
    rebuild(store)
    assert [moment for moment, _ in store.connection.all(sql)] == [moment for moment, _ in late]


def test_a_store_from_before_goes_on_and_a_rebuild_mends_its_history(
    store: Store, store_url: str
) -> None:
    """It has one claim of a run for each schema, from the first to the last time, under its facet."""
    send(store, *returning())
    store.begin()
    spans = store.connection.all("SELECT facet, min(first), max(last) FROM claim GROUP BY facet")
    assert len(spans) == 2
    for number, first, last in spans:
        store.connection.run("DELETE FROM claim WHERE facet = ? AND first > ?", (number, first))
        store.connection.run(
            "UPDATE claim SET mark = facet, last = ? WHERE facet = ?", (last, number)
        )
    store.connection.run("DROP INDEX log_job")
    store.connection.run("DROP INDEX log_ahead")
    store.connection.run("DROP INDEX facet_change_deleted")
    store.connection.run("ALTER TABLE claim DROP COLUMN parts")
    store.connection.run("DROP TABLE deletion")
    store.connection.run("DROP TABLE named_parent")
    store.connection.run("DELETE FROM migration WHERE version >= 9")
    store.connection.commit()
    opened = open_store(store_url)
    try:
        marks = opened.connection.all("SELECT mark, first FROM claim")
        assert len(marks) == 3
        assert all(mark == first for mark, first in marks)
        send(opened, out(60, A), out(70, B), out(80, A))
        assert told(opened, "t")[-2:] == [("01:10", B), ("01:20", A)]
        rebuild(opened)
        assert told(opened, "t") == [*A_AGAIN, ("01:10", B), ("01:20", A)]
    finally:
        opened.close()


def test_a_job_of_many_runs_keeps_a_bounded_number_of_claims(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_projection, "KEPT", 20)
    monkeypatch.setattr(schema_projection, "KEPT_OF_ONE", 10)
    for number in range(60):
        about = [dataset("t", schema=fields((A, B)[number % 2]))]
        send(store, event("COMPLETE", number, run=number + 1, outputs=about))
    ((rows,),) = store.connection.all("SELECT count(*) FROM claim")
    assert rows <= 22
    assert told(store, "t") == [(f"00:{n:02d}", (A, B)[n % 2]) for n in range(60)]


def test_the_history_is_what_the_rules_give_for_all_reports_at_once(store: Store) -> None:
    expected: dict[tuple[str, str], list[tuple[str, str]]] = {}
    numbers = count()

    @examples(600)
    @given(st.data(), st.booleans())
    def compare(data: st.DataObject, topic: bool) -> None:
        number, namespace = next(numbers), namespace_of(topic=topic)
        reports = data.draw(some_reports(topic=topic))
        sent = [one for report in reports for one in report.events(number, namespace)]
        names = [(f"t{number}", namespace)]
        if any(report.alias for report in reports):
            sent.append(linked(number, namespace))
            names.append((f"db.t{number}", "hive://m"))
        again = data.draw(st.lists(st.sampled_from(sent), max_size=3))
        shuffled = data.draw(st.permutations([*sent, *again]))
        while shuffled:
            cut = data.draw(st.integers(1, len(shuffled)))
            send(store, *shuffled[:cut])
            shuffled = shuffled[cut:]
        wanted = [
            (f"00:{second:02d}", ", ".join(f"{field} int" for field in sorted(fields)))
            for second, fields in history(reports, topic=topic)
        ]
        for name in names:
            assert told(store, *name) == wanted
            expected[name] = wanted

    compare()

    def all_told() -> dict[tuple[str, str], list[tuple[str, str]]]:
        return {name: told(store, *name) for name in expected}

    rebuild(store)
    assert all_told() == expected
    retain(store, time.time_ns() // 1000)
    assert all_told() == expected
    rebuild(store)
    assert all_told() == expected


KINDS = (
    "output", "output", "input", "batch input", "job output", "dataset", "asked", "catalog", "batch output",
)  # fmt: skip
CHANGES = ("", "", "", "ALTER", "OVERWRITE", "CREATE", "DROP")
small = st.integers(1, 2)


@st.composite
def some_reports(draw: st.DrawFn, *, topic: bool) -> list[Report]:
    """Of few kinds at a time, so that ranks which decide do not hide the others."""
    texts = OF_TOPICS if topic else TEXTS
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    changes = draw(st.sampled_from((("",), CHANGES)))
    said = st.lists(
        st.builds(
            Said, st.integers(0, 12), st.sampled_from(("", *texts)), st.sampled_from(changes)
        ),
        min_size=1,
        max_size=6,
    )
    found: dict[tuple[Any, bool], Report] = {}
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=6)):
        version = draw(st.integers(0, 2)) if kind in ("asked", "catalog") else 0
        one = draw(said)
        end = draw(st.sampled_from(("COMPLETE", "COMPLETE", "FAIL", "")))
        if kind == "batch output":
            one = sorted(one, key=lambda s: s.second)[:3]
        alias = not topic and draw(st.integers(0, 3)) == 3
        report = Report(kind, draw(small), draw(small), version, tuple(one), end, alias)
        found.setdefault((report[:4], alias), report)
    return list(found.values())
