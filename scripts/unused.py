"""Find code of the package that nothing outside the tests uses.

Module-level names count as used when their own module reads them, when another module imports
them, or reads them as an attribute of the module; a general tool matches bare names only, and a
function called `write` or `view` is never found by that. Methods are matched by name. Whatever a
decorator takes (a command, a rule, a fixture) is used, and so is what `[tool.headwater.unused]`
in pyproject.toml lists, each for a caller that Python's syntax does not show.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src"
CALLERS = ("src", "pipelines", "scripts", "bench")
# Decorators that only change how a function is called: what they decorate still needs a caller.
PLAIN = re.compile(
    r"(?:\w+\.)?(?:cache|cached_property|classmethod|contextmanager|dataclass|lru_cache|"
    r"overload|property|staticmethod|wraps|abstractmethod|final|runtime_checkable)\b"
    r"|\w+\.setter\b"
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Module:
    """What one file defines at its top level, and which names it uses and how."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.aliases: dict[str, str] = {}  # a local name -> what it was imported from
        self.loads: Counter[str] = Counter()  # names read as variables
        self.attributes: Counter[str] = Counter()  # names read after a dot, or in a string
        self.imported: set[str] = set()  # full names of all that is imported
        self.values: set[str] = set()  # full names that are read on their own, not as `name.…`
        self.read()

    def read(self) -> None:
        owners = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        plain = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    local = one.asname or one.name.split(".")[0]
                    self.aliases[local] = one.name if one.asname else local
                    self.imported.add(one.name)
            elif isinstance(node, ast.ImportFrom):
                base = self.base(node)
                for one in node.names:
                    self.aliases[one.asname or one.name] = f"{base}.{one.name}"
                    self.imported.add(f"{base}.{one.name}")
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads[node.id] += 1
                if id(node) not in owners:
                    plain.add(node.id)
            elif isinstance(node, ast.Attribute):
                self.attributes[node.attr] += isinstance(node.ctx, ast.Load)
                if full := self.dotted(node):
                    self.imported.add(full)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # `getattr`, tables of handlers, annotations in quotes, `module:name` to load later
                for word in (
                    re.findall(r"[A-Za-z_]\w*", node.value) if len(node.value) < 200 else ()
                ):
                    self.attributes[word] += 1
            elif isinstance(node, ast.keyword) and node.arg:
                self.attributes[node.arg] += 1
        self.values = {self.aliases[name] for name in plain & self.aliases.keys()}

    def base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def dotted(self, node: ast.Attribute) -> str | None:
        """`module.name` with the module's full name, where the module was imported here."""
        parts = [node.attr]
        inner: ast.expr = node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.aliases:
            return ".".join([self.aliases[inner.id], *reversed(parts)])
        return None

    def definitions(self) -> Iterator[tuple[str, int, ast.AST]]:
        for node in top_level(self.tree.body):
            if isinstance(node, Definition):
                yield node.name, node.lineno, node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                        if isinstance(one, ast.Name):
                            yield one.id, node.lineno, node


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            yield from top_level(node.body + node.orelse)
        elif isinstance(node, ast.Try):
            yield from top_level(node.body + node.orelse + node.finalbody)
        else:
            yield node


def registered(node: ast.AST) -> bool:
    """Whether a decorator hands the definition to something that calls it."""
    return isinstance(node, Definition) and any(
        not PLAIN.match(ast.unparse(one)) for one in node.decorator_list
    )


def inner_loads(node: ast.AST, name: str) -> int:
    """How often a definition reads its own name: recursion is no use."""
    return sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def unused(callers: list[Module]) -> Iterator[tuple[Module, int, str]]:
    imported = set().union(*(module.imported for module in callers))
    values = set().union(*(module.values for module in callers))
    attributes: Counter[str] = sum((module.attributes for module in callers), Counter())
    for module in callers:
        if not module.path.is_relative_to(PACKAGE):
            continue
        reexported = {full for full in module.aliases.values() if module.path.name == "__init__.py"}
        for name, line, node in module.definitions():
            full = f"{module.name}.{name}"
            own = module.loads[name] - (
                inner_loads(node, name) if isinstance(node, Definition) else 0
            )
            if not (
                name.startswith("__")
                or own > 0
                or full in imported - reexported
                or registered(node)
                # A module passed on as a value, as in a list of modules with routes.
                or (module.name in values and attributes[name])
            ):
                yield module, line, full
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if (
                        isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                        and not inner.name.startswith("__")
                        and not attributes[inner.name]
                        and not registered(inner)
                    ):
                        yield module, inner.lineno, f"{full}.{inner.name}"


def setting(section: str, value: str) -> list[str]:
    """Strings of this shape in a section of pyproject.toml; Python 3.10 has no TOML reader."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(value, text.partition(f"\n[{section}]")[2].partition("\n[")[0], re.MULTILINE)


def modules() -> Iterator[Module]:
    for folder in CALLERS:
        base = ROOT / folder if folder in ("src", "pipelines") else ROOT
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            yield Module(path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def main() -> int:
    entry_points = {
        name.replace(":", ".") for name in setting("project.scripts", r'"([\w.]+:\w+)"')
    }
    allowed = dict.fromkeys(setting("tool.headwater.unused", r'^  "([^"]+)"'), False)
    problems = []
    for module, line, name in unused(list(modules())):
        matching = [pattern for pattern in allowed if fnmatchcase(name, pattern)]
        allowed.update(dict.fromkeys(matching, True))
        if not matching and name not in entry_points:
            problems.append(f"{module.path.relative_to(ROOT)}:{line}: nothing uses {name}")
    problems += [
        f"pyproject.toml: nothing unused is called {pattern}: take it off the list"
        for pattern, matched in allowed.items()
        if not matched
    ]
    print("\n".join(problems) or "no unused code")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
