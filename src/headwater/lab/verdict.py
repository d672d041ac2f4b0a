"""Does the lineage server show what the demo's pipeline does? Every job, edge and column path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import msgspec

from headwater.lab.ports import LOOPBACK
from headwater.lab.services.lineage import NAMESPACE

if TYPE_CHECKING:
    from headwater.lab.services.base import Context

STREAMING = frozenset({"RUNNING"})
BATCH = frozenset({"RUNNING", "COMPLETED"})
JOBS = {
    "orders-source": STREAMING,
    "orders-s3-sink": STREAMING,
    "orders-iceberg-sink": STREAMING,
    "supplier-stats": STREAMING,
    "iceberg-ingestion": STREAMING,
    "supplier_stats.overwrite_by_expression.default_supplier_stats": BATCH,
}
SUMMARY = "supplier_stats.overwrite_by_expression.default_supplier_stats"

# What each job reads and writes; a dataset is a store and a name.
EDGES = (
    ("orders-source", ("postgres shop.public.orders", "postgres shop.public.bids"), ("kafka orders", "kafka bids")),
    ("orders-s3-sink", ("kafka orders", "kafka bids"), ("raw archive",)),
    (
        "orders-iceberg-sink",
        ("kafka orders", "kafka bids"),
        ("warehouse default/orders_landing", "warehouse default/bids"),
    ),
    ("supplier-stats", ("kafka orders",), ("kafka supplier-stats",)),
    ("iceberg-ingestion", ("kafka orders",), ("warehouse default/orders",)),
    (SUMMARY, ("warehouse default/orders",), ("warehouse default/supplier_stats",)),
)  # fmt: skip

# From where a number comes, through every job between.
COLUMNS = (
    ("postgres shop.public.orders", "price", "kafka orders", "price"),
    ("postgres shop.public.orders", "price", "warehouse default/orders_landing", "price"),
    ("postgres shop.public.bids", "price", "warehouse default/bids", "price"),
    ("postgres shop.public.orders", "price", "warehouse default/orders", "price"),
    ("postgres shop.public.orders", "price", "kafka supplier-stats", "total_price"),
    ("postgres shop.public.orders", "price", "warehouse default/supplier_stats", "total_price"),
    ("postgres shop.public.orders", "supplier", "warehouse default/supplier_stats", "supplier"),
)


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
    missing: list[str]


class Judge:
    """Asks the lineage server of a lab."""

    def __init__(self, lab: Context) -> None:
        self.http = httpx.Client(base_url=lab.url("server"), timeout=30, trust_env=False)
        self.namespaces = {
            "postgres": f"postgres://{LOOPBACK}:{lab.port('postgres')}",
            "kafka": f"kafka://{LOOPBACK}:{lab.port('kafka')}",
            "raw": "s3://raw",
            "warehouse": "s3://warehouse",
        }

    def verdict(self) -> Verdict:
        """Look at everything once."""
        jobs = {name: self._job(name) for name in JOBS}
        seen_jobs = [
            Item(what=name, state=_state(jobs[name]), seen=_state(jobs[name]) in states)
            for name, states in JOBS.items()
        ]
        edges = []
        for job, inputs, outputs in EDGES:
            reads, writes = _names(jobs[job], "inputs"), _names(jobs[job], "outputs")
            edges += [Item(what=f"{d} → {job}", seen=self._name(d) in reads) for d in inputs]
            edges += [Item(what=f"{job} → {d}", seen=self._name(d) in writes) for d in outputs]
        columns = [
            Item(what=f"{d}.{f} → {e}.{g}", seen=self._path(d, f, e, g)) for d, f, e, g in COLUMNS
        ]
        missing = [i.what for part in (seen_jobs, edges, columns) for i in part if not i.seen]
        return Verdict(
            ok=not missing, jobs=seen_jobs, edges=edges, columns=columns, missing=missing
        )

    def running(self) -> list[str]:
        """Jobs of the demo whose latest run goes on."""
        found = self._get(f"/api/v1/namespaces/{NAMESPACE}/jobs?limit=200") or {"jobs": []}
        return [job["name"] for job in found["jobs"] if _state(job) == "RUNNING"]

    def _job(self, name: str) -> dict[str, Any]:
        return self._get(f"/api/v1/namespaces/{NAMESPACE}/jobs/{quote(name, safe='')}") or {}

    def _path(self, origin: str, field: str, target: str, column: str) -> bool:
        """Whether the server leads from the target's column back to the origin's."""
        node = f"datasetField:{':'.join(self._name(target))}:{column}"
        answer = self._get(f"/api/v1/column-lineage?depth=20&nodeId={quote(node, safe='')}")
        source = f"datasetField:{':'.join(self._name(origin))}:{field}"
        return any(found["id"] == source for found in (answer or {"graph": []})["graph"])

    def _name(self, dataset: str) -> tuple[str, str]:
        store, name = dataset.split(" ")
        return self.namespaces[store], name

    def _get(self, path: str) -> dict[str, Any] | None:
        answer = self.http.get(path)
        return answer.json() if answer.status_code == 200 else None


def _state(job: dict[str, Any]) -> str:
    return str((job.get("latestRun") or {}).get("state", "not seen"))


def _names(job: dict[str, Any], side: str) -> set[tuple[str, str]]:
    return {(d["namespace"], d["name"]) for d in job.get(side, [])}
