"""JSON Schema, with the extensions that Connect's converter writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from . import logical
from .model import (
    ELEMENT,
    Budget,
    Field,
    Schema,
    SchemaError,
    bounded,
    container,
    decode_json,
    shown,
    string,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Path = tuple[str, ...]
Node = dict[str, Any]

_TYPES = {"integer": "long", "number": "double", "boolean": "boolean", "string": "string"}
_FORMATS = {"date-time": "timestamp", "date": "date", "time": "time", "uuid": "uuid"}
_CONNECT = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "bytes": "bytes",
}


@bounded
def read_json_schema(schema: object, references: Mapping[str, object] | None = None) -> Schema:
    """Read a JSON Schema from text or decoded JSON; `references` are other documents by name."""
    root = decode_json(schema)
    if isinstance(root, bool):
        root = {}
    if not isinstance(root, dict):
        raise SchemaError("schema: a JSON Schema is an object")
    documents = {name: decode_json(text) for name, text in (references or {}).items()}
    field = _JsonSchemaReader(documents).field("", root, root, ())
    return Schema(field.fields, field.type, field.description)


class _JsonSchemaReader:
    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.open: list[int] = []
        self.budget = Budget()

    def field(self, name: str, node: object, root: Node, path: Path) -> Field:
        self.budget.take(path)
        if isinstance(node, bool) or node is None:
            return Field(name, "")
        if not isinstance(node, dict):
            raise SchemaError(f"{shown(path)}: a JSON Schema is an object or a boolean")
        if id(node) in self.open or len(self.open) > 4 * self.budget.depth:
            return Field(name, "struct")
        self.open.append(id(node))
        try:
            field = self._read(name, node, root, path)
        finally:
            self.open.pop()
        text = string(node.get("description")) or field.description
        default = field.default or "default" in node
        return msgspec.structs.replace(field, description=text, default=default)

    def _read(self, name: str, node: Node, root: Node, path: Path) -> Field:
        if isinstance(node.get("$ref"), str):
            target, document = self._resolve(node["$ref"], root, path)
            return self.field(name, target, document, path)
        for key in ("oneOf", "anyOf"):
            if isinstance(node.get(key), list):
                return self._choice(name, node, node[key], root, path)
        if isinstance(node.get("allOf"), list):
            return self._all(name, node, root, path)
        kind = node.get("type")
        if isinstance(kind, list):
            rest = [one for one in kind if one != "null"]
            inner = {**node, "type": rest[0]} if len(rest) == 1 else {**node, "type": None}
            field = self._typed(name, inner, root, path)
            if len(rest) > 1:
                kinds = ",".join(_TYPES.get(str(one), str(one)) for one in rest)
                field = msgspec.structs.replace(field, type=f"union<{kinds}>", fields=())
            return msgspec.structs.replace(field, nullable=len(rest) < len(kind))
        return self._typed(name, node, root, path)

    def _typed(self, name: str, node: Node, root: Node, path: Path) -> Field:
        found = logical.named(node.get("title"), node.get("connect.parameters"))
        connect = string(node.get("connect.type"))
        kind = string(node.get("type"))
        if found or connect in _CONNECT:
            return Field(name, found or _CONNECT[connect], nullable=False)
        if kind == "object" or (not kind and "properties" in node):
            return self._object(name, node, root, path)
        if kind == "array":
            return self._array(name, node, root, path, is_map=connect == "map")
        if kind == "null":
            return Field(name, "null", nullable=True)
        if kind == "string" and "enum" in node:
            return Field(name, "enum", nullable=False)
        if kind == "string" and (form := _FORMATS.get(string(node.get("format")))):
            return Field(name, form, nullable=False)
        return Field(name, _TYPES.get(kind, kind), nullable=False)

    def _object(self, name: str, node: Node, root: Node, path: Path) -> Field:
        properties = node.get("properties")
        extra = node.get("additionalProperties")
        if not properties and isinstance(extra, dict):
            value = self.field("value", extra, root, (*path, "value"))
            return container(name, "map", (Field("key", "string"), value), nullable=False)
        if properties is not None and not isinstance(properties, dict):
            raise SchemaError(f"{shown(path)}: properties is not an object")
        required = node.get("required")
        needed = set(map(str, required)) if isinstance(required, list) else set()
        ordered = sorted((properties or {}).items(), key=lambda item: _index(item[1]))
        fields = []
        for key, inner in ordered:
            field = self.field(key, inner, root, (*path, key))
            nullable = bool(field.nullable) or key not in needed
            fields.append(msgspec.structs.replace(field, nullable=nullable))
        return Field(name, "struct", fields=unique(fields), nullable=False)

    def _array(self, name: str, node: Node, root: Node, path: Path, *, is_map: bool) -> Field:
        items = node.get("items", node.get("prefixItems"))
        if isinstance(items, list):
            items = items[0] if len(items) == 1 else {}
        item = self.field(ELEMENT, items, root, (*path, ELEMENT))
        if is_map and {"key", "value"} <= {child.name for child in item.fields}:
            return container(name, "map", item.fields, nullable=False)
        return container(name, "array", (item,), nullable=False)

    def _choice(self, name: str, node: Node, raw: list[Any], root: Node, path: Path) -> Field:
        rest = [one for one in raw if not (isinstance(one, dict) and one.get("type") == "null")]
        nullable = len(rest) < len(raw)
        if not rest:
            return Field(name, "null", nullable=True)
        if len(rest) == 1:
            field = self.field(name, rest[0], root, path)
            return msgspec.structs.replace(field, nullable=nullable or bool(field.nullable))
        branches = []
        for number, branch in enumerate(rest):
            label = _label(branch, number)
            branches.append(self.field(label, branch, root, (*path, label)))
        if node.get("properties"):
            return self._object(name, node, root, path)
        if any(branch.fields for branch in branches):
            return Field(name, "union", fields=unique(branches), nullable=nullable)
        kinds = dict.fromkeys(branch.type or "unknown" for branch in branches)
        kind = next(iter(kinds)) if len(kinds) == 1 else f"union<{','.join(kinds)}>"
        return Field(name, kind, nullable=nullable)

    def _all(self, name: str, node: Node, root: Node, path: Path) -> Field:
        own = {key: value for key, value in node.items() if key != "allOf"}
        parts = [self.field(name, part, root, path) for part in (*node["allOf"], own)]
        fields = unique([field for part in parts for field in part.fields])
        kind = "struct" if fields else next((part.type for part in parts if part.type), "")
        nullable = all(part.nullable for part in parts)
        text = next((part.description for part in parts if part.description), "")
        return Field(name, kind, text, fields, nullable)

    def _resolve(self, ref: str, root: Node, path: Path) -> tuple[object, Node]:
        document, _, pointer = ref.partition("#")
        if document and document != root.get("$id"):
            tail = document.rpartition("/")[2]
            found = self.documents.get(document, self.documents.get(tail))
            if not isinstance(found, dict):
                raise SchemaError(f"{shown(path)}: the reference {ref[:100]!r} is not given")
            root = found
        node: object = root
        for step in pointer.split("/")[1:] if pointer.startswith("/") else ():
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdigit() and int(key[:9]) < len(node):
                node = node[int(key)]
            elif isinstance(node, dict) and key in node:
                node = node[key]
            else:
                raise SchemaError(f"{shown(path)}: the reference {ref[:100]!r} points nowhere")
        if pointer and not pointer.startswith("/"):
            node = _anchor(root, pointer)
            if node is None:
                raise SchemaError(f"{shown(path)}: the reference {ref[:100]!r} points nowhere")
        return node, root


def _anchor(root: Node, name: str) -> object:
    for group in ("$defs", "definitions"):
        inner = root.get(group)
        for node in inner.values() if isinstance(inner, dict) else ():
            if isinstance(node, dict) and name in (node.get("$anchor"), node.get("$id")):
                return node
            if isinstance(node, dict) and node.get("$id") == f"#{name}":
                return node
    return None


def _index(node: object) -> int:
    index = node.get("connect.index") if isinstance(node, dict) else None
    return index if isinstance(index, int) else 0


def _label(branch: object, number: int) -> str:
    if isinstance(branch, dict):
        named = string(branch.get("title")) or string(branch.get("$ref")).rpartition("/")[2]
        return named or string(branch.get("type")) or f"option{number}"
    return f"option{number}"
