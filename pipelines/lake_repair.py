"""Batch job `lineage-lake-repair`: lets events count that arrived later than the bound of the lake's stream.

`lake run --late 7d` keeps such events and derives nothing from them, so that a load of old events costs
the stream nothing. This computes the jobs again that they touch, once.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import lake_derive
import options
from lake_store import Lake

if TYPE_CHECKING:
    import argparse

JOB = "lineage-lake-repair"


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    spark = options.attach(options.session(name, settings, "events"), name)
    lake = Lake(spark, settings.catalog, settings.namespace)
    lake.create()
    events, jobs = lake_derive.repair(lake)
    if settings.json:
        sys.stdout.write(json.dumps({"events": events, "jobs": jobs}) + "\n")
    else:
        sys.stdout.write(f"{events:,} late events count now; {jobs:,} jobs computed again\n")


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    parser.add_argument("--namespace", default="lineage", help="where the tables are  [lineage]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
