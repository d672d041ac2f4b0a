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
        self._sent: list[tuple[bytes, Event]] = []
        self._read = 0

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
        """The run events in the file."""
        return [event for _, event in self._lines(job) if "run" in event]

    def deleted(self, job: str) -> bool:
        """Whether a job was reported as deleted."""
        last = [event["job"].get("facets", {}) for _, event in self._lines(job)][-1:]
        return any("headwater_deleted" in facets for facets in last)

    def types(self, job: str) -> list[str]:
        """What was reported of a job, heartbeats and repetitions left out."""
        found = {line: event["eventType"] for line, event in self._lines(job) if "run" in event}
        return [kind for kind in found.values() if kind != "RUNNING"]

    def _lines(self, job: str | None) -> list[tuple[bytes, Event]]:
        """Each line is decoded once, however often they are asked for."""
        if self.file.exists():
            with self.file.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if line.endswith(b"\n"):  # else it is still being written
                        self._read += len(line)
                        self._sent.append((line, json.loads(line)))
        return [pair for pair in self._sent if job in (None, pair[1]["job"]["name"])]

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
