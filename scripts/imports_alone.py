"""Check that every module of the package can be imported alone, before any other of ours.

A module that only imports after some other one hides a circular import: it works in the program
and fails for whoever imports it first. One interpreter per module would take minutes. So all
modules are imported in one process, which records who imports whom. A module that its own imports
do not lead back to finds the same modules loaded wherever it comes in the order, so that one
import of it is proof. Of the others, each part of a cycle (a package that imports its own
submodules makes one for each of them), Python imports the package first: their packages are imported, each in a
fork of a process that has loaded third-party libraries only, and in forks of those the modules
that their package does not import by itself.

Modules whose own statements lead back to them are refused even where every order of imports works
today: two that need each other are one thing in two files.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import json
import os
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE = "headwater"


def main() -> int:
    sys.path.insert(0, str(SOURCE))
    names = modules()
    seen = json.loads(in_fork(lambda: json.dumps(import_all(names))))
    failures = dict(seen["failures"])
    in_cycles = cyclic(with_packages(seen["imports"]))
    circular = cyclic(seen["stated"])
    preload(seen["libraries"])
    for package in sorted({name.rpartition(".")[0] for name in in_cycles}):
        members = [name for name in in_cycles if name.rpartition(".")[0] == package]
        failures |= json.loads(in_fork(partial(import_members, package, members)))
    for name, problem in failures.items():
        print(f"{name} cannot be imported alone:\n{problem}", file=sys.stderr)
    if circular:
        print(f"import each other in a circle: {', '.join(circular)}", file=sys.stderr)
    print(
        f"every module imports alone: {len(names)} modules, {len(failures)} failed, "
        f"{len(circular)} import each other in a circle, "
        f"{len(in_cycles)} are imported by their own package"
    )
    return 1 if failures or circular else 0


def modules() -> list[str]:
    """The dotted name of every module of the package."""
    names = []
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] != "__main__":
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def in_fork(work: Callable[[], str]) -> str:
    """What `work` returns in a fork of this process."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            pipe.write(work())
        os._exit(0)  # without exit handlers: they belong to the parent
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.wait()
    return text


def import_one(name: str) -> str:
    """The traceback of importing a module, or nothing."""
    try:
        importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - whatever an import raises is the finding
        return traceback.format_exc(limit=-6)
    return ""


def import_members(package: str, members: Iterable[str]) -> str:
    """Import a package, then each member it has not imported in a fork: the failures, as JSON."""
    if package and (problem := import_one(package)):
        return json.dumps(dict.fromkeys(members, problem))
    found = {
        name: in_fork(partial(import_one, name)) for name in members if name not in sys.modules
    }
    return json.dumps({name: problem for name, problem in found.items() if problem})


def import_all(names: Iterable[str]) -> dict[str, Any]:
    """Import every module here: who imports whom, what failed, which libraries were loaded."""
    imports: dict[str, set[str]] = {name: set() for name in names}
    stated: dict[str, set[str]] = {name: set() for name in names}
    load = builtins.__import__
    load_by_name = importlib.import_module

    def recorded(
        name: str,
        variables: Mapping[str, Any] | None = None,
        local: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        if variables and variables.get("__name__") in imports:
            package = variables.get("__package__")
            base = importlib.util.resolve_name("." * level + name, package) if level else name
            members = {f"{base}.{one}" for one in fromlist or ()}
            imports[variables["__name__"]] |= {base, *members}
            # `from package import module` asks for the module, whatever the package holds by then.
            stated[variables["__name__"]] |= members
            if not members <= imports.keys() or not members:
                stated[variables["__name__"]].add(base)
        return load(name, variables, local, fromlist, level)

    def recorded_by_name(name: str, package: str | None = None) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001
        if caller in imports:
            imports[caller].add(importlib.util.resolve_name(name, package))
        return load_by_name(name, package)

    builtins.__import__ = recorded  # type: ignore[assignment]
    importlib.import_module = recorded_by_name
    failures = {name: problem for name in imports if (problem := import_one(name))}
    return {
        "imports": {name: sorted(found & imports.keys()) for name, found in imports.items()},
        "stated": {name: sorted(found & imports.keys()) for name, found in stated.items()},
        "failures": failures,
        "libraries": [name for name in sys.modules if name.split(".")[0] != PACKAGE],
    }


def with_packages(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """What Python loads for each module: what it imports, and the packages it lies in."""
    return {
        name: {
            *(".".join(name.split(".")[:length]) for length in range(1, name.count(".") + 1)),
            *found,
        }
        for name, found in imports.items()
    }


def cyclic(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Modules that importing what they need imports again."""

    def leads_back(name: str) -> bool:
        reached: set[str] = set()
        waiting = list(needs[name])
        while waiting:
            one = waiting.pop()
            if one == name:
                return True
            if one not in reached:
                reached.add(one)
                waiting += needs.get(one, ())  # nothing of a folder without __init__
        return False

    return [name for name in needs if leads_back(name)]


def preload(libraries: Iterable[str]) -> None:
    """Import what is not ours, so that every fork has it already."""
    for library in libraries:
        try:
            importlib.import_module(library)
        except Exception:  # noqa: BLE001 - a part that only its own library can import
            continue
    if any(name.split(".")[0] == PACKAGE for name in sys.modules):
        raise SystemExit("error: a library imports the package; no module can be imported alone")


if __name__ == "__main__":
    sys.exit(main())
