"""What people say of jobs and datasets by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from .making import event, facet

if TYPE_CHECKING:
    from .conftest import Client

OWNED = {
    "ownership": facet(owners=[{"name": "team:etl"}]),
    "documentation": facet(description="as reported"),
}
JOB = "/api/v2/jobs/jobs/load"


def owners(answer: Any, name: str = "headwater_about") -> list[str]:
    return [one["name"] for one in answer["facets"][name]["owners"]]


def test_what_people_say_stands_whatever_a_producer_reports(client: Client) -> None:
    client.post(event("START", 0, inputs=["a"], outputs=["b"], job_facets=OWNED))
    assert client.get(JOB)["description"] == "as reported"
    said = {"description": " Loads b. ", "owners": ["team:bi", "ann", "ann"]}
    answer = client.call("PUT", f"{JOB}/about", json=said)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"description": "Loads b.", "owners": ["team:bi", "ann"]}

    client.post(event("RUNNING", 60, inputs=["a"], outputs=["b"], job_facets=OWNED))
    page = client.get(JOB)
    assert page["description"] == "Loads b."
    assert owners(page) == ["team:bi", "ann"]
    assert owners(page, "ownership") == ["team:etl"], "both can be seen"
    assert [one["name"] for one in page["outputs"]] == ["b"], "its lineage is as it was"
    assert page["state"] == "RUNNING"
    a = next(node for node in client.get("/api/v2/map")["nodes"] if node["name"] == "a")
    hit = client.call(
        "POST", "/api/v2/impact", json={"node": a["id"], "changes": [{"kind": "delete"}]}
    ).json()
    assert [one["name"] for one in hit["jobs"][0]["owners"]] == ["team:bi", "ann"]

    client.call("PUT", f"{JOB}/about", json={"description": "", "owners": []})
    page = client.get(JOB)
    assert page["description"] == "as reported"
    assert "headwater_about" not in page["facets"]


def test_a_dataset_is_described_and_that_is_no_write(client: Client) -> None:
    client.post(event("START", 0, outputs=["b"]))
    b = next(node for node in client.get("/api/v2/map")["nodes"] if node["name"] == "b")
    path = f"/api/v2/datasets/{quote(b['namespace'], safe='')}/b"
    before = client.get(path)["freshness"]["lastWrittenAt"]
    client.call("PUT", f"{path}/about", json={"description": "Totals", "owners": ["ann"]})
    found = client.get(path)
    assert (found["description"], owners(found)) == ("Totals", ["ann"])
    assert found["freshness"]["lastWrittenAt"] == before
    *_, newest = client.get("/api/v2/events")["records"]
    said = newest["command"]["event"]["dataset"]["facets"]["headwater_about"]
    assert said["description"] == "Totals", "it is in the history"


def test_what_is_said_under_another_name_is_on_its_page(client: Client) -> None:
    client.post(event("START", 0, inputs=["a"], outputs=["b"]))
    named = {one: {"namespace": "s3://lake", "name": one} for one in "ab"}
    answer = client.call(
        "POST", "/api/v2/aliases", json={"alias": named["a"], "dataset": named["b"]}
    )
    assert answer.status_code == 201, answer.text
    path = "/api/v2/datasets/s3%3A%2F%2Flake/a"
    client.call("PUT", f"{path}/about", json={"description": "Totals"})
    assert client.get(path)["description"] == "Totals"


@pytest.mark.parametrize(
    "body",
    [
        {"description": 1},
        {"description": "x" * 4_001},
        {"owners": "ann"},
        {"owners": [""]},
        {"owners": ["x" * 201]},
        {"owners": ["x"] * 21},
        {"description": "a\0b"},
    ],
)
def test_what_cannot_be_kept_is_refused(client: Client, body: dict[str, Any]) -> None:
    client.post(event("START", 0))
    assert client.call("PUT", f"{JOB}/about", json=body).status_code == 422
    assert "headwater_about" not in client.get(JOB)["facets"]


def test_nothing_is_said_of_what_is_not_there(client: Client) -> None:
    client.post(event("START", 0))
    for path in ("/api/v2/jobs/jobs/nobody", "/api/v2/datasets/db/nothing"):
        assert client.call("PUT", f"{path}/about", json={"owners": ["ann"]}).status_code == 404
