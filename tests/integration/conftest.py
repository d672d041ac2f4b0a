"""What tests of several packages share beyond the lab's own fixtures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from headwater.lab import ports
from headwater.lab.lab import Lab
from headwater.lab.services.base import answers
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def killed_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A second lab for the tests that kill services, so that the others' lab stays up.

    A test that leaves a service dead starts it again before it ends.
    """
    lab = Lab(tmp_path_factory.mktemp("killed") / "lab")
    lab.up()
    yield lab
    lab.reset()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server in a process of its own."""
    port, folder = ports.free(), tmp_path_factory.mktemp("server")
    headwater = Path(sys.executable).with_name("headwater")
    store = f"sqlite:///{folder}/server.db"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [headwater, "server", "--port", str(port), "--store", store], stdout=log, stderr=log
        )
    url = f"http://127.0.0.1:{port}"

    def up() -> bool:
        try:
            return answers(f"{url}/api/v1/namespaces").is_success
        except httpx.HTTPError:
            return False

    wait_until(up, seconds=120, what="the server")
    yield url
    process.terminate()
    process.wait(30)
