"""Writes the events of a demo that has ended to the fixture of the orders pipeline.

    headwater demo --once --home HOME && python -m scripts.record_pipeline HOME

Of each job the last event, with names in place of the machine's addresses, and without what tells about
the machine: facets of runs but those on the parent and on how they ended, and where the code lay.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import export

if TYPE_CHECKING:
    from collections.abc import Iterable

FIXTURE = Path(__file__).parents[1] / "tests/fixtures/server/orders-pipeline.ndjson"
ADDRESSES = (
    ("kafka://127.0.0.1:[0-9]+", "kafka://broker:9092"),
    ("postgres://127.0.0.1:[0-9]+", "postgres://shop-db:5432"),
    ("http://127.0.0.1:[0-9]+", "http://catalog:8181"),
    ('("cluster"|"workerId"): "127.0.0.1:[0-9]+"', r'\1: "connect:8083"'),
    ("127.0.0.1:[0-9]+", "broker:9092"),
)
KEPT_OF_RUNS = ("parent", "headwater_connect", "headwater_end")
LEFT_OUT_OF_JOBS = ("sourceCodeLocation",)


def recorded(events: Iterable[bytes]) -> str:
    """The last event of each job, one a line, in the order in which they happened."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for event in map(json.loads, events):
        job, run = event["job"], event["run"]
        run["facets"] = {k: v for k, v in run.get("facets", {}).items() if k in KEPT_OF_RUNS}
        run["facets"].get("headwater_end", {}).pop("by", None)
        job["facets"] = {
            k: v for k, v in job.get("facets", {}).items() if k not in LEFT_OUT_OF_JOBS
        }
        last[job["namespace"], job["name"]] = event
    lines = sorted(last.values(), key=lambda event: event["eventTime"])
    text = "".join(f"{json.dumps(one, sort_keys=True)}\n" for one in lines)
    for address, name in ADDRESSES:
        text = re.sub(address, name, text)
    return text


def main() -> None:
    """Read the store of the demo whose home is named, and write the fixture."""
    store = open_store(f"sqlite:///{Path(sys.argv[1]).absolute()}/data/server/lineage.db")
    FIXTURE.write_text(recorded(export(store)))
    store.close()


if __name__ == "__main__":
    main()
