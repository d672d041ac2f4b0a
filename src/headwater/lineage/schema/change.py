"""The difference between two schemas, and what it does to readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from .model import ELEMENT, Field, Schema
from .types import normal, widens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Kind = Literal["added", "removed", "renamed", "moved", "type", "nullability"]


class SchemaChange(msgspec.Struct, frozen=True):
    """One change of a schema: what happened to which column."""

    kind: Kind
    path: str
    old: str = ""
    new: str = ""
    default: bool = False

    def __str__(self) -> str:
        return {
            "added": f"{self.path} was added ({self.new or 'type unknown'})",
            "removed": f"{self.path} was removed (it was {self.old or 'of unknown type'})",
            "renamed": f"{self.old} was renamed to {self.new}",
            "moved": f"{self.old} was moved to {self.new}",
            "type": f"{self.path} changed its type from {self.old} to {self.new}",
            "nullability": f"{self.path} was {self.old} and is {self.new}",
        }[self.kind]


class Break(msgspec.Struct, frozen=True):
    """A change that readers of the old schema do not survive, and why."""

    change: SchemaChange
    why: str

    def __str__(self) -> str:
        return f"{self.change}: {self.why}"


class Compatibility(msgspec.Struct, frozen=True):
    """Whether readers of the old schema keep working; true when nothing breaks them."""

    breaks: tuple[Break, ...] = ()

    def __bool__(self) -> bool:
        return not self.breaks


def diff(old: Schema, new: Schema) -> list[SchemaChange]:
    """What changed from one schema to the next, in the order of the columns."""
    changes: list[SchemaChange] = []
    if old.type and new.type and normal(old.type) != normal(new.type):
        changes.append(SchemaChange("type", "value", old.type, new.type))
    if not (old.is_record and not new.is_record):
        _level(old.fields, new.fields, "", changes)
    return _moves(changes, old, new)


def compatible(old: Schema, new: Schema) -> Compatibility:
    """Whether those who read the old schema keep working on the new one."""
    return Compatibility(tuple(_breaks(diff(old, new))))


def _breaks(changes: Iterable[SchemaChange]) -> Iterable[Break]:
    for change in changes:
        if change.kind == "removed" and not change.default:
            yield Break(change, "readers still ask for it, and it has no default to fall back on")
        elif change.kind == "renamed" and not change.default:
            yield Break(change, "readers know only the old name")
        elif change.kind == "moved" and not change.default:
            yield Break(change, "readers look for it in the old place")
        elif change.kind == "type" and not widens(change.old, change.new):
            yield Break(change, f"not every {change.old} is a {change.new}")
        elif change.kind == "nullability" and change.new == "nullable":
            yield Break(change, "readers were promised a value and may meet none")


def _level(
    old: tuple[Field, ...], new: tuple[Field, ...], prefix: str, changes: list[SchemaChange]
) -> None:
    before, after = {f.name: f for f in old}, {f.name: f for f in new}
    renamed = {
        alias: field
        for field in new
        if field.name not in before
        for alias in field.aliases
        if alias in before and alias not in after
    }
    for field in old:
        target = after.get(field.name) or renamed.get(field.name)
        path = _join(prefix, field.name)
        if target is None:
            changes.append(SchemaChange("removed", path, field.type, default=field.default))
            continue
        if target.name != field.name:
            to = _join(prefix, target.name)
            changes.append(SchemaChange("renamed", path, path, to, field.default))
            path = to
        _one(field, target, path, changes)
    taken = {field.name for field in renamed.values()}
    changes.extend(
        SchemaChange("added", _join(prefix, field.name), new=field.type)
        for field in new
        if field.name not in before and field.name not in taken
    )


def _one(old: Field, new: Field, path: str, changes: list[SchemaChange]) -> None:
    if old.type and new.type and normal(old.type) != normal(new.type):
        changes.append(SchemaChange("type", path, old.type, new.type))
        if bool(old.fields) != bool(new.fields):
            return
    if None not in (old.nullable, new.nullable) and old.nullable != new.nullable:
        words = ("required", "nullable")
        was, now = words[bool(old.nullable)], words[bool(new.nullable)]
        changes.append(SchemaChange("nullability", path, was, now))
    if old.fields and new.fields:
        _level(old.fields, new.fields, path, changes)


def _moves(changes: list[SchemaChange], old: Schema, new: Schema) -> list[SchemaChange]:
    """A column gone from one place and come up in just one other, whole, has moved there."""
    gone, come = _by_leaf(changes, "removed"), _by_leaf(changes, "added")
    if not gone.keys() & come.keys():
        return changes
    before, after = dict(_paths(old.fields, "")), dict(_paths(new.fields, ""))
    moved: dict[SchemaChange, SchemaChange] = {}
    dropped: set[SchemaChange] = set()
    for leaf, removed in gone.items():
        added = come.get(leaf, [])
        if len(removed) != 1 or len(added) != 1:
            continue
        path, target = removed[0].path, added[0].path
        if _shape(before[path]) == _shape(after[target]):
            moved[removed[0]] = SchemaChange("moved", path, path, target, removed[0].default)
            dropped.add(added[0])
    return [moved.get(change, change) for change in changes if change not in dropped]


def _paths(fields: tuple[Field, ...], prefix: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = _join(prefix, field.name)
        yield path, field
        yield from _paths(field.fields, path)


def _shape(field: Field) -> tuple[str, str]:
    return normal(field.type), Schema(field.fields).version


def _by_leaf(changes: list[SchemaChange], kind: Kind) -> dict[str, list[SchemaChange]]:
    found: dict[str, list[SchemaChange]] = {}
    for change in changes:
        if change.kind == kind:
            found.setdefault(change.path.rpartition(".")[2], []).append(change)
    return found


def _join(prefix: str, name: str) -> str:
    if name == ELEMENT:
        return prefix
    return f"{prefix}.{name}" if prefix else name
