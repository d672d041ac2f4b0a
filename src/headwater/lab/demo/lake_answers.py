"""Does the lineage lake of a lab answer as its server does?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lab.services.lake import URL, lake_env
from headwater.lineage.moments import iso

if TYPE_CHECKING:
    from headwater.lab.demo.lineage_client import LineageClient
    from headwater.lab.services.base import LabContext

ANSWER_SECONDS = 120.0


class LakeAnswers:
    """Asks both for a trace at one moment, by the command that people use."""

    def __init__(self, lab: LabContext, lineage: LineageClient, dataset: str) -> None:
        self._lab = lab
        self._name = ":".join(lineage.name(dataset))
        self._url = lineage.url
        self._at = iso(time.time_ns() // 1000)

    def differ(self) -> str:
        """How the answers differ; nothing where they are one."""
        try:
            server, lake = self._trace("--url", self._url), self._trace("--lake", URL)
        except (subprocess.SubprocessError, msgspec.DecodeError) as error:
            return _reason(error)
        if server == lake:
            return ""
        return f"{len(lake['rows'])} rows from the lake, {len(server['rows'])} from the server"

    def _trace(self, *how: str) -> dict[str, Any]:
        words = [sys.executable, "-m", "headwater", "trace", self._name, "--at", self._at, *how]
        logins = self._lab.home.settings
        token = {"HEADWATER_TOKEN": logins.logins.server} if logins.secure else {}
        done = subprocess.run(
            [*words, "--json"],
            env={**os.environ, **lake_env(self._lab), **token},
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=True,
        )
        found: dict[str, Any] = msgspec.json.decode(done.stdout)
        for node in found["nodes"]:
            # When it was last heard of until now, whatever the moment: the server is ahead of the lake.
            node.pop("updatedAt", None)
        return found


def _reason(error: Exception) -> str:
    printed = getattr(error, "stderr", None) or b""
    return printed.decode(errors="replace").strip()[-200:] or str(error)
