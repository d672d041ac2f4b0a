"""What benchmarks found for the docs: one file each, with when, of what and where each part was measured."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import headwater

FOLDER = Path(__file__).parent / "results"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def keep(name: str, **parts: Any) -> None:
    """Replace these parts of a benchmark's file."""
    found = read(name)
    stamps = found["measured"] | dict.fromkeys(parts, stamp())
    text = json.dumps(found | parts | {"measured": stamps}, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(f"{text}\n")


def stamp() -> dict[str, Any]:
    git = ["git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty"]
    commit = subprocess.run(
        git, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit.stdout.strip(),
        "version": headwater.__version__,
        "cores": os.cpu_count(),
    }
