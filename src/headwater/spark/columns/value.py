"""What a column is made of: source columns, how each enters, and the fields inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.spark.columns.source import Source

Path = tuple[str, ...]
Leaf = tuple["Source | None", Path]
Bits = dict[Leaf, int]

# How a source column enters, one bit each, so that several ways at once are one number.
IDENTITY, TRANSFORMATION, AGGREGATION = 1, 2, 4
MASKED_TRANSFORMATION, MASKED_AGGREGATION = 8, 16
NULL_TEST = 32
"""Nothing but whether the column is null enters: a transformation, or a filter of its own kind."""
JOIN, GROUP_BY, FILTER, SORT, WINDOW, CONDITIONAL = 64, 128, 256, 512, 1024, 2048
NULL_FILTER = 4096
DIRECT = (
    IDENTITY | TRANSFORMATION | AGGREGATION | MASKED_TRANSFORMATION | MASKED_AGGREGATION | NULL_TEST
)

UNKNOWN: Leaf = (None, ())
"""The source of a column with unknown sources."""

STRUCT, ARRAY, MAP = "struct", "array", "map"


class Value:
    """A column's sources, and below it those of its fields, elements or entries.

    `bits` belong to the whole of it. `wire` marks the bytes of a Kafka record or text read from
    one; `encoded` a record that was written as JSON, Avro or Protobuf; `literal` a constant.
    """

    __slots__ = ("_leaf", "_parts", "_type", "bits", "encoded", "kind", "literal", "typed", "wire")

    def __init__(
        self,
        bits: Bits | None = None,
        kind: str = "",
        parts: dict[str, Value] | None = None,
        *,
        encoded: bool = False,
        wire: tuple[Source, str] | None = None,
        literal: Any = None,
    ) -> None:
        self.bits = bits if bits is not None else {}
        self.kind = kind
        self._parts = parts
        self._leaf: Leaf | None = None
        self._type: Any = None
        self.encoded = encoded
        self.wire = wire
        self.literal = literal
        self.typed: Any = None
        """The type of an encoded record, where it is known."""

    @classmethod
    def column(cls, source: Source, path: Path, data_type: Any) -> Value:
        """A column of a source as it is read; its fields are made when they are first used."""
        kind = data_type.get("type", "") if isinstance(data_type, dict) else ""
        if kind in (STRUCT, ARRAY, MAP) and _has_fields(data_type):
            made = cls(kind=kind)
            made._leaf = (source, path)
            made._type = data_type
            return made
        return cls({(source, path): IDENTITY})

    @classmethod
    def record(cls, source: Source, side: str, parts: dict[str, Value]) -> Value:
        """A record read from a topic: a field that `parts` lacks is a column of the topic too."""
        made = cls(kind=STRUCT, parts=parts)
        made._leaf = (source, ("key",) if side == "key" else ())
        return made

    @classmethod
    def unknown(cls) -> Value:
        """A column with unknown sources."""
        return cls({UNKNOWN: TRANSFORMATION})

    @property
    def is_open(self) -> bool:
        """Whether it may have more fields than are known: a record read without its schema."""
        return self._leaf is not None and self.kind in ("", STRUCT)

    @property
    def parts(self) -> dict[str, Value]:
        """The fields of a struct, the `element` of an array, `key` and `value` of a map."""
        if self._parts is None:
            self._parts = {}
            if self._leaf is not None and self._type is not None:
                source, path = self._leaf
                assert source is not None
                for name, inner, step in steps(self._type):
                    self._parts[name] = Value.column(source, path + step, inner)
        return self._parts

    def part(self, name: str, ordinal: int = -1) -> Value:
        """What stands inside under a name, or at a place when names differ."""
        found = self.parts.get(name)
        if found is None and 0 <= ordinal < len(self.parts):
            found = list(self.parts.values())[ordinal]
        if found is None and self.is_open:
            assert self._leaf is not None
            source, path = self._leaf
            found = Value({(source, (*path, name)): IDENTITY})
            found._leaf = (source, (*path, name))
        if found is None:
            return Value(apply(self.all(), TRANSFORM))
        if self.bits and self.kind:
            return merge([found, Value(self.bits)])
        return found

    def all(self) -> Bits:
        """Every source, of the whole and of what is inside."""
        if not self.kind:
            return self.bits
        found = dict(self.bits)
        for part in self.parts.values():
            add(found, part.all())
        if not found and self._leaf is not None:
            source, path = self._leaf
            return {(source, path or ("value",)): IDENTITY}
        return found

    def through(self, table: dict[int, int]) -> Value:
        """The same shape with every source having gone through one more step."""
        if not self.kind:
            return Value(apply(self.bits, table))
        parts = {name: part.through(table) for name, part in self.parts.items()}
        return Value(apply(self.bits, table), self.kind, parts)


def steps(data_type: Any) -> Iterator[tuple[str, Any, Path]]:
    """The parts of a type: name, type, and what each adds to the path of a column."""
    kind = data_type.get("type") if isinstance(data_type, dict) else ""
    if kind == STRUCT:
        for field in data_type.get("fields", ()):
            yield field["name"], field["type"], (field["name"],)
    elif kind == ARRAY:
        yield "element", data_type["elementType"], ()
    elif kind == MAP:
        yield "key", data_type["keyType"], ("key",)
        yield "value", data_type["valueType"], ("value",)


def _has_fields(data_type: Any) -> bool:
    if not isinstance(data_type, dict):
        return False
    if data_type.get("type") == STRUCT:
        return bool(data_type.get("fields"))
    return any(_has_fields(inner) for _, inner, _ in steps(data_type))


has_fields = _has_fields


def add(into: Bits, more: Bits) -> None:
    """Put sources together: what enters twice enters both ways."""
    for leaf, bits in more.items():
        into[leaf] = into.get(leaf, 0) | bits


def merge(values: Iterable[Value]) -> Value:
    """One column that is any of several: shapes stay where they agree."""
    found = list(values)
    if len(found) == 1:
        return found[0]
    shaped = [value for value in found if value.kind]
    kinds = {value.kind for value in shaped}
    if len(kinds) == 1 and all(value.kind or not (value.bits or value.wire) for value in found):
        names = dict.fromkeys(name for value in shaped for name in value.parts)
        parts = {
            name: merge([value.parts[name] for value in shaped if name in value.parts])
            for name in names
        }
        bits: Bits = {}
        for value in shaped:
            add(bits, value.bits)
        return Value(bits, kinds.pop(), parts, encoded=all(value.encoded for value in shaped))
    if len(shaped) == 1 and all(not _direct(v.bits) for v in found if not v.kind):
        one = shaped[0]
        bits = dict(one.bits)
        for value in found:
            if not value.kind:
                add(bits, value.bits)
        return Value(bits, one.kind, one.parts, encoded=one.encoded)
    bits = {}
    for value in found:
        add(bits, value.all())
    wires = {value.wire for value in found if value.bits}
    return Value(bits, wire=wires.pop() if len(wires) == 1 else None)


def _direct(bits: Bits) -> bool:
    return any(bit & DIRECT for bit in bits.values())


def _table(*pairs: tuple[int, int]) -> dict[int, int]:
    """What each combination of bits becomes when each bit becomes another."""
    single = dict(pairs)
    found: dict[int, int] = {}
    for bits in range(64):
        out = 0
        for bit in (1, 2, 4, 8, 16, 32):
            if bits & bit:
                out |= single.get(bit, bit)
        found[bits] = out
    return found


TRANSFORM = _table((IDENTITY, TRANSFORMATION))
TEST_FOR_NULL = _table((IDENTITY, NULL_TEST))
AGGREGATE = _table(
    (IDENTITY, AGGREGATION),
    (TRANSFORMATION, AGGREGATION),
    (NULL_TEST, AGGREGATION),
    (MASKED_TRANSFORMATION, MASKED_AGGREGATION),
)
MASK = _table(
    (IDENTITY, MASKED_TRANSFORMATION),
    (NULL_TEST, MASKED_TRANSFORMATION),
    (TRANSFORMATION, MASKED_TRANSFORMATION),
    (AGGREGATION, MASKED_AGGREGATION),
)
MASK_AGGREGATE = _table(
    (IDENTITY, MASKED_AGGREGATION),
    (NULL_TEST, MASKED_AGGREGATION),
    (TRANSFORMATION, MASKED_AGGREGATION),
    (AGGREGATION, MASKED_AGGREGATION),
    (MASKED_TRANSFORMATION, MASKED_AGGREGATION),
)


def apply(bits: Bits, table: dict[int, int]) -> Bits:
    """Let every direct source go through a step; what was indirect stays as it is."""
    return {leaf: table[bit & DIRECT] | (bit & ~DIRECT) for leaf, bit in bits.items()}


def indirect(bits: Bits, kind: int) -> Bits:
    """The sources of a column as deciding about others: a filter's, a join's."""
    null_kind = NULL_FILTER if kind == FILTER else kind
    return {
        leaf: (null_kind if bit & DIRECT == NULL_TEST else kind if bit & DIRECT else 0)
        | (bit & ~DIRECT)
        for leaf, bit in bits.items()
    }
