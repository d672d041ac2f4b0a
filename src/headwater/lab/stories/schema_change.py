"""A column added in the shop's database walks down to Iceberg."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from headwater.lab.demo.run import STREAMS
from headwater.lab.demo.verdict import STORY_COLUMNS, added_by_story
from headwater.lab.stories.base import Seen, Story

if TYPE_CHECKING:
    from headwater.lab.stories.stage import Stage

SOURCE, TOPIC = "postgres shop.public.orders", "kafka orders"
LANDING, TABLE = "warehouse default/orders_landing", "default.orders_landing"
OF_STREAM = "default.orders"
KNOWN = {"order_id", "item", "price", "supplier", "bid_time"}
# The registry is asked for each topic's schema once a minute.
ROTATION_SECONDS = 150.0


class SchemaChange(Story):
    """Somebody alters a table; nobody told the rest of the estate."""

    name = "schema-change"
    title = "A column is added in PostgreSQL"
    shows = "The new column in the topic and the Iceberg table, and the path between them."

    def play(self, stage: Stage) -> None:
        """Add a column, order with it, and follow it."""
        self.undo(stage)
        column = _new_name(stage)
        runs = {job: stage.check_state(job, "RUNNING") for job in STREAMS}
        stage.look("the schema's history", stage.lineage.dataset_page(TOPIC))
        stage.look(
            "the column's path through the graph",
            stage.lineage.graph_page(LANDING, columns="1", column=column),
        )
        stage.tell(f"Adding the column {column} to shop.public.orders, and ordering with it.")
        _alter(stage, sql.SQL("add column {} text").format(sql.Identifier(column)))
        order = stage.order(extra={column: "autumn"})
        stage.check(
            f"the order's {column} has come to Iceberg's {TABLE}",
            lambda: _landed(stage, order, column),
        )
        stage.check(
            f"lineage knows {column} in the topic orders",
            lambda: _has(stage, TOPIC, column),
            seconds=ROTATION_SECONDS,
        )
        stage.check(
            f"lineage leads from shop.public.orders.{column} to {TABLE}.{column}",
            lambda: stage.lineage.leads(SOURCE, column, LANDING, column),
            seconds=ROTATION_SECONDS,
        )
        stage.check("the topic's history says it in words", lambda: _history(stage, column))
        stage.check(
            f"the streams went on: {OF_STREAM} has the order too",
            lambda: stage.gauge.has_order(OF_STREAM, order) is not None,
        )
        for job, run in runs.items():
            stage.check(f"{job} is in the same run as before", partial(_same, stage, job, run))

    def undo(self, stage: Stage) -> None:
        """Drop what the story added, in the database and, once all is read, in the table."""
        added = _added(stage)
        for column in added:
            stage.tell(f"Dropping the column {column} again.")
            _alter(stage, sql.SQL("drop column {}").format(sql.Identifier(column)))
        left = [name for name in _fields(stage) if added_by_story(name)]
        if left:
            order = stage.order()
            stage.check(
                "orders without the column arrive",
                lambda: stage.gauge.has_order(TABLE, order) is not None,
            )
            with stage.gauge.catalog.load_table(TABLE).update_schema() as change:
                for column in left:
                    change.delete_column(column)


def _new_name(stage: Stage) -> str:
    """A name the topic never had, so that seeing it means something."""
    versions = stage.lineage.dataset(TOPIC, "/history", limit=500).get("versions", [])
    seen = {field["name"] for version in versions for field in version["fields"]}
    fresh = [name for name in STORY_COLUMNS if name not in seen]
    return fresh[0] if fresh else f"note_{len(seen)}"


def _added(stage: Stage) -> list[str]:
    query = "select column_name from information_schema.columns where table_name = 'orders'"
    with psycopg.connect(stage.database_url) as database:
        found = [row[0] for row in database.execute(query)]
    return [name for name in found if name not in KNOWN]


def _alter(stage: Stage, change: sql.Composed) -> None:
    with psycopg.connect(stage.database_url) as database:
        database.execute(sql.SQL("alter table orders {}").format(change))


def _fields(stage: Stage) -> list[str]:
    return [field.name for field in stage.gauge.catalog.load_table(TABLE).schema().fields]


def _landed(stage: Stage, order: str, column: str) -> Seen:
    if column not in _fields(stage):
        return Seen(ok=False, found=f"{TABLE} has no column {column}")
    value = stage.gauge.has_order(TABLE, order, column)
    return Seen(value == "autumn", value or "the order is not there")


def _has(stage: Stage, dataset: str, column: str) -> Seen:
    fields = stage.lineage.fields(dataset)
    return Seen(column in fields, ", ".join(fields))


def _history(stage: Stage, column: str) -> Seen:
    versions = stage.lineage.dataset(TOPIC, "/history", limit=1).get("versions", [])
    said = "; ".join(str(change) for change in versions[0].get("changes", [])) if versions else ""
    return Seen(column in said, said)


def _same(stage: Stage, job: str, run: str) -> Seen:
    latest = stage.lineage.latest(job)
    return Seen(latest["id"] == run and latest["state"] == "RUNNING", latest["state"])
