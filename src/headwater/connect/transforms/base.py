"""What one transform does: to a topic's name, to a record's fields, and back again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headwater.connect.transforms.record import IDENTITY, Column, FieldNode, Half, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import Transformation

Back = tuple[Column, "Transformation"] | None


class UnknownColumnsError(Exception):
    """It is not known which column of the store a topic's column came from."""


class TopicName(NamedTuple):
    """A topic's name on its way: one name, or many that fit an expression.

    With `pattern`, `text` is what all of them share; with `open` the records decide, so that
    no name is given before Connect reports one.
    """

    text: str
    pattern: str = ""
    open: bool = False

    @property
    def exact(self) -> bool:
        """Whether there is just this one name."""
        return not self.pattern

    def fits(self, topic: str) -> bool:
        """Whether a topic that was seen can be this one."""
        if self.exact:
            return topic == self.text
        return re.fullmatch(self.pattern, topic, re.DOTALL) is not None


class TransformStep:
    """One transform of a chain; the base changes nothing."""

    known = True
    routes = False
    reshapes = False
    loses = False

    def __init__(self, options: Mapping[str, str], half: Half, kind: str = "") -> None:
        self.options = options
        self.half = half
        self.kind = kind
        self.setup()

    def setup(self) -> None:
        """Read the options."""

    def get(self, *keys: str, default: str = "") -> str:
        """The first of the options that has a value."""
        return next((v for k in keys if (v := self.options.get(k, "").strip())), default)

    def names(self, *keys: str) -> list[str]:
        """An option that is a list."""
        return [item.strip() for item in self.get(*keys).split(",") if item.strip()]

    def route(self, name: TopicName) -> TopicName | None:
        """The topic's name after this transform; None when nothing comes through."""
        return name

    def forward(self, record: Record) -> Record:
        """The record after this transform."""
        return record

    def back(self, column: Column) -> Back:
        """The column before this transform; None when the transform made it itself."""
        return column, IDENTITY


class UnknownStep(TransformStep):
    """A transform that is not known here: names are left alone, columns are unknown."""

    known = False
    reshapes = True
    loses = True

    def forward(self, record: Record) -> Record:
        """The fields may be anything now."""
        return Record()

    def back(self, column: Column) -> Back:
        """The fields may have been anything before."""
        raise UnknownColumnsError(self.kind)


class FieldStep(TransformStep):
    """A transform of the fields of one half; a half that is no record is left as it is."""

    reshapes = True

    def forward(self, record: Record) -> Record:
        """Change the half it is meant for."""
        node = record.half(self.half)
        return record if node is None else record.with_half(self.half, self.reshape(node))

    def reshape(self, node: FieldNode) -> FieldNode:
        """The half after the transform."""
        return node

    def back(self, column: Column) -> Back:
        """Columns of the other half are not touched."""
        return (column, IDENTITY) if column.half != self.half else self.undo(column)

    def undo(self, column: Column) -> Back:
        """A column of the half it is meant for, before the transform."""
        return column, IDENTITY
