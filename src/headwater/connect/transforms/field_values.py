"""Transforms that change what is in the fields of a value or a key, not their names."""

from __future__ import annotations

from headwater.connect.derive.config_values import pairs
from headwater.connect.transforms.record import IDENTITY, Column, FieldNode, changed, masked

from .base import Back, FieldStep, TransformStep

_TYPES = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float32": "float",
    "float64": "double", "boolean": "boolean", "string": "string",
    "timestamp": "timestamp", "date": "date", "time": "time", "unix": "long",
}  # fmt: skip


class MaskField(FieldStep):
    """Hides the values of fields."""

    how = staticmethod(masked)

    def setup(self) -> None:
        """Read which fields."""
        self.fields = dict.fromkeys(self.names("fields"), "")

    def reshape(self, node: FieldNode) -> FieldNode:
        """Mark each of them."""
        what = self.how(self.kind)
        if not node.is_record:
            return node.touched(what, self.fields[""]) if "" in self.fields else node
        return node.having(
            *(
                field.touched(what, self.fields[field.name]) if field.name in self.fields else field
                for field in node.fields
            )
        )

    def undo(self, column: Column) -> Back:
        """Same column, another value."""
        touched = (column.path[0] if column.path else "") in self.fields
        return column, self.how(self.kind) if touched else IDENTITY


class Cast(MaskField):
    """Changes the types of fields, or of the whole."""

    how = staticmethod(changed)

    def setup(self) -> None:
        """Read `field:type` pairs, or one type for the whole."""
        spec = self.get("spec")
        found = pairs(spec, ":") or {"": spec}
        self.fields = {name: _TYPES.get(kind, kind) for name, kind in found.items()}


class TimestampConverter(MaskField):
    """Changes the form of one time, or of the whole."""

    how = staticmethod(changed)

    def setup(self) -> None:
        """Read the field and its new form."""
        self.fields = {self.get("field"): _TYPES.get(self.get("target.type").lower(), "")}


STEPS: dict[str, type[TransformStep]] = {
    f"org.apache.kafka.connect.transforms.{step.__name__}": step
    for step in (MaskField, Cast, TimestampConverter)
}
