"""The agent as a process, the events it sent, and commands as a person gives them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

Event = dict[str, Any]
SECONDS = 60.0
HEADWATER = str(Path(sys.executable).with_name("headwater"))


class ClusterAgent:
    """`headwater connect watch`, in a process of its own."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *options: str,
        state: str | None = None,
        env: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.file = folder / "events.ndjson"
        self.state = state or str(folder / "state.db")
        self.url = url
        self.options = options
        self.env = env
        self.more = more or {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, log: str = "agent.log") -> ClusterAgent:
        with (self.folder / log).open("ab") as out:
            self.process = subprocess.Popen(
                [
                    HEADWATER, "connect", "watch", *(("--url", self.url) if self.url else ()),
                    "--state", self.state, *self.options,
                ],
                env=self.environment(),
                stdout=out,
                stderr=out,
            )  # fmt: skip
        return self

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")}
        to_file = {
            "OPENLINEAGE__TRANSPORT__TYPE": "file",
            "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(self.file),
            "OPENLINEAGE__TRANSPORT__APPEND": "true",
            "OPENLINEAGE_NAMESPACE": "lab",
        }
        return {**kept, **(self.env if self.env is not None else to_file), **self.more}

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self) -> int:
        """End it as a person would."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(120)

    @property
    def log(self) -> str:
        return "\n".join(p.read_text(errors="replace") for p in sorted(self.folder.glob("*.log")))

    def events(self, job: str | None = None) -> list[Event]:
        if not self.file.exists():
            return []
        lines = self.file.read_text().splitlines()
        found = [json.loads(line) for line in lines]
        return [event for event in found if job is None or event["job"]["name"] == job]

    def types(self, job: str) -> list[str]:
        """What was said of a job, heartbeats and repetitions left out."""
        seen: list[str] = []
        bodies: list[Event] = []
        for event in self.events(job):
            if event["eventType"] != "RUNNING" and event not in bodies:
                seen.append(event["eventType"])
                bodies.append(event)
        return seen

    def wait_for(self, job: str, *types: str, seconds: float = SECONDS) -> Event:
        """The last event of a job once these have been said of it, in this order."""
        wait_until(
            lambda: self.types(job)[: len(types)] == list(types),
            seconds=seconds,
            what=f"{', '.join(types)} of {job}, there are {self.types(job)}:\n{self.log[-3000:]}",
            interval=0.2,
        )
        return [e for e in self.events(job) if e["eventType"] == types[-1]][-1]

    def command(self, *words: str, code: int = 0) -> str:
        """Run `headwater connect …` against the same cluster and state."""
        takes_state = words[0] in ("status", "pause", "resume", "stop", "restart", "delete")
        done = subprocess.run(
            [
                HEADWATER, "connect", *words, "--url", self.url,
                *(("--state", self.state) if takes_state else ()),
            ],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def names(event: Event, side: str) -> list[str]:
    return [f"{d['namespace']} {d['name']}" for d in event.get(side, [])]


def columns(dataset: Event) -> list[str]:
    fields = dataset.get("facets", {}).get("schema", {}).get("fields", [])
    return [field["name"] for field in fields]


def runs(events: list[Event]) -> list[str]:
    """The run ids in order of appearance."""
    return list(dict.fromkeys(event["run"]["runId"] for event in events))
