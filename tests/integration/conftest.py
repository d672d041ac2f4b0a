"""What tests of several packages share beyond the lab's own fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.lab.lab import Lab

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
