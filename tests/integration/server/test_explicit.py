"""What producers say outright: which input feeds which output, and what became of a dataset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lineage.graph import Direction, NodeKind
from headwater.server.store.read.evidence import evidence
from headwater.server.store.read.output_sources import OutputSources
from headwater.server.store.view import Bodies, View

from .making import columns, dataset, event, facet

if TYPE_CHECKING:
    from headwater.server.store import Store

LAKE = "s3://lake"


def send(store: Store, *events: dict[str, Any]) -> None:
    for receipt in store.append([json.dumps(e).encode() for e in events]):
        assert receipt.error is None
        assert receipt.seq


def view(store: Store) -> View:
    return View(store.connection, Bodies(store.packer))


def number(store: Store, name: str) -> int:
    found = view(store).dataset(LAKE, name)
    assert found is not None
    return found.root


def fed(store: Store, job: str = "load") -> dict[str, tuple[set[str], str]]:
    """Each output of a job: the names that feed it, and what says so."""
    seen = view(store)
    found = seen.job("jobs", job)
    assert found is not None
    feeds = OutputSources(seen).of_jobs([found.id])[found.id]
    names = {d.id: d.name for d in seen.datasets([*feeds, *(i for f in feeds.values() for i in f.inputs)]).values()}  # fmt: skip
    return {names[o]: ({names[i] for i in f.inputs}, f.basis) for o, f in feeds.items()}


def source(name: str, field: str | None = None) -> dict[str, Any]:
    made = {"namespace": LAKE, "name": name, "type": "DATASET"}
    return {**made, "field": field} if field else made


def entry(name: str, *inputs: dict[str, Any], **fields: dict[str, Any]) -> dict[str, Any]:
    mapped = {column: {"inputs": [item]} for column, item in fields.items()}
    return {**source(name), "inputs": list(inputs), "fields": mapped}


def test_without_a_word_every_input_feeds_every_output(store: Store) -> None:
    send(store, event("START", 0, inputs=["a", "b"], outputs=["x", "y"]))
    assert fed(store) == {"x": ({"a", "b"}, "all"), "y": ({"a", "b"}, "all")}


def test_column_lineage_narrows_the_inputs(store: Store) -> None:
    x = dataset("x", columnLineage=columns(id=("a", "id")))
    send(store, event("START", 0, inputs=["a", "b"], outputs=[x, "y"]))
    assert fed(store) == {"x": ({"a"}, "columnLineage"), "y": ({"a", "b"}, "all")}


def test_a_job_says_topic_by_topic_what_goes_where(store: Store) -> None:
    said = facet(entries=[entry("x", source("a"), id=source("a", "key")), entry("y", source("b"))])
    misled = dataset("x", columnLineage=columns(id=("b", "id")))
    send(store, event("START", 0, inputs=["a", "b"], outputs=[misled, "y"], job_facets={"lineage": said}))  # fmt: skip
    assert fed(store) == {"x": ({"a"}, "lineage"), "y": ({"b"}, "lineage")}
    rows = store.connection.all("SELECT source FROM column_link WHERE dataset = ?", (number(store, "x"),))  # fmt: skip
    assert rows == [(number(store, "a"),)]


def test_a_dataset_says_what_it_comes_from(store: Store) -> None:
    x = dataset(
        "x", lineage=facet(inputs=[source("a")], fields={"id": {"inputs": [source("c", "k")]}})
    )
    send(store, event("START", 0, inputs=["a", "b"], outputs=[x]))
    assert fed(store) == {"x": ({"a", "c"}, "lineage")}
    seen = view(store)
    job = seen.job("jobs", "load")
    assert job is not None
    assert number(store, "c") * 2 in job.state.open


def test_a_dataset_that_only_column_lineage_names_is_an_input(store: Store) -> None:
    x = dataset("x", columnLineage=columns(id=("a", "id"), rate=("b", "rate"), sum=("x", "sum")))
    send(store, event("START", 0, inputs=["a"], outputs=[x]))
    seen = view(store)
    job = seen.job("jobs", "load")
    assert job is not None
    read = {at // 2 for at in job.state.open if at % 2 == 0}
    assert read == {number(store, "a"), number(store, "b")}
    origins = {
        far for _, far, _ in seen.graph().next([(NodeKind.JOB.value, job.id)], Direction.UPSTREAM)
    }
    assert origins == {
        (NodeKind.DATASET.value, number(store, "a")),
        (NodeKind.DATASET.value, number(store, "b")),
    }


HIVE = "hive://metastore"


@pytest.mark.parametrize("said_before", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
def test_a_dataset_that_is_listed_is_no_further_input_by_another_name(
    store: Store, said_before: bool, explicit: bool
) -> None:
    """Column lineage calls an output, an input and a third dataset by names that are symlinks of theirs."""
    links = {
        name: facet(identifiers=[{"namespace": HIVE, "name": f"db.{name}", "type": "TABLE"}])
        for name in ("read", "written", "other")
    }
    told = event("COMPLETE", 0, run=9, job="told",
                 outputs=[dataset(name, symlinks=link) for name, link in links.items()])  # fmt: skip
    sources = [{"namespace": HIVE, "name": f"db.{name}", "field": "f"} for name in links]
    sources.append({"namespace": LAKE, "name": "other", "field": "f"})
    lineage: dict[str, Any] = {"columnLineage": facet(fields={"f": {"inputFields": sources}})}
    if explicit:
        sources = [{**one, "type": "DATASET"} for one in sources]
        lineage = {"lineage": facet(inputs=[], fields={"f": {"inputs": sources}})}
    symlinks = {} if said_before else links
    made = event(
        "COMPLETE", 5, inputs=[dataset("read", **_symlinks(symlinks, "read"))],
        outputs=[dataset("written", **lineage, **_symlinks(symlinks, "written"))],
    )  # fmt: skip
    send(store, *([told] if said_before else []), made)
    job = view(store).job("jobs", "load")
    assert job is not None
    datasets = view(store).datasets(at // 2 for at in job.state.open if at % 2 == 0)
    names = sorted((one.space, one.name) for one in datasets.values())
    # Each dataset once: by the name that stands first, or by the one that is listed.
    third = [(HIVE, "db.other")] if said_before else [(HIVE, "db.other"), (LAKE, "other")]
    itself = [(HIVE, "db.written")] if explicit else []
    assert names == sorted([*third, *itself, (LAKE, "read")])


def _symlinks(links: dict[str, Any], name: str) -> dict[str, Any]:
    return {"symlinks": links[name]} if name in links else {}


def test_an_output_said_to_come_from_nothing_has_no_inputs(store: Store) -> None:
    said = facet(entries=[entry("x"), entry("y", source("a"))])
    send(store, event("START", 0, inputs=["a"], outputs=["x"], job_facets={"lineage": said}))
    assert fed(store) == {"x": (set(), "lineage"), "y": ({"a"}, "lineage")}


@pytest.mark.parametrize("reverse", [False, True])
def test_a_rename_links_the_old_name_and_the_new(store: Store, reverse: bool) -> None:
    change = facet(lifecycleStateChange="RENAME",
                   previousIdentifier={"namespace": LAKE, "name": "old"})  # fmt: skip
    sent = [
        event("COMPLETE", 0, outputs=["old"]),
        event("COMPLETE", 10, run=2, job="rename", outputs=[dataset("new", lifecycleStateChange=change)]),
        event("COMPLETE", 20, run=3, job="read", inputs=["new"]),
    ]  # fmt: skip
    send(store, *(reversed(sent) if reverse else sent))
    assert number(store, "old") == number(store, "new")
    down = OutputSources(view(store))._around.of_datasets([number(store, "new")])
    assert len({job for job, _, _ in down}) == 3


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_dropped_dataset_is_dropped_until_it_is_written_again(
    store: Store, order: tuple[int, ...]
) -> None:
    drop = dataset("t", lifecycleStateChange=facet(lifecycleStateChange="DROP"))
    sent = [
        event("COMPLETE", 0, run=1, outputs=["t"]),
        event("COMPLETE", 10, run=2, job="drop", outputs=[drop]),
        event("COMPLETE", 20, run=3, outputs=["t"]),
    ]
    send(store, *(sent[i] for i in order if i < 2))
    found = view(store).dataset(LAKE, "t")
    assert found is not None
    assert found.state.gone
    assert found.state.lifecycle == "DROP"
    send(store, sent[2])
    found = view(store).dataset(LAKE, "t")
    assert found is not None
    assert not found.state.gone
    assert found.state.lifecycle == ""


def test_an_edge_answers_where_it_came_from(store: Store) -> None:
    proof = {"source": "runtime topics", "detail": "topics of x", "observed": True}
    said = facet(edges=[{"input": source("a"), "output": source("x"), "evidence": [proof]}],
                 datasets=[{**source("b"), "evidence": [{"source": "config key"}]}])  # fmt: skip
    entries = facet(entries=[entry("x", source("a")), entry("y", source("b"))])
    send(store, event("START", 0, inputs=["a", "b"], outputs=["x", "y"],
                      job_facets={"headwater_evidence": said, "lineage": entries}))  # fmt: skip
    seen = view(store)
    job = seen.job("jobs", "load")
    assert job is not None
    a, b, x, y = (number(store, name) for name in "abxy")
    answer = evidence(seen, job.id, a, x)
    assert answer is not None
    assert (answer["basis"], answer["items"]) == ("lineage", [proof])
    assert evidence(seen, job.id, b, y)["items"] == [{"source": "config key"}]  # type: ignore[index]
    assert evidence(seen, job.id, b, x) is None
