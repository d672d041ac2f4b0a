"""A program of the pipeline, run to its end beside a lab."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.services.pipeline_streams import spark_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.lab.lab import Lab

BATCH_SECONDS = 300.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.2


class BatchJob:
    """One run of a program; its words go to a log of the lab's."""

    def __init__(
        self, lab: Lab, program: str, *arguments: str, name: str, env: Mapping[str, str] = {}
    ) -> None:
        self.log = lab.home.log(name)
        self.name = name
        self._stopped = False
        data = lab.home.data(name)
        data.mkdir(parents=True, exist_ok=True)
        command = spark_job(lab.context, program, *arguments, scratch=data)
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command.argv,
                cwd=data,
                env=process.environment(lab.home.root, "", {**command.env, **env}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def wait(self, seconds: float = BATCH_SECONDS, beat: Callable[[], None] = lambda: None) -> None:
        """Wait for its end, which must be a good one unless it was stopped."""
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None:
            if time.monotonic() > deadline:
                self.stop()
                raise HeadwaterError(
                    f"{self.name} did not end within {seconds:.0f} s", hint=f"its words: {self.log}"
                )
            beat()
            time.sleep(POLL_SECONDS)
        if code and not self._stopped:
            raise HeadwaterError(
                f"{self.name} ended with exit code {code}", hint=f"its words: {self.log}"
            )

    def stop(self) -> None:
        """End it as a person would; it has a moment to say so."""
        if self._process.poll() is None:
            self._stopped = True
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
