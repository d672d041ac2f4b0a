"""Runs of a job that reads one table, of which it knows one column, by OpenLineage's Python client."""

from __future__ import annotations

import sys
from datetime import datetime, timezone

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import schema_dataset
from openlineage.client.uuid import generate_new_uuid

namespace, name, runs = sys.argv[1:]
client = OpenLineageClient()
columns = [schema_dataset.SchemaDatasetFacetFields("order_id", "VARCHAR")]
schema = schema_dataset.SchemaDatasetFacet(columns)
for _ in range(int(runs)):
    run = Run(str(generate_new_uuid()))
    for state in (RunState.START, RunState.COMPLETE):
        client.emit(
            RunEvent(
                eventType=state,
                eventTime=datetime.now(timezone.utc).isoformat(),
                run=run,
                job=Job("python", "reader"),
                inputs=[InputDataset(namespace, name, facets={"schema": schema})],
                outputs=[],
                producer="https://example.com/python",
            )
        )
