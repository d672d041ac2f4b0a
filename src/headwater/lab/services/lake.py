"""The lineage lake of a lab: the stream that fills it, and what a client needs to ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.services.base import answers
from headwater.lab.services.logins import reader_headers
from headwater.lab.services.pipeline_streams import Stream
from headwater.lab.services.s3 import REGION

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

URL = "iceberg://lab/lineage"


def lake_env(lab: LabContext) -> dict[str, str]:
    """The catalog of the lake's address, as PyIceberg's configuration has it."""
    keys = lab.home.settings
    given = {
        "TYPE": "rest",
        "URI": lab.url("catalog"),
        "S3__ENDPOINT": lab.url("s3"),
        "S3__ACCESS_KEY_ID": keys.s3_access_key,
        "S3__SECRET_ACCESS_KEY": keys.s3_secret_key,
        "S3__REGION": REGION,
        "S3__PATH_STYLE_ACCESS": "true",
    }
    return {f"PYICEBERG_CATALOG__LAB__{name}": value for name, value in given.items()}


class LineageLake(Stream):
    name = "lineage-lake"
    title = "PySpark stream: the server's log into the lineage lake"
    program = "lake.py"
    arguments = ("--every", "5 seconds", "--derive-every", "10 seconds")

    def ready(self, lab: LabContext) -> bool:
        """Its query, a task job of the program, is seen in the lineage server."""
        path = f"/api/v1/namespaces/{lab.home.settings.namespace}/jobs?limit=1000"
        found = answers(lab.url("server", path), headers=reader_headers(lab)).json()
        return any(
            job["name"].startswith(self.name)
            and (job.get("latestRun") or {}).get("state") == "RUNNING"
            for job in found["jobs"]
        )

    def env(self, lab: LabContext) -> dict[str, str]:
        return {**super().env(lab), "HEADWATER_LAKE": URL, **lake_env(lab)}
