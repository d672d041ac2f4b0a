"""The events of all golden connectors are those that were recorded before there was one writer.

`tests/fixtures/lineage/connect_events.json` holds a hash for each case. An intended change records
them anew: `python -m tests.unit.connect.test_recorded_events`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from headwater import __version__
from headwater.lineage.openlineage.events import canonical

from .cases import cases
from .test_event import made

RECORDED = Path(__file__).parents[2] / "fixtures" / "lineage" / "connect_events.json"


def recorded(case: dict[str, Any]) -> str:
    event = made(case, cluster="shop")
    # Empty members say nothing; whether they are written is the encoder's choice.
    for item in event["inputs"]:
        if not item.get("inputFacets"):
            item.pop("inputFacets", None)
    for item in event["outputs"]:
        if not item.get("outputFacets"):
            item.pop("outputFacets", None)
        columns = item["facets"].get("columnLineage", {})
        if not columns.get("dataset"):
            columns.pop("dataset", None)
    raw = canonical(event).replace(f":{__version__}".encode(), b":VERSION")
    return hashlib.sha256(raw).hexdigest()[:16]


def test_every_event_is_the_recorded_one() -> None:
    known = json.loads(RECORDED.read_text())
    found = {f"{case['file']}: {case['case']}": recorded(case) for case in cases()}
    assert {name for name in found if found[name] != known.get(name)} == set()


if __name__ == "__main__":
    hashes = {f"{case['file']}: {case['case']}": recorded(case) for case in cases()}
    RECORDED.write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")
