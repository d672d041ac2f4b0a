"""Doctor: datasets under two names among decoys, and what else makes answers doubtful."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import (
    DEFAULT_SCORE,
    ClockGap,
    DoubtKind,
    JobUse,
    KnownJob,
    LiveRun,
    NameRuleError,
    Pair,
    doctor,
    name_rules,
    same_datasets,
)

from .estates import DECOYS, KINDS, REPLICA, MemoryEstate, Named, decoys, planted, planted_estate

HOUR = 3_600_000_000
NOW = 1_000 * HOUR
COLUMNS = ("id", "price", "item")


def pairs(estate: MemoryEstate, rules: object = None) -> dict[frozenset[Named], Pair[Named]]:
    found = same_datasets(estate, None if rules is None else name_rules(rules))
    return {frozenset((pair.alias.node, pair.dataset.node)): pair for pair in found}


def one_dataset(*named: Named) -> MemoryEstate:
    """The first is written, the others are read; all have the same columns."""
    estate = MemoryEstate()
    for number, one in enumerate(named):
        side = {"writers": "writer"} if number == 0 else {"readers": f"reader{number}"}
        estate.add(one, COLUMNS, **side)
    return estate


@pytest.mark.parametrize("seed", range(3))
def test_planted_pairs_are_found_and_no_other(seed: int) -> None:
    estate, truth = planted_estate(5_000, 50, seed)
    assert len(estate.datasets()) == 5_000
    assert len(truth) == 50
    found = {both for both, pair in pairs(estate).items() if pair.score >= DEFAULT_SCORE}
    assert found - truth == set()
    assert len(found & truth) >= 48, truth - found


@pytest.mark.parametrize("kind", range(KINDS))
def test_each_kind_of_pair_alone(kind: int) -> None:
    both = planted(kind, "orders")
    (pair,) = pairs(one_dataset(*both)).values()
    assert pair.score >= DEFAULT_SCORE
    assert {one.kind for one in pair.proofs} >= {"rule", "name", "schema", "flow"}


@pytest.mark.parametrize("kind", range(DECOYS))
def test_no_decoy_is_almost_sure(kind: int) -> None:
    estate = one_dataset(*decoys(kind, "orders"))
    if kind == REPLICA:
        estate.used = [JobUse("cdc", decoys(kind, "orders")[0], writes=False)]
        estate.add(("kafka://broker:9092", "orders"), writers="cdc", readers="sink")
        estate.used.append(JobUse("sink", decoys(kind, "orders")[1], writes=True))
    found = pairs(estate)
    assert all(pair.score < DEFAULT_SCORE for pair in found.values())


def test_evidence_decides_where_names_do_not() -> None:
    both = (("kafka://10.0.0.5:9092", "orders"), ("kafka://broker:9092", "orders"))
    estate = MemoryEstate()
    for one in both:
        estate.add(one, COLUMNS, writers=f"w{one}".replace(" ", ""), readers=f"r{one[0]}")
    (alike,) = pairs(estate).values()
    assert alike.score < 0.5  # each has a life of its own
    estate.columns_of[both[1]] = frozenset({"other"})
    (strange,) = pairs(estate).values() or [None]
    assert strange is None or strange.score < alike.score
    estate = one_dataset(*both)
    estate.columns_of[both[1]] = frozenset()
    assert pairs(estate)[frozenset(both)].score < DEFAULT_SCORE
    link = frozenset({("hive://meta:9083", "shop.orders")})
    estate.links = dict.fromkeys(both, link)
    assert pairs(estate)[frozenset(both)].score >= DEFAULT_SCORE
    estate.cluster_of = {both[0][0]: "a", both[1][0]: "b"}
    assert pairs(estate) == {}
    estate.links = {}
    estate.cluster_of = dict.fromkeys((both[0][0], both[1][0]), "a")
    pair = pairs(estate)[frozenset(both)]
    assert pair.score >= DEFAULT_SCORE
    assert "both are in the cluster a" in [one.text for one in pair.proofs]


def test_a_short_host_of_two_long_ones_is_either() -> None:
    short = ("postgres://db:5432", "shop.public.orders")
    long = [(f"postgres://db.{place}.example:5432", short[1]) for place in ("east", "west")]
    assert all(p.score < DEFAULT_SCORE for p in pairs(one_dataset(short, *long)).values())
    sure = pairs(one_dataset(short, long[0]))
    assert sure[frozenset((short, long[0]))].score >= DEFAULT_SCORE


def test_three_names_of_one_topic_are_joined_as_one() -> None:
    names = [(f"kafka://{host}:9092", "orders") for host in ("broker", "localhost", "127.0.0.1")]
    found = pairs(one_dataset(*names))
    assert len(found) == 2
    assert all(pair.score >= DEFAULT_SCORE for pair in found.values())
    assert set().union(*found) == set(names)
    assert names[0] in {pair.dataset.node for pair in found.values()}


def test_rules_of_ones_own() -> None:
    odd = [("kafka://a:9092", "orders"), ("kafka://b:9092", "legacy.orders")]
    estate = one_dataset(*odd)
    assert pairs(estate) == {}
    read = {"namespace": "kafka://b:9092", "name": r"legacy\.(.*)",
            "toNamespace": "kafka://a:9092", "toName": r"\1"}  # fmt: skip
    (pair,) = pairs(estate, {"read": [read]}).values()
    assert (pair.rule, pair.score >= DEFAULT_SCORE) == ("rule", True)
    never = {"one": "kafka://b.*", "other": r"kafka://a:9092:orders"}
    assert pairs(estate, {"read": [read], "never": [never]}) == {}
    estate.used.append(JobUse("copy", odd[0], writes=False))
    estate.used.append(JobUse("copy", odd[1], writes=True))
    assert pairs(estate, {"read": [read]}) == {}


def test_files_that_dbt_calls_tables_are_joined_by_sql_or_a_rule() -> None:
    """Between a table of a DuckDB file and the file that it is read from, no name tells anything."""
    file, table = (
        ("s3://lake", "raw/orders.parquet"),
        ("duckdb:///data/shop.duckdb", "shop.main.orders"),
    )
    estate = one_dataset(file, table)
    assert pairs(estate) == {}
    estate.file_of = {table: file}
    (pair,) = pairs(estate).values()
    assert (pair.rule, pair.alias.node, pair.score >= DEFAULT_SCORE) == ("file", table, True)
    estate.file_of, estate.likely_file_of = {}, {table: file}
    (pair,) = pairs(estate).values()
    assert (pair.rule, pair.alias.node, pair.score) == ("file", table, 0.875)
    estate.likely_file_of = {}
    read = {"namespace": "duckdb:///data/shop.duckdb", "name": r"shop\.main\.(.*)",
            "toNamespace": "s3://lake", "toName": r"raw/\1.parquet"}  # fmt: skip
    (pair,) = pairs(estate, {"read": [read]}).values()
    assert pair.score >= DEFAULT_SCORE
    assert pair.dataset.node == ("s3://lake", "raw/orders.parquet")


@pytest.mark.parametrize("relative", ["shop.duckdb", "./shop.duckdb", "data/shop.duckdb"])
def test_a_database_file_by_a_relative_path(relative: str) -> None:
    whole, part = [
        (f"duckdb://{path}", "shop.main.orders") for path in ("/data/shop.duckdb", relative)
    ]
    (pair,) = pairs(one_dataset(whole, part)).values()
    assert (pair.rule, pair.dataset.node, pair.score >= DEFAULT_SCORE) == ("path", whole, True)
    either = one_dataset(whole, part, ("duckdb:///other/data/shop.duckdb", whole[1]))
    assert all(pair.score < DEFAULT_SCORE for pair in pairs(either).values())
    assert pairs(one_dataset(whole, ("duckdb://a/shop.duckdb", whole[1]))) == {}


@pytest.mark.parametrize(
    "rules",
    [
        [],
        {"reads": []},
        {"read": {}},
        {"read": [{"name": "x"}]},
        {"read": [{"name": "(", "toName": "x"}]},
        {"read": [{"name": "x", "toName": r"\1"}]},
        {"read": [{"name": 1, "toName": "x"}]},
        {"read": [{"name": "(a+)+b", "toName": "x"}]},
        {"read": [{"name": "(a|aa)*", "toName": "x"}]},
        {"read": [{"name": "a*a*a*a*b", "toName": "x"}]},
        {"read": [{"name": r"(a)\1", "toName": "x"}]},
        {"read": [{"name": "(?=a)", "toName": "x"}]},
        {"read": [{"name": "a" * 301, "toName": "x"}]},
        {"never": [{"one": "a"}]},
        {"never": [{"one": "a", "other": "b"}] * 201},
    ],
)
def test_rules_that_cannot_be_used(rules: object) -> None:
    with pytest.raises(NameRuleError):
        name_rules(rules)


SPACES = (
    "kafka://localhost:9092", "kafka://127.0.0.1:9092", "kafka://broker:9092", "kafka://10.0.0.1:9092",
    "kafka://broker.example:9092", "s3://lake", "s3a://lake", "hive://meta:9083", "hive://meta",
)  # fmt: skip
NAMES = ("orders", "Orders", "default.orders", "default/orders", "default.db/orders", "orders/")
DATASETS = st.tuples(st.sampled_from(SPACES), st.sampled_from(NAMES))


@given(st.lists(st.tuples(st.integers(0, 6), DATASETS, st.booleans()), max_size=40))
def test_what_one_run_reads_and_writes_is_never_one(uses: list[tuple[int, Named, bool]]) -> None:
    """Not in a pair, and not through a third however low the score is that is applied."""
    estate = MemoryEstate()
    for _, one, _ in uses:
        estate.columns_of[one] = frozenset(COLUMNS)
    estate.used = [JobUse(run, one, writes) for run, one, writes in uses]
    group = {one: frozenset((one,)) for one in estate.columns_of}
    for pair in same_datasets(estate):
        whole = group[pair.alias.node] | group[pair.dataset.node]
        group |= dict.fromkeys(whole, whole)
    read = {(run, one) for run, one, writes in uses if not writes}
    written = {(run, one) for run, one, writes in uses if writes}
    for whole in set(group.values()):
        for one, other in combinations(whole, 2):
            for run in range(7):
                assert not ((run, one) in read and (run, other) in written)
                assert not ((run, other) in read and (run, one) in written)


def test_what_else_is_doubtful() -> None:
    estate = MemoryEstate()
    estate.add(("s3://lake", "alone"))
    estate.add(("s3://lake", "used"), writers="writer")
    estate.add(("s3://lake", "once"))
    estate.used.append(JobUse("gone", ("s3://lake", "once"), writes=True, now=False))
    reader, writer, app = (("jobs", name) for name in ("reader", "writer", "app"))
    counts, idles, lasts = (("jobs", name) for name in ("app.count", "app.idles", "lasts"))
    estate.used += [
        JobUse(writer, ("s3://lake", "used"), writes=True),
        JobUse(reader, ("s3://lake", "used"), writes=False),
        JobUse(counts, ("s3://lake", "used"), writes=False),
    ]
    estate.known_jobs = [
        KnownJob(reader, running=True, last=NOW - 2 * HOUR),
        KnownJob(writer, inferred=NOW - HOUR, last=NOW - 5 * HOUR, usual=HOUR),
        KnownJob(app, parent=True, running=True, last=NOW - HOUR // 2),
        KnownJob(counts, action=True),
        KnownJob(idles, action=True),
        KnownJob(("jobs", "begins"), running=True, began=NOW - HOUR // 2, last=NOW),
        KnownJob(lasts, running=True, began=NOW - 2 * HOUR, last=NOW),
    ]
    estate.gaps = [
        ClockGap(reader, 1, -2 * HOUR, 0),
        ClockGap(writer, 5, HOUR, HOUR + 1),
        ClockGap(app, 5, HOUR, 3 * HOUR),
    ]
    estate.counted = [(DoubtKind.REFUSED, "run.runId: is missing", 3)]
    found = {(one.kind.value, one.node) for one in doctor(estate, NOW).doubts}
    assert found == {
        ("orphan", ("s3://lake", "alone")),
        ("orphan", ("s3://lake", "once")),
        ("no outputs", reader),
        ("no outputs", idles),
        ("no outputs", lasts),
        ("silent", reader),
        ("silent", writer),
        ("inferred", writer),
        ("clock", reader),
        ("clock", writer),
        ("refused", None),
    }


def test_a_stream_that_is_reported_twice() -> None:
    same, other = frozenset({(1, 0), (2, 1)}), frozenset({(1, 0), (3, 1)})

    def found(*live: LiveRun) -> list[tuple[str, int | None]]:
        estate = MemoryEstate()
        estate.known_jobs = [KnownJob(("jobs", "stream"), parent=True, live=live)]
        return [(one.text, one.since) for one in doctor(estate, NOW).doubts]

    first, second = LiveRun("a", NOW - 9, NOW, same), LiveRun("b", NOW - 5, NOW - 5, same)
    ((text, since),) = found(first, second)
    assert text.startswith("2 runs at once read and write the same: a, b. ")
    assert since == NOW - 5
    assert found(second, first) == [(text, since)]
    assert found(first) == []
    assert found(first, second._replace(uses=other)) == []
    # The first was killed without a word before the second began.
    assert found(first._replace(last=NOW - 6), second) == []
    many = [first._replace(run=f"{n}") for n in range(5)]
    assert "5 runs at once read and write the same: 0, 1, 2 and 2 more." in found(*many)[0][0]
