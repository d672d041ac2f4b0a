"""The jobs are programs, not a package: their modules import one another by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "pipelines"))
