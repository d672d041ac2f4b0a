"""Record every event that a producer queues and every event that a server's store takes in.

Python imports this by its name when its folder is on the path, in every process that the tests
start: `RECORD_EVENTS=folder PYTHONPATH=scripts/recorder:src pytest …`. Each process appends to
files of its own; `scripts/replay.py` reads them. The variable does not begin with `HEADWATER_`, since
tests keep such variables of ours from the drivers and servers they start.
"""

from __future__ import annotations

import importlib.abc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FOLDER = os.environ.get("RECORD_EVENTS")
LARGEST = 300_000  # bodies that tests make large on purpose are left out


def write(kind: str, body: bytes) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    line = json.dumps({"test": test, "body": bytes(body).decode("utf-8", "replace")})
    path = Path(str(FOLDER), f"{kind}-{os.getpid()}.ndjson")
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def record_outbox(module: ModuleType) -> None:
    append = module.Transaction.append

    def recorded(self: Any, run: str, body: bytes, *rest: Any, **more: Any) -> Any:
        write("out", body)
        return append(self, run, body, *rest, **more)

    module.Transaction.append = recorded


def record_store(module: ModuleType) -> None:
    append = module.Store.append

    def recorded(self: Any, bodies: Any, *rest: Any, **more: Any) -> Any:
        bodies = list(bodies)
        for body in bodies:
            if len(body) < LARGEST:
                write("in", body)
        return append(self, bodies, *rest, **more)

    module.Store.append = recorded


RECORDERS: dict[str, Callable[[ModuleType], None]] = {
    "headwater.emit.outbox": record_outbox,
    "headwater.server.store.store": record_store,
}


class Finder(importlib.abc.MetaPathFinder):
    """Lets the others find a module, and records once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in RECORDERS:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((one for one in found if one and one.loader), None)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_record(module: ModuleType) -> None:
            load(module)
            RECORDERS[name](module)

        spec.loader.exec_module = load_and_record  # type: ignore[method-assign]
        return spec


if FOLDER:
    Path(FOLDER).mkdir(parents=True, exist_ok=True)
    sys.meta_path.insert(0, Finder())
