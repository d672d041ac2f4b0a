"""A column added in the shop's database walks down to Iceberg."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from headwater.lab.demo.run import STREAMS
from headwater.lab.demo.verdict import STORY_COLUMNS, added_by_story
from headwater.lab.stories.base import CheckOutcome, Story

if TYPE_CHECKING:
    from headwater.lab.stories.story_run import StoryRun

SOURCE, TOPIC = "postgres shop.public.orders", "kafka orders"
LANDING, TABLE = "warehouse default/orders_landing", "default.orders_landing"
CONNECTOR, SINK = "orders-source", "orders-iceberg-sink"
OF_STREAM = "default.orders"
KNOWN = {"order_id", "item", "price", "supplier", "bid_time"}
# The registry is asked for each topic's schema once a minute.
ROTATION_SECONDS = 150.0


class SchemaChangeStory(Story):
    """A table is altered, and no other team knows."""

    name = "schema-change"
    title = "A column is added in PostgreSQL"
    shows = (
        "The new column in the topic and the Iceberg table, and the path between them; `headwater"
        " diff` lists it, and `headwater impact` says who would miss it."
    )

    def play(self, story_run: StoryRun) -> None:
        """Add a column, order with it, and follow it."""
        self.undo(story_run)
        began = datetime.now(timezone.utc).isoformat()
        column = _new_name(story_run)
        runs = {job: story_run.check_state(job, "RUNNING") for job in STREAMS}
        story_run.link_page("the schema's history", story_run.lineage.dataset_page(TOPIC))
        story_run.link_page(
            "the column's path through the graph",
            story_run.lineage.graph_page(LANDING, columns="1", column=column),
        )
        story_run.describe(
            f"Adding the column {column} to shop.public.orders, and ordering with it."
        )
        _alter(story_run, sql.SQL("add column {} text").format(sql.Identifier(column)))
        order = story_run.order(extra={column: "autumn"})
        story_run.check(
            f"the order's {column} has come to Iceberg's {TABLE}",
            lambda: _landed(story_run, order, column),
        )
        story_run.check(
            f"lineage knows {column} in the topic orders",
            lambda: _has(story_run, TOPIC, column),
            seconds=ROTATION_SECONDS,
        )
        story_run.check(
            f"lineage leads from shop.public.orders.{column} to {TABLE}.{column}",
            lambda: story_run.lineage.leads(SOURCE, column, LANDING, column),
            seconds=ROTATION_SECONDS,
        )
        story_run.check("the topic's history says it in words", lambda: _history(story_run, column))
        story_run.check(
            f"the streams went on: {OF_STREAM} has the order too",
            lambda: story_run.counter.has_order(OF_STREAM, order) is not None,
        )
        for job, run in runs.items():
            story_run.check(
                f"{job} is in the same run as before", partial(_same, story_run, job, run)
            )
        self._ask(story_run, column, began)

    @staticmethod
    def _ask(story_run: StoryRun, column: str, began: str) -> None:
        """What changed, and who would miss the column, or one that the streams name."""
        at = f"--url {story_run.lineage.url}"
        table = story_run.lineage.name(SOURCE)[1]
        story_run.describe(f"Asking: headwater diff --from {began} --around {table} {at}")
        story_run.check(
            f"the answer has {column}, in the topic's schema and on its way to {TABLE}",
            lambda: _listed(story_run, column, began),
        )
        story_run.describe(f"Asking: headwater impact {table} --drop {column} {at}")
        story_run.check(
            f"nobody breaks without {column}: connectors hand it on, and the streams never named it",
            lambda: _hit(story_run, column, breaks=set(), carries={CONNECTOR, SINK}),
        )
        story_run.describe(f"Asking: headwater impact {table} --drop price {at}")
        story_run.check(
            "without price the streams break, and the connectors hand that on",
            lambda: _hit(story_run, "price", breaks=set(STREAMS), carries={CONNECTOR, SINK}),
        )

    def undo(self, story_run: StoryRun) -> None:
        """Drop what the story added, in the database and, once all is read, in the table."""
        added = _added(story_run)
        for column in added:
            story_run.describe(f"Dropping the column {column} again.")
            _alter(story_run, sql.SQL("drop column {}").format(sql.Identifier(column)))
        left = [name for name in _fields(story_run) if added_by_story(name)]
        if left:
            order = story_run.order()
            story_run.check(
                "orders without the column arrive",
                lambda: story_run.counter.has_order(TABLE, order) is not None,
            )
            with story_run.counter.catalog.load_table(TABLE).update_schema() as change:
                for column in left:
                    change.delete_column(column)


def _new_name(story_run: StoryRun) -> str:
    """A name the topic never had, so that seeing it means something."""
    versions = story_run.lineage.dataset(TOPIC, "/history", limit=500).get("versions", [])
    seen = {field["name"] for version in versions for field in version["fields"]}
    fresh = [name for name in STORY_COLUMNS if name not in seen]
    return fresh[0] if fresh else f"note_{len(seen)}"


def _added(story_run: StoryRun) -> list[str]:
    query = "select column_name from information_schema.columns where table_name = 'orders'"
    with psycopg.connect(story_run.database_url) as database:
        found = [row[0] for row in database.execute(query)]
    return [name for name in found if name not in KNOWN]


def _alter(story_run: StoryRun, change: sql.Composed) -> None:
    with psycopg.connect(story_run.database_url) as database:
        database.execute(sql.SQL("alter table orders {}").format(change))


def _fields(story_run: StoryRun) -> list[str]:
    return [field.name for field in story_run.counter.catalog.load_table(TABLE).schema().fields]


def _landed(story_run: StoryRun, order: str, column: str) -> CheckOutcome:
    if column not in _fields(story_run):
        return CheckOutcome(ok=False, found=f"{TABLE} has no column {column}")
    value = story_run.counter.has_order(TABLE, order, column)
    return CheckOutcome(value == "autumn", value or "the order is not there")


def _has(story_run: StoryRun, dataset: str, column: str) -> CheckOutcome:
    fields = story_run.lineage.fields(dataset)
    return CheckOutcome(column in fields, ", ".join(fields))


def _history(story_run: StoryRun, column: str) -> CheckOutcome:
    versions = story_run.lineage.dataset(TOPIC, "/history", limit=1).get("versions", [])
    changes = "; ".join(change["text"] for one in versions for change in one.get("changes", []))
    return CheckOutcome(column in changes, changes)


def _listed(story_run: StoryRun, column: str, began: str) -> CheckOutcome:
    node = story_run.lineage.node(SOURCE)
    query = {"from": began, "node": node, "depth": 3, "limit": 5_000}
    found = story_run.lineage.get("/api/v2/graph/diff", **query)
    schemas = {
        one["dataset"]: "; ".join(one["changes"])
        for one in found.get("schemas", [])
        if column in " ".join(one["changes"])
    }
    ends = [
        f"datasetField:{':'.join(story_run.lineage.name(one))}:{column}"
        for one in (SOURCE, TOPIC, LANDING)
    ]
    edges = {(one["origin"], one["destination"]) for one in found.get("columnsAdded", [])}
    ok = story_run.lineage.node(TOPIC) in schemas and set(pairwise(ends)) <= edges
    named = sorted({node.rpartition(":")[2] for node in schemas})
    return CheckOutcome(
        ok, f"schemas of {', '.join(named)} have it; {len(edges)} edges of columns are new"
    )


def _hit(story_run: StoryRun, column: str, *, breaks: set[str], carries: set[str]) -> CheckOutcome:
    found = story_run.lineage.impact(SOURCE, {"kind": "drop", "column": column})
    by: dict[str, set[str]] = {"breaks": set(), "carries": set()}
    for job in found["jobs"]:
        by.setdefault(job["effect"], set()).add(job["name"])
    ok = by["breaks"] == breaks and by["carries"] >= carries
    return CheckOutcome(ok, "; ".join(f"{e}: {', '.join(sorted(j))}" for e, j in by.items() if j))


def _same(story_run: StoryRun, job: str, run: str) -> CheckOutcome:
    latest = story_run.lineage.latest(job)
    return CheckOutcome(latest["id"] == run and latest["state"] == "RUNNING", latest["state"])
