"""What the classes of Marquez's Java client take from an answer: one value they refuse fails the call.

`fixtures/marquez/java_client.json` has the fields of each class of the client of Marquez 0.51, read
from its source: a type, with `!` where the class refuses null, or the names of an enum. The client
itself was built from that source and driven against a server with these events.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import pytest

from headwater.server.api.java_client_urls import to_uri, to_url
from headwater.server.store import open_store

from .conftest import Client
from .making import columns, dataset, event, facet
from .test_marquez_page import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLASSES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "marquez" / "java_client.json").read_text()
)
GENERIC = re.compile(r"(?:List|Set)<(\w+)>")
NODE = re.compile(r"(?:dataset|datasetField|job|run):.*")


def to_moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


SCALARS: dict[str, Callable[[Any], object]] = {
    "String": lambda value: isinstance(value, str),
    "Boolean": lambda value: isinstance(value, bool),
    "Integer": lambda value: isinstance(value, int),
    "Long": lambda value: isinstance(value, int),
    "Object": lambda _: True,
    "Instant": lambda value: to_moment(value).tzinfo,
    "ZonedDateTime": lambda value: to_moment(value).tzinfo and "T" in value,
    "UUID": UUID,
    "URL": lambda value: to_url(value) == value,
    "URI": lambda value: to_uri(value) == value,
    "NodeId": NODE.fullmatch,
    # Guava's maps hold no null.
    "Map<String, Object>": lambda value: None not in value.values(),
    "Map<String, String>": lambda value: all(isinstance(v, str) for v in value.values()),
}


def faults(value: Any, kind: str, at: str = "$") -> list[str]:
    """Why the client could not read a value as one of its classes."""
    wanted = kind.removesuffix("!")
    if value is None:
        return [f"{at}: null"] if kind != wanted else []
    if items := GENERIC.fullmatch(wanted):
        if not isinstance(value, list):
            return [f"{at}: no list"]
        return [text for item in value for text in faults(item, items[1] + "!", f"{at}[]")]
    if wanted == "NodeData":
        wanted = (
            "ColumnLineageNodeData"
            if "fieldType" in value
            else "JobNodeData"
            if "simpleName" in value
            else "DatasetNodeData"
        )
    known = CLASSES.get(wanted)
    if isinstance(known, list):
        return [] if value in known else [f"{at}: {value!r} is no {wanted}"]
    if isinstance(known, dict):
        pairs = ((value.get(name), type_, f"{at}.{name}") for name, type_ in known.items())
        return [text for pair in pairs for text in faults(*pair)]
    try:
        taken = SCALARS[wanted](value)
    except (TypeError, ValueError, AttributeError):
        taken = False
    return [] if taken else [f"{at}: {value!r} is no {wanted}"]


def odd_events() -> Iterator[dict[str, Any]]:
    """Events that the server takes and whose values Java would not."""

    def made(name: str, **rest: Any) -> dict[str, Any]:
        return event("COMPLETE", 1, job=name, outputs=[dataset(name, "s3://odd")], **rest)

    nominal = facet(nominalStartTime="yesterday", nominalEndTime=5)
    yield made("nominal", run_facets={"nominalTime": nominal, "none": None})
    for n, url in enumerate(("https://x:port/", "git@x:y.git", "s3://b/y", "jar:x", 7)):
        yield made(
            f"location-{n}",
            job_facets={"sourceCodeLocation": facet(type="git", url=url), "none": None},
        )
    for n, (name, uri) in enumerate((("a b", "not a uri ^"), (None, None), (5, 6), ("", ""))):
        source = dataset(f"source-{n}", "s3://odd", dataSource=facet(name=name, uri=uri), x=None)
        yield event("COMPLETE", 2, job="sources", outputs=[source])
    texts = {"documentation": facet(description=5), "jobType": facet(processingType=5)}
    yield made("texts", job_facets=texts)
    described = dataset(
        "described", "s3://odd",
        documentation=facet(description=["x"]), datasetType=facet(datasetType=5),
        lifecycleStateChange=facet(lifecycleStateChange="EXPLODE"),
        schema=facet(fields=[{"name": "a"}, {"name": "a", "type": "int"}]),
        columnLineage=columns(a=("b", "x")),
    )  # fmt: skip
    yield event("COMPLETE", 3, job="texts", outputs=[described])
    yield {**made("producer"), "producer": "my producer ^", "schemaURL": "a b"}
    for time in (
        "2026-01-01T00:00Z",
        "2026-01-01 00:00:01Z",
        "2026-01-01T00:00+01:00[Europe/Oslo]",
    ):
        yield {**made("times"), "eventTime": time}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(open_store(f"sqlite:///{tmp_path_factory.mktemp('java')}/a.db"))
    load(client)
    client.post(*odd_events())
    yield client
    client.close()


def answers(client: Client) -> Iterator[tuple[str, str]]:
    """Every request that the client makes of what a server holds, and the class of its answer."""
    yield from (("/namespaces?limit=1000", "Namespaces"), ("/sources?limit=1000", "Sources"))
    yield from (("/tags", "Tags"), ("/search?q=o", "SearchResults"))
    yield "/events/lineage?limit=1000&sortDirection=asc", "Events"
    yield "/events/lineage?after=2020-01-01T00:00Z&before=2027-01-01T00:00%2B01:00", "Events"
    for namespace in client.get("/api/v1/namespaces", limit=1000)["namespaces"]:
        space = f"/namespaces/{quote(namespace['name'], safe='')}"
        yield from ((space, "Namespace"), (f"{space}/datasets?limit=1000", "Datasets"))
        yield f"{space}/jobs?limit=1000", "Jobs"
        for one in client.get(f"/api/v1{space}/datasets", limit=1000)["datasets"]:
            path = f"{space}/datasets/{quote(one['name'], safe='')}"
            yield from ((path, "Dataset"), (f"{path}/versions", "DatasetVersions"))
            node = f"{namespace['name']}:{one['name']}"
            yield f"/lineage?nodeId={quote('dataset:' + node)}", "Lineage"
            yield (
                f"/column-lineage?nodeId={quote('dataset:' + node)}&withDownstream=true",
                "Lineage",
            )
        for one in client.get(f"/api/v1{space}/jobs", limit=1000)["jobs"]:
            path = f"{space}/jobs/{quote(one['name'], safe='')}"
            yield from ((path, "Job"), (f"{path}/versions", "JobVersions"))
            yield f"{path}/runs", "Runs"
            yield (
                f"/lineage?nodeId={quote('job:' + namespace['name'] + ':' + one['name'])}",
                "Lineage",
            )


def test_every_answer_is_one_that_the_classes_take(loaded: Client) -> None:
    found: list[str] = []
    asked = set()
    for path, kind in answers(loaded):
        response = loaded.call("GET", f"/api/v1{path}")
        assert response.status_code == 200, (path, response.text)
        found += [f"{path} {fault}" for fault in faults(response.json(), kind)]
        asked.add(kind)
    assert found == []
    assert asked >= {"Jobs", "Job", "Runs", "JobVersions", "Datasets", "DatasetVersions", "Lineage"}


def test_what_was_sent_is_kept_as_it_was_sent(loaded: Client) -> None:
    shown = loaded.get("/api/v2/jobs/jobs/location-1")["location"]
    assert shown == "git@x:y.git"
    versions = loaded.get("/api/v1/namespaces/jobs/jobs/location-1/versions")["versions"]
    assert [version["location"] for version in versions] == [None]
