"""What the lineage server of a lab answers, in the words of the demo and its stories."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import httpx

from headwater.lab.ports import LOOPBACK
from headwater.lab.services.logins import reader_headers
from headwater.lab.services.s3 import warehouse
from headwater.lineage.naming import from_uri, hive_location

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

ANSWER_SECONDS = 30.0
NOT_SEEN = "not seen"


class LineageClient:
    """Asks the server. A dataset is a store and a name, as `kafka orders`."""

    def __init__(self, lab: LabContext) -> None:
        self.url = lab.url("server")
        self.namespace = lab.home.settings.namespace
        self.http = httpx.Client(
            base_url=self.url,
            timeout=ANSWER_SECONDS,
            trust_env=False,
            headers=reader_headers(lab),
        )
        self.warehouse = warehouse(lab)
        self.hive = lab.home.settings.hive
        self.namespaces = {
            "postgres": f"postgres://{LOOPBACK}:{lab.port('postgres')}",
            "kafka": f"kafka://{LOOPBACK}:{lab.port('kafka')}",
            "raw": f"s3://{lab.home.settings.archive}",
            "exports": "s3://exports",
            "warehouse": "s3://warehouse",
        }

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """An answer; empty when the server knows nothing of what was asked."""
        answer = self.http.get(path + (f"?{urlencode(query)}" if query else ""))
        if answer.status_code == 404:
            return {}
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def name(self, dataset: str) -> tuple[str, str]:
        """Namespace and name; a store that is not the lab's own is its namespace."""
        store, _, name = dataset.partition(" ")
        if self.hive and store == "warehouse":
            return from_uri(hive_location(self.warehouse, *name.split("/")))
        return self.namespaces.get(store, store), name

    def node(self, dataset: str) -> str:
        return f"dataset:{':'.join(self.name(dataset))}"

    def job(self, name: str) -> dict[str, Any]:
        return self.get(f"/api/v1/namespaces/{self.namespace}/jobs/{quote(name, safe='')}")

    def runs(self, job: str, limit: int = 20) -> list[dict[str, Any]]:
        """A job's runs, the newest first."""
        path = f"/api/v2/jobs/{self.namespace}/{quote(job, safe='')}/runs"
        return list(self.get(path, limit=limit).get("runs", []))

    def latest(self, job: str) -> dict[str, Any]:
        """A job's newest run; one in the state `not seen` when there is none."""
        return next(iter(self.runs(job, 1)), {"id": None, "state": NOT_SEEN})

    def listed(self) -> list[dict[str, Any]]:
        """Every job of the lab's."""
        found = self.get(f"/api/v1/namespaces/{self.namespace}/jobs", limit=1000)
        return list(found.get("jobs", []))

    def jobs(self, state: str | None = None) -> list[str]:
        """Names of jobs; only those whose latest run is in a state, if one is named."""
        return [job["name"] for job in self.listed() if state in (None, state_of(job))]

    def running(self) -> list[str]:
        """Jobs whose latest run goes on."""
        return self.jobs("RUNNING")

    def dataset(self, dataset: str, part: str = "", **query: object) -> dict[str, Any]:
        """A dataset, or a part of what is known of it, as `/freshness`."""
        space, name = (quote(text, safe="") for text in self.name(dataset))
        return self.get(f"/api/v2/datasets/{space}/{name}{part}", **query)

    def datasets(self) -> list[str]:
        """Every dataset that the server shows, each with its namespace in place of a store."""
        spaces = self.get("/api/v1/namespaces", limit=1000).get("namespaces", [])
        return [
            f"{space['name']} {one['name']}"
            for space in spaces
            for one in self.get(
                f"/api/v1/namespaces/{quote(space['name'], safe='')}/datasets", limit=1000
            ).get("datasets", [])
        ]

    def fields(self, dataset: str) -> list[str]:
        """Names of a dataset's columns now."""
        versions = self.dataset(dataset, "/history", limit=1).get("versions", [])
        return [field["name"] for field in versions[0]["fields"]] if versions else []

    def leads(self, origin: str, field: str, target: str, column: str) -> bool:
        """Whether the target's column comes from the origin's, through whatever lies between."""
        node = f"datasetField:{':'.join(self.name(target))}:{column}"
        source = f"datasetField:{':'.join(self.name(origin))}:{field}"
        answer = self.get("/api/v1/column-lineage", depth=20, nodeId=node)
        return any(found["id"] == source for found in answer.get("graph", []))

    def graph(self, node: str, depth: int = 20) -> dict[str, Any]:
        """Jobs and datasets around a node."""
        return self.get("/api/v2/map", node=node, depth=depth) or {"nodes": [], "edges": []}

    def events(self, job: str, since: str, kinds: str = "") -> list[dict[str, Any]]:
        """What was sent of a job from a moment on."""
        query = {"job": f"job:{self.namespace}:{job}", "since": since, "limit": 1000}
        if kinds:
            query["type"] = kinds
        records = self.get("/api/v2/events", **query).get("records", [])
        return [record["event"] for record in records if "event" in record]

    def impact(self, dataset: str, *changes: dict[str, str]) -> dict[str, Any]:
        """Who would be hit if a dataset changed; empty while the server does not know it."""
        body = {"node": self.node(dataset), "changes": changes}
        answer = self.http.post("/api/v2/impact", json=body)
        if answer.status_code == 404:
            return {}
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def proposed(self, one: str, other: str) -> dict[str, Any]:
        """The pair that doctor reports for two names, if it takes them for one dataset."""
        wanted = {self.name(one), self.name(other)}
        found = self.get("/api/v2/doctor")
        for pair in found.get("pairs", []):
            sides = [pair[side] for side in ("alias", "dataset")]
            if {(side["namespace"], side["name"]) for side in sides} == wanted:
                return {**pair, "sure": pair["score"] >= found["defaultScore"]}
        return {}

    def join(self, one: str, other: str) -> None:
        """Let doctor record that two names are one dataset."""
        pair = self.proposed(one, other)
        body = {"action": "apply", "pairs": [{side: pair[side] for side in ("alias", "dataset")}]}
        self.http.post("/api/v2/doctor", json=body).raise_for_status()

    def part(self, prefix: str) -> None:
        """Take back what doctor recorded of datasets of a prefix, and nothing else that it did."""
        recorded = self.get("/api/v2/doctor")["recorded"]
        others = [
            {side: pair[side] for side in ("alias", "dataset")}
            for pair in recorded
            if not re.split(r"[./]", pair["dataset"]["name"])[-1].startswith(prefix)
        ]
        if len(others) == len(recorded):
            return
        # Doctor takes back all or nothing: what somebody else had it do is done again.
        self.http.post("/api/v2/doctor", json={"action": "undo"}).raise_for_status()
        if others:
            body = {"action": "apply", "pairs": others}
            self.http.post("/api/v2/doctor", json=body).raise_for_status()

    def hide_dataset(self, dataset: str) -> None:
        """Show a dataset no more until it is reported again."""
        space, name = (quote(part, safe="") for part in self.name(dataset))
        self._hide(f"/api/v1/namespaces/{space}/datasets/{name}")

    def hide_job(self, job: str) -> None:
        """The same for a job."""
        self._hide(f"/api/v1/namespaces/{self.namespace}/jobs/{quote(job, safe='')}")

    def hide_namespace(self, namespace: str) -> None:
        """The same for a namespace and what is in it."""
        self._hide(f"/api/v1/namespaces/{quote(namespace, safe='')}")

    def hide_datasets(self, store: str, prefix: str) -> None:
        """The same for every dataset of a store whose name begins so."""
        path = f"/api/v1/namespaces/{quote(self.namespaces[store], safe='')}/datasets"
        for one in self.get(path, limit=1000).get("datasets", []):
            if one["name"].startswith(prefix):
                self.hide_dataset(f"{store} {one['name']}")

    def _hide(self, path: str) -> None:
        answer = self.http.delete(path)
        if answer.status_code != 404:
            answer.raise_for_status()

    def page(self, path: str = "/", **query: str) -> str:
        """An address of the page."""
        return f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")

    def job_page(self, job: str) -> str:
        return self.page(f"/jobs/{self.namespace}/{quote(job, safe='')}")

    def dataset_page(self, dataset: str) -> str:
        return self.page("/datasets/" + "/".join(quote(n, safe="") for n in self.name(dataset)))

    def graph_page(self, dataset: str, depth: int = 2, **query: str) -> str:
        """The graph around a dataset."""
        return self.page("/graph", node=self.node(dataset), depth=str(depth), **query)


def state_of(job: dict[str, Any]) -> str:
    """The state of the newest run of a job as `/api/v1` shows it."""
    return str((job.get("latestRun") or {}).get("state", NOT_SEEN))
