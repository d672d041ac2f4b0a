"""A job that returns to a schema which it reported before has it in its history, in any order of events.

What the stores compute is compared with a plain function over all claims at once.
"""

from __future__ import annotations

import json
import time
from itertools import count, permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.schema import read_fields
from headwater.lineage.schema.claims import Rank, shape
from headwater.server.store import open_store
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.retention import retain
from headwater.server.store.write import schemas as schema_projection
from headwater.server.store.write import stretches
from tests.properties import examples

from .making import P, dataset, event, facet
from .test_schemas import STREAM, beat, fields, send, static, told

if TYPE_CHECKING:
    import pytest

    from headwater.server.store import Store

A, B, C = "a int", "a int, b int", "c int"
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
    records = stretches._records
    monkeypatch.setattr(stretches, "READ_AT_MOST", 64)

    def counted(*values: Any, **more: Any) -> Any:
        for record in records(*values, **more):
            read.append(1)
            yield record

    monkeypatch.setattr(stretches, "_records", counted)
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
    for number, order in enumerate(permutations(range(4))):
        for one in order:
            moved = json.dumps(sent[one]).replace('"t"', f'"t{number}"')
            moved = moved.replace("-8000-", f"-{8000 + number}-")
            send(store, json.loads(moved))
        assert told(store, f"t{number}") == expected


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


class Claimed(NamedTuple):
    """What one event claims: the author of a rank, and which of its claims replace each other."""

    second: int
    rank: Rank
    author: str
    key: str
    body: bytes

    @property
    def names(self) -> frozenset[str]:
        return frozenset(field.name for field in read_fields(self.body))


class Report(NamedTuple):
    """One event about a dataset; what it claims is computed from the same."""

    kind: str
    second: int
    job: int
    run: int
    text: str

    def claims(self) -> list[Claimed]:
        body = json.dumps(fields(self.text), sort_keys=True, separators=(",", ":")).encode()
        job, run = f"{self.kind} {self.job}", f"{self.kind} {self.job} {self.run}"
        if self.kind == "batch output":  # counts when it completes, and is announced by then
            one = f"{run} {self.second} {self.text}"
            return [Claimed(self.second, r, job, one, body) for r in (Rank.WRITER, Rank.ANNOUNCED)]
        rank, author, key = {
            "output": (Rank.WRITER, job, run),
            "input": (Rank.READER, job, run),
            "batch input": (Rank.READER, job, job),
            "job output": (Rank.DEFINED, job, job),
            "dataset": (Rank.DECLARED, "", job),
            "asked": (Rank.SOURCE, "subject", job),
        }[self.kind]
        return [Claimed(self.second, rank, author, key, body)]

    def event(self, number: int) -> dict[str, Any]:
        facets: dict[str, Any] = {"schema": fields(self.text)}
        if self.kind == "asked":
            facets["headwater_schemaSource"] = facet(kind="registry", subject="s")
        side = "outputs" if self.kind.endswith("output") else "inputs"
        about: dict[str, Any] = {side: [dataset(f"t{number}", **facets)]}
        job = f"{self.kind} {self.job} {number}"
        if self.kind == "dataset":
            sent = static(self.second, dataset=about[side][0])
            return {**sent, "producer": f"{P}/{self.job}"}
        if self.kind == "job output":
            return static(self.second, job={"namespace": "jobs", "name": job}, **about)
        run = 1000 * number + 10 * self.job + self.run + 100 * len(self.kind)
        if self.kind == "batch output":
            run = 1_000_000 * (1 + number) + 1000 * (1 + TEXTS.index(self.text)) + 100 * self.job
            run += self.second * 100_000_000 + self.run
            return event("COMPLETE", self.second, job=job, run=run, **about)
        stream = self.kind in ("output", "input", "asked")
        facets = {"job_facets": STREAM} if stream else {}
        return event("RUNNING", self.second, job=job, run=run, **facets, **about)


def history(reports: list[Report]) -> list[tuple[int, frozenset[str]]]:
    """The schemas that a dataset has had, computed from all claims at once and by the rules alone."""
    at_once: dict[tuple[int, str, Rank], Claimed] = {}
    for claim in (claim for report in reports for claim in report.claims()):
        place = claim.second, claim.key, claim.rank
        if place not in at_once or claim.body > at_once[place].body:
            at_once[place] = claim
    made: dict[str, frozenset[str]] = {}
    counts: dict[tuple[Rank, str], frozenset[str]] = {}
    versions: list[tuple[int, frozenset[str]]] = []
    decided: Rank | None = None
    for second in sorted({claim.second for claim in at_once.values()}):
        now = [claim for claim in at_once.values() if claim.second == second]
        for claim in sorted(now, key=lambda c: shape(read_fields(c.body))):
            if made.get(f"{claim.rank} {claim.key}") != claim.names:
                made[f"{claim.rank} {claim.key}"] = claim.names
                counts[claim.rank, claim.author] = claim.names
        best = min(rank for rank, _ in counts)
        schema = frozenset().union(*(n for (rank, _), n in counts.items() if rank is best))
        corrected = decided is not None and best < decided
        decided = best
        if versions and schema == versions[-1][1]:
            continue
        begun = versions.pop()[0] if corrected else second
        if not versions or versions[-1][1] != schema:
            versions.append((begun, schema))
    return versions


TEXTS = (A, B, C, "a int, c int")
KINDS = (
    "output",
    "output",
    "input",
    "batch input",
    "job output",
    "dataset",
    "asked",
    "batch output",
)
small = st.integers(1, 2)


@st.composite
def some_reports(draw: st.DrawFn) -> list[Report]:
    """Of few kinds at a time, so that ranks which decide do not hide the others."""
    kinds = st.sampled_from(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)))
    one = st.builds(Report, kinds, st.integers(0, 12), small, small, st.sampled_from(TEXTS))
    return draw(st.lists(one, min_size=1, max_size=14))


def test_the_history_is_what_a_plain_function_over_all_claims_gives(store: Store) -> None:
    expected: dict[str, list[tuple[str, str]]] = {}
    numbers = count()

    @examples(400)
    @given(st.data(), some_reports())
    def compare(data: st.DataObject, reports: list[Report]) -> None:
        number = next(numbers)
        sent = [report.event(number) for report in reports]
        again = data.draw(st.lists(st.sampled_from(sent), max_size=3))
        shuffled = data.draw(st.permutations([*sent, *again]))
        while shuffled:
            cut = data.draw(st.integers(1, len(shuffled)))
            send(store, *shuffled[:cut])
            shuffled = shuffled[cut:]
        wanted = [
            (f"00:{second:02d}", ", ".join(f"{name} int" for name in sorted(names)))
            for second, names in history(reports)
        ]
        assert told(store, f"t{number}") == wanted
        expected[f"t{number}"] = wanted

    compare()

    def all_told() -> dict[str, list[tuple[str, str]]]:
        return {name: told(store, name) for name in expected}

    rebuild(store)
    assert all_told() == expected
    retain(store, time.time_ns() // 1000)
    assert all_told() == expected
    rebuild(store)
    assert all_told() == expected
