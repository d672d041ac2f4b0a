"""A job names the same data differently: one pipeline, two graphs."""

from __future__ import annotations

import uuid
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from headwater.lab.stories.base import CheckOutcome, Story

if TYPE_CHECKING:
    from headwater.lab.demo.lineage_client import LineageClient
    from headwater.lab.stories.story_run import StoryRun

SOURCE = "postgres shop.public.orders"
ELSEWHERE = "hive://metastore.elsewhere:9083"
PREFIX = "story_"
DEAD_LETTERS = f"{PREFIX}dead"
GAP = 3


class Misaligned(Story):
    """A team's job was configured by hand, and calls the table by a name of its own."""

    name = "misaligned"
    title = "A job names the same data differently"
    shows = (
        "Two graphs, the break between them, and one graph once doctor has joined the two names."
    )

    def play(self, story_run: StoryRun) -> None:
        """Write a table under another name, read it under its own, then join the names."""
        mark = uuid.uuid4().hex[:6]
        table, total = f"{PREFIX}orders_{mark}", f"{PREFIX}stats_{mark}"
        theirs = f"{ELSEWHERE} default.{table}"
        ours, summary = f"warehouse default/{table}", f"warehouse default/{total}"
        writer, reader = f"{PREFIX}ingestion_{mark}", f"{PREFIX}summary_{mark}"
        graph_page = story_run.lineage.graph_page
        story_run.link_page("the writer's graph", graph_page(theirs, 3), lasting=False)
        story_run.link_page("the reader's graph", graph_page(summary, 3), lasting=False)
        story_run.describe(f"{writer} writes default.{table}, and reports it as {theirs}.")
        story_run.batch(
            "iceberg_ingestion.py",
            *("--once", "--table", f"default.{table}", "--dead-letter-topic", DEAD_LETTERS),
            name=writer,
            env={
                "OPENLINEAGE_JOBNAME": writer,
                "OPENLINEAGE_DATASET_NAMESPACE": ELSEWHERE,
                "OPENLINEAGE_DATASET_NAME": f"default.{table}",
            },
        )
        story_run.describe(f"{reader} reads the same default.{table}, and calls it what it is.")
        story_run.batch(
            "supplier_stats.py",
            *("--table", f"default.{table}", "--output-table", f"default.{total}"),
            name=reader,
            env={"OPENLINEAGE_JOBNAME": reader},
        )
        leads = story_run.lineage.leads
        story_run.check(
            f"the data is there: default.{total} has rows",
            lambda: _rows(story_run.counter.rows(f"default.{total}")),
        )
        story_run.check(
            "the writer's graph leads from the shop to the name of its own",
            lambda: leads(SOURCE, "price", theirs, "price"),
        )
        story_run.check(
            "the reader's graph leads from the table to the summary",
            lambda: leads(ours, "price", summary, "total_price"),
        )
        story_run.check(
            "nobody writes what the reader reads: the two graphs do not meet",
            lambda: _apart(story_run.lineage, summary, writer),
        )
        left = [*reversed(_chain(story_run.lineage, theirs))]
        right = [*reversed(_chain(story_run.lineage, summary))]
        story_run.show(_side_by_side("the writer's graph", left, "the reader's graph", right))
        story_run.link_page(
            "what doctor finds in the two names", story_run.lineage.page("/doctor"), lasting=False
        )
        story_run.check(
            "doctor takes both names for one table, almost surely",
            lambda: _proposed(story_run.lineage, theirs, ours),
        )
        story_run.describe("Doctor joins the two graphs.")
        story_run.lineage.join(theirs, ours)
        story_run.check(
            "one graph: shop.public.orders.price leads to the summary's total_price",
            lambda: leads(SOURCE, "price", summary, "total_price"),
        )

    def undo(self, story_run: StoryRun) -> None:
        """Drop the tables, take the names apart again, and hide what was reported."""
        lineage = story_run.lineage
        lineage.part(PREFIX)
        for _, name in story_run.counter.catalog.list_tables("default"):
            if name.startswith(PREFIX):
                story_run.counter.catalog.drop_table(f"default.{name}")
                for dataset in (f"warehouse default/{name}", f"{ELSEWHERE} default.{name}"):
                    lineage.hide_dataset(dataset)
        lineage.hide_dataset(f"kafka {DEAD_LETTERS}")
        for job in lineage.jobs():
            if job.startswith(PREFIX):
                lineage.hide_job(job)


def _rows(count: int) -> CheckOutcome:
    return CheckOutcome(count > 0, f"{count} rows")


def _proposed(lineage: LineageClient, theirs: str, ours: str) -> CheckOutcome:
    pair = lineage.proposed(theirs, ours)
    if not pair:
        return CheckOutcome(ok=False, found="doctor does not propose them")
    proofs = ", ".join(one["text"] for one in pair["evidence"])
    return CheckOutcome(pair["sure"], f"{pair['score']}: {proofs}")


def _apart(lineage: LineageClient, summary: str, writer: str) -> CheckOutcome:
    nodes = [node["id"] for node in lineage.graph(lineage.node(summary))["nodes"]]
    met = [node for node in nodes if writer in node or lineage.node(SOURCE) == node]
    return CheckOutcome(
        not met and len(nodes) > 1, ", ".join(met) or f"{len(nodes)} nodes, none of theirs"
    )


def _chain(lineage: LineageClient, dataset: str) -> list[str]:
    """One way up from a dataset: dataset, job, dataset, … as far as it goes."""
    start = lineage.node(dataset)
    return _way_up(start, lineage.graph(start)["edges"], lineage.node(SOURCE))


def _way_up(start: str, edges: list[dict[str, Any]], source: str) -> list[str]:
    before: dict[str, set[str]] = {}
    for edge in edges:
        before.setdefault(edge["destination"], set()).add(edge["origin"])
    chain = [start]
    while fresh := before.get(chain[-1], set()) - set(chain):
        # What leads further up first: a statement that only made the table has no inputs. Then the
        # shortest name: the job itself, not what it ran for a batch.
        chain.append(min(fresh, key=lambda n: (n != source, n not in before, len(n), n)))
    return chain


def _side_by_side(title: str, left: list[str], other: str, right: list[str]) -> str:
    """Two chains, the end of the first beside the beginning of the second."""
    ours = [title, *map(_line, left)]
    theirs = [other, *[""] * (len(left) - 1), *map(_line, right)]
    width = max(map(len, ours)) + GAP
    rows = zip_longest(ours, theirs, fillvalue="")
    return "\n".join(f"{a:<{width}}{b}".rstrip() for a, b in rows)


def _line(node: str) -> str:
    kind, _, rest = node.partition(":")
    if kind == "job":  # by its application, without the statement
        return f"  ↓ {rest.rpartition(':')[2].partition('.')[0]}"
    space, _, name = rest.rpartition(":")
    return f"{space} {name}"
