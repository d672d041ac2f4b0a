"""Does the lineage server show what the demo's pipeline does? Jobs, edges, column paths, schemas, impact."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lab.demo.lake_answers import LakeAnswers
from headwater.lab.demo.lineage_client import LineageClient, state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lab.services.base import LabContext

STREAMING = frozenset({"RUNNING"})
BATCH = frozenset({"RUNNING", "COMPLETED"})
JOBS = {
    "orders-source": STREAMING,
    "orders-s3-sink": STREAMING,
    "orders-iceberg-sink": STREAMING,
    "supplier-stats": STREAMING,
    "iceberg-ingestion": STREAMING,
    "supplier-stats-jdbc-sink": STREAMING,
    "supplier_stats.overwrite_by_expression.default_supplier_stats": BATCH,
    "supplier-stats-export": BATCH,
}
# Every job of the demo is within three jobs of this topic.
CENTRE, DEPTH = "kafka orders", 3
LAST = "exports supplier_stats"
"""The dataset that most jobs lead to."""
SUMMARY = "supplier_stats.overwrite_by_expression.default_supplier_stats"

# What each job reads and writes; a dataset is a store and a name.
EDGES = (
    ("orders-source", ("postgres shop.public.orders", "postgres shop.public.bids"), ("kafka orders", "kafka bids")),
    ("orders-s3-sink", ("kafka orders", "kafka bids"), ("raw topics/orders", "raw topics/bids")),
    (
        "orders-iceberg-sink",
        ("kafka orders", "kafka bids"),
        ("warehouse default/orders_landing", "warehouse default/bids"),
    ),
    ("supplier-stats", ("kafka orders",), ("kafka supplier-stats",)),
    ("iceberg-ingestion", ("kafka orders",), ("warehouse default/orders",)),
    ("supplier-stats-jdbc-sink", ("kafka supplier-stats",), ("postgres shop.public.supplier_stats",)),
    (SUMMARY, ("warehouse default/orders",), ("warehouse default/supplier_stats",)),
    ("supplier-stats-export", ("warehouse default/supplier_stats",), ("exports supplier_stats",)),
)  # fmt: skip

# From where a number comes, through every job between.
COLUMNS = (
    ("postgres shop.public.orders", "price", "kafka orders", "price"),
    ("postgres shop.public.orders", "price", "raw topics/orders", "price"),
    ("postgres shop.public.bids", "price", "raw topics/bids", "price"),
    ("postgres shop.public.orders", "price", "warehouse default/orders_landing", "price"),
    ("postgres shop.public.bids", "price", "warehouse default/bids", "price"),
    ("postgres shop.public.orders", "price", "warehouse default/orders", "price"),
    ("postgres shop.public.orders", "price", "kafka supplier-stats", "total_price"),
    ("postgres shop.public.orders", "price", "postgres shop.public.supplier_stats", "total_price"),
    ("postgres shop.public.orders", "price", "warehouse default/supplier_stats", "total_price"),
    ("postgres shop.public.orders", "price", "exports supplier_stats", "total_price"),
    ("postgres shop.public.orders", "supplier", "warehouse default/supplier_stats", "supplier"),
)

# Who is hit when the shop drops the price of its orders, written down from the programs and connectors.
DROPPED = ("postgres shop.public.orders", "price")
HIT_JOBS = {
    "orders-source": "carries",
    "orders-s3-sink": "carries",
    "orders-iceberg-sink": "carries",
    "supplier-stats": "breaks",
    "iceberg-ingestion": "breaks",
    "supplier-stats-jdbc-sink": "changes",
    SUMMARY: "changes",
    # The batch job's look at the newest day: it writes nothing, so no event says which columns it reads.
    "supplier_stats.head.default_orders": "unknown",
    "supplier-stats-export": "changes",
}
# Rows, too: the streams reject orders without a price.
ROWS = ""  # in place of a column
HIT_COLUMNS = {
    ("kafka orders", "price"): "carries",
    ("raw topics/orders", "price"): "carries",
    ("warehouse default/orders_landing", "price"): "carries",
    ("kafka supplier-stats", "total_price"): "changes",
    ("kafka supplier-stats", ROWS): "rows",
    ("postgres shop.public.supplier_stats", "total_price"): "changes",
    ("postgres shop.public.supplier_stats", ROWS): "rows",
    ("warehouse default/orders", "price"): "changes",
    ("warehouse default/orders", ROWS): "rows",
    ("warehouse default/supplier_stats", "total_price"): "changes",
    ("warehouse default/supplier_stats", ROWS): "rows",
    ("exports supplier_stats", "total_price"): "changes",
    ("exports supplier_stats", ROWS): "rows",
}
# Known only once an order was rejected.
HIT_LATER = {
    ("kafka orders-dead-letter", "key.reason"): "changes",
    ("kafka orders-dead-letter", ROWS): "rows",
}

STORY_COLUMNS = ("coupon", "channel", "gift_note", "warehouse", "campaign")
"""Columns that the story of a schema change adds; once all were used, `note_1` and so on."""
# Nothing alters these, so each has one version of its schema; but a story may add a column.
SCHEMAS = tuple(dict.fromkeys(d for _, inputs, outputs in EDGES for d in (*inputs, *outputs)))
HISTORY = 100


class Item(msgspec.Struct, kw_only=True):
    """One thing that must be seen."""

    what: str
    seen: bool
    state: str = ""


class Verdict(msgspec.Struct, kw_only=True):
    """What was seen of everything that must be."""

    ok: bool
    jobs: list[Item]
    edges: list[Item]
    columns: list[Item]
    schemas: list[Item]
    impact: list[Item]
    lake: list[Item]
    missing: list[str]


class Judge:
    """Asks the lineage server of a lab."""

    def __init__(self, lab: LabContext) -> None:
        self.lineage = LineageClient(lab)
        self._lab = lab
        self._lake: LakeAnswers | None = None

    def verdict(self) -> Verdict:
        """Look at everything once."""
        jobs = {name: self.lineage.job(name) for name in JOBS}
        seen_jobs = [
            Item(what=name, state=state_of(jobs[name]), seen=state_of(jobs[name]) in states)
            for name, states in JOBS.items()
        ]
        edges = []
        for job, inputs, outputs in EDGES:
            reads, writes = _names(jobs[job], "inputs"), _names(jobs[job], "outputs")
            name = self.lineage.name
            edges += [Item(what=f"{d} → {job}", seen=name(d) in reads) for d in inputs]
            edges += [Item(what=f"{job} → {d}", seen=name(d) in writes) for d in outputs]
        columns = [
            Item(what=f"{d}.{f} → {e}.{g}", seen=self.lineage.leads(d, f, e, g))
            for d, f, e, g in COLUMNS
        ]
        schemas = self.schemas()
        impact = self._impact()
        parts = (seen_jobs, edges, columns, schemas, impact)
        missing = [item.what for part in parts for item in part if not item.seen]
        lake = self._asked_lake(complete=not missing) if self._lab.home.settings.lake else []
        missing += [item.what for item in lake if not item.seen]
        return Verdict(
            ok=not missing,
            jobs=seen_jobs,
            edges=edges,
            columns=columns,
            schemas=schemas,
            impact=impact,
            lake=lake,
            missing=missing,
        )

    def schemas(self) -> list[Item]:
        """Whether each dataset has one schema: those of the pipeline, and all others that have any."""
        own = {self.lineage.name(d) for d in SCHEMAS}
        others = [d for d in self.lineage.datasets() if self.lineage.name(d) not in own]
        histories = {
            d: self.lineage.dataset(d, "/history", limit=HISTORY) for d in (*SCHEMAS, *others)
        }
        return [
            schema_item(d, history)
            for d, history in histories.items()
            if d in SCHEMAS or history.get("versions")
        ]

    def _asked_lake(self, *, complete: bool) -> list[Item]:
        """Whether the lake answers about a moment as the server does: one at which all the rest was seen."""
        what = f"trace of {LAST} at one moment, the same from lake and server"
        if not complete:
            return [Item(what=what, seen=False, state="waits for the rest")]
        if self._lake is None:
            self._lake = LakeAnswers(self._lab, self.lineage, LAST)
        differ = self._lake.differ()
        return [Item(what=what, seen=not differ, state=differ)]

    def _impact(self) -> list[Item]:
        """Whether dropping a column hits exactly the jobs and columns that were written down."""
        dataset, column = DROPPED
        found = self.lineage.impact(dataset, {"kind": "drop", "column": column})
        jobs = {job["name"]: job["effect"] for job in found.get("jobs", [])}
        names = {self.lineage.node(one): one for one, _ in (*HIT_COLUMNS, *HIT_LATER)}
        columns = {
            (names.get(one["dataset"], one["dataset"]), one["column"] or ROWS): one["effect"]
            for one in found.get("columns", [])
        }
        now = {one: effect for one, effect in columns.items() if HIT_LATER.get(one) != effect}
        drop = f"impact of dropping {dataset}.{column}"
        return [
            *hit_items(f"{drop} on jobs", HIT_JOBS, jobs),
            *hit_items(
                f"{drop} on columns",
                *({_called(*one): some[one] for one in some} for some in (HIT_COLUMNS, now)),
            ),
        ]

    def running(self) -> list[str]:
        """Jobs of the demo whose latest run goes on."""
        return self.lineage.running()

    def page(self) -> str:
        """The page's address of the one graph with every job in it, data flowing."""
        return self.lineage.graph_page(CENTRE, DEPTH)


def added_by_story(column: str) -> bool:
    """Whether a story may have added the column."""
    return column in STORY_COLUMNS or column.startswith("note_")


def schema_item(dataset: str, history: dict[str, Any]) -> Item:
    """Whether a dataset's history holds exactly the versions that were made of its schema.

    A version apart from the first needs a column that a story added, or took away again.
    """
    versions = [
        {(field["name"], field["type"]) for field in version["fields"]}
        for version in history.get("versions", [])
    ]
    made = [{pair for pair in version if not added_by_story(pair[0])} for version in versions]
    own = [version for version, rest in zip(versions, made, strict=True) if version == rest]
    returns = all(a != b for a, b in pairwise(versions))
    stories = sum(version != rest for version, rest in zip(versions, made, strict=True))
    seen = returns and all(rest == made[0] for rest in made) and 1 <= len(own) <= 1 + stories
    count = f"{len(versions)} version{'s' if len(versions) != 1 else ''}"
    return Item(what=f"one schema of {dataset}", seen=seen, state=count)


def _called(dataset: str, column: str) -> str:
    return f"rows of {dataset}" if column == ROWS else f"{dataset}.{column}"


def _names(job: dict[str, Any], side: str) -> set[tuple[str, str]]:
    return {(d["namespace"], d["name"]) for d in job.get(side, [])}


def hit_items(what: str, wanted: Mapping[str, str], found: Mapping[str, str]) -> list[Item]:
    """Whether each effect is on exactly what it was written down for, and no other effect is."""

    def having(effect: str, some: Mapping[str, str]) -> str:
        return ", ".join(sorted(one for one in some if some[one] == effect)) or "none"

    return [
        Item(
            what=f"{what}, {effect}: {having(effect, wanted)}",
            seen=having(effect, found) == having(effect, wanted),
            state="" if having(effect, found) == having(effect, wanted) else having(effect, found),
        )
        for effect in dict.fromkeys((*wanted.values(), *found.values()))
    ]
