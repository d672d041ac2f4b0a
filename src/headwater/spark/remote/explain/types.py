"""Types in a plan's text, in both ways Spark writes them, as its JSON has them."""

from __future__ import annotations

import re
from typing import Any

from headwater.spark.remote.explain.layout import UnclearText, split
from headwater.spark.remote.explain.spark_functions import LONG, SIMPLE

_PLAIN = re.compile(r"^[a-z_]+(?:\(\d+(?:, ?-?\d+)?\))?(?: collate \w+)?$", re.IGNORECASE)
_FIELD = re.compile(r"^StructField\((?P<rest>.*)\)$", re.DOTALL)


def from_simple_string(text: str) -> Any:
    """`struct<a:bigint>` and `decimal(10,2)`; None when it cannot be read."""
    text = text.strip()
    for word, made in (("array<", _array), ("map<", _map), ("struct<", _struct)):
        if text.startswith(word) and text.endswith(">"):
            return made(_parts(text[len(word) : -1]))
    if not _PLAIN.match(text):
        return None
    return SIMPLE.get(text.lower(), text.lower().replace(", ", ","))


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _array(parts: list[str]) -> Any:
    inner = from_simple_string(parts[0]) if len(parts) == 1 else None
    return inner and {"type": "array", "elementType": inner, "containsNull": True}


def _map(parts: list[str]) -> Any:
    inner = [from_simple_string(part) for part in parts]
    if len(inner) != 2 or None in inner:
        return None
    return {"type": "map", "keyType": inner[0], "valueType": inner[1], "valueContainsNull": True}


def _struct(parts: list[str]) -> Any:
    fields = []
    for part in parts:
        name, colon, kind = part.partition(":")
        made = from_simple_string(kind)
        if not colon or made is None:
            return None
        fields.append({"name": name, "type": made, "nullable": True})
    return {"type": "struct", "fields": fields}


def from_class_string(text: str) -> Any:
    """`LongType`, `StructType(StructField(a,LongType,true))` and their like."""
    text = text.strip()
    if text in LONG:
        return LONG[text]
    name, bracket, rest = text.partition("(")
    if not bracket or not rest.endswith(")"):
        raise UnclearText(f"a type that is not known: {text[:40]}")
    inner = split(rest[:-1], ",")
    if name == "DecimalType":
        return f"decimal({','.join(part.strip() for part in inner)})"
    if name == "ArrayType" and len(inner) == 2:
        return {"type": "array", "elementType": from_class_string(inner[0]), "containsNull": True}
    if name == "MapType" and len(inner) == 3:
        key, value = from_class_string(inner[0]), from_class_string(inner[1])
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if name == "StructType":
        return fields(inner)
    if name in ("StringType", "CharType", "VarcharType"):
        return "string"
    raise UnclearText(f"a type that is not known: {text[:40]}")


def fields(parts: list[str]) -> Any:
    """A struct of `StructField(name,Type,nullable)`s."""
    made = []
    for part in parts:
        match = _FIELD.match(part.strip())
        inside = split(match["rest"], ",") if match else []
        if len(inside) != 3:
            raise UnclearText("the fields of a type are not clear")
        made.append({"name": inside[0], "type": from_class_string(inside[1]), "nullable": True})
    return {"type": "struct", "fields": made}
