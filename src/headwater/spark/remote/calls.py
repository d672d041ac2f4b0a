"""Functions in a plan's text: what each call is, by its name and its arguments."""

from __future__ import annotations

from typing import Any

from headwater.spark.functions import WRITE_SIDE
from headwater.spark.remote import types
from headwater.spark.remote.layout import Text, Unclear, split
from headwater.spark.remote.words import AGGREGATES, ARGUMENTS, CLASSES

_CASTS = ("cast", "try_cast", "ansi_cast", "upcast")
_SAME_TYPE = ("Max", "Min", "First", "Last", "AnyValue", "Mode", "MaxBy", "MinBy", "Coalesce",
              "Reverse", "Slice", "SortArray", "ArraySort", "ArrayDistinct", "KnownNullable",
              "KnownNotNull", "AssertNotNull")  # fmt: skip
_TEXTS = ("upper", "lower", "trim", "concat_ws", "to_json", "substring", "date_format")
_GROUPED = 202


class Calls:
    """How a call becomes a node; the phrases around it are read by whoever extends this."""

    literals: dict[str, str]
    functions: dict[str, set[int]]

    def expression(self, text: str) -> Text:
        """One expression, with the name it is given if it is given one."""
        raise NotImplementedError

    def phrase(self, text: str) -> Text:
        """An expression without a name of its own."""
        raise NotImplementedError

    def literal(self, text: str) -> Text:
        """A constant."""
        data = {"class": "Literal", "num-children": 0, "value": self.literals.get(text, text)}
        return Text(data, [])

    def generic(self, kind: str, children: list[Text], data_type: Any = None) -> Text:
        """Something that hands on what it is given."""
        data = {"class": kind, "num-children": len(children), "dataType": data_type}
        return Text(data, list(children))

    def call(self, name: str, inner: str) -> Text:
        """A function and what it is given."""
        name = name.removeprefix("'").lower()
        if name in _CASTS:
            return self._cast(inner)
        parts = split(inner) if inner else []
        special = getattr(self, f"_{name}", None) if name in _SPECIAL else None
        if special is not None:
            made: Text = special(parts)
            return made
        if name.rpartition(".")[2] in {word.lower() for word in WRITE_SIDE} and parts:
            return self.phrase(parts[0])
        if name in AGGREGATES:
            return self._aggregate(name, parts)
        kind = CLASSES.get(name, "Function")
        children = [self.phrase(part) for part in parts]
        wanted = ARGUMENTS.get(kind)
        if wanted is not None and len(children) != wanted:
            raise Unclear(f"the arguments of {name} are not clear")
        if kind == "Decode" and len(children) > 2:
            raise Unclear("decode with a list of choices")
        made = self.generic(kind, children)
        made.data["headwater_name"] = name
        if kind in _SAME_TYPE and children:
            made.data["dataType"] = children[0].get("dataType")
        elif name in _TEXTS:
            made.data["dataType"] = "string"
        return made

    def _cast(self, inner: str) -> Text:
        parts = split(inner, " as ")
        if len(parts) < 2:
            raise Unclear("a cast is not clear")
        value = self.phrase(inner[: -len(parts[-1]) - 4])
        target = types.simple(parts[-1])
        if target is None or value.get("dataType") is None:
            return self.generic("UncertainCast", [value], target)
        return self.generic("Cast", [value], target)

    def _aggregate(self, name: str, parts: list[str]) -> Text:
        parts = [part.removeprefix("distinct ") for part in parts]
        kind = AGGREGATES[name]
        if ARGUMENTS.get(kind, 0) > len(parts) or (kind == "PivotFirst" and len(parts) < 2):
            raise Unclear(f"the arguments of {name} are not clear")
        children = [self.phrase(part) for part in parts]
        kept = children[0].get("dataType") if children and kind in _SAME_TYPE else None
        if kind in ("CollectList", "CollectSet") and children:
            element = children[0].get("dataType")
            kept = element and {"type": "array", "elementType": element, "containsNull": False}
        function = self.generic(kind, children, "long" if kind == "Count" else kept)
        made = self.generic("AggregateExpression", [function], function.get("dataType"))
        made.data["aggregateFunction"] = function
        return made

    def _outer(self, parts: list[str]) -> Text:
        if len(parts) != 1:
            raise Unclear("an outer reference is not clear")
        made = self.generic("OuterReference", [])
        made.data["e"] = self.phrase(parts[0])
        made.data["dataType"] = made.data["e"].get("dataType")
        return made

    def _lambdafunction(self, parts: list[str]) -> Text:
        if len(parts) < 2 or parts[-1] not in ("true", "false"):
            raise Unclear("a lambda is not clear")
        body = self.phrase(parts[0])
        made = self.generic("LambdaFunction", [body])
        made.data["function"] = body
        made.data["arguments"] = [self.phrase(part) for part in parts[1:-1]]
        return made

    def _struct(self, parts: list[str]) -> Text:
        if len(parts) % 2:
            raise Unclear("the fields of a struct are not clear")
        children: list[Text] = []
        fields = []
        for name, value in zip(parts[::2], parts[1::2], strict=True):
            label, made = self.phrase(name), self.phrase(value)
            if label.kind != "Literal":
                raise Unclear("the fields of a struct are not clear")
            children += [label, made]
            fields.append({"name": str(label.get("value")), "type": made.get("dataType")})
        known = all(field["type"] is not None for field in fields)
        return self.generic(
            "CreateNamedStruct", children, {"type": "struct", "fields": fields} if known else None
        )

    _named_struct = _struct

    def _from_json(self, parts: list[str]) -> Text:
        fields = [part for part in parts if part.startswith("StructField(")]
        rest = parts[len(fields) :]
        schema: Any = types.fields(fields) if fields else types.long(rest.pop(0))
        # Options stand before the column in some versions, in a map of their own.
        rest = [part for part in rest if not part.startswith(("Map(", "("))]
        if not rest:
            raise Unclear("from_json is not clear")
        made = self.generic("JsonToStructs", [self.phrase(rest[0])], schema)
        made.data["schema"] = schema
        return made

    def _from_avro(self, parts: list[str]) -> Text:
        if len(parts) < 2:
            raise Unclear("from_avro is not clear")
        made = self.generic("FromAvro", [self.phrase(parts[0])])
        made.data["jsonFormatSchema"] = self.literals.get(parts[1], parts[1])
        return made

    def _arrays_zip(self, parts: list[str]) -> Text:
        children = [self.phrase(part) for part in parts]
        if len(children) % 2:
            raise Unclear("arrays_zip is not clear")
        made = self.generic("ArraysZip", children)
        made.data["names"] = children[len(children) // 2 :]
        return made

    def _nvl2(self, parts: list[str]) -> Text:
        if len(parts) != 3:
            raise Unclear("nvl2 is not clear")
        return self.generic("If", [self.phrase(part) for part in parts])

    def _static_invoke(self, parts: list[str]) -> Text:
        return self.phrase(", ".join(parts))

    def _update_fields(self, parts: list[str]) -> Text:
        children = [self.phrase(parts[0])]
        operations: list[dict[str, str]] = []
        for part in parts[1:]:
            word, _, inner = part.partition("(")
            inside = split(inner.removesuffix(")"))
            if word.lower() == "withfield" and len(inside) == 2:
                operations.append({"product-class": "WithField"})
                made = self.generic("WithField", [self.phrase(inside[1])])
                made.data["name"] = inside[0]
                children.append(made)
            elif word.lower() == "dropfield" and len(inside) == 1:
                operations.append({"product-class": "DropField", "name": inside[0]})
            else:
                raise Unclear("the changes of a struct are not clear")
        made = self.generic("UpdateFields", children)
        made.data["fieldOps"] = operations
        return made

    def window(self, function: Text, inner: str) -> Text:
        """A function over a window."""
        parts = [part for part in split(inner) if "windowframe" not in part.lower()]
        made = self.generic("WindowExpression", [function], function.get("dataType"))
        spec = self.generic("WindowSpecDefinition", [])
        spec.data["partitionSpec"] = [self.expression(part) for part in parts]
        made.children.append(spec)
        return made

    def python(self, function: Text) -> None:
        """Say of a call that it is a function in Python."""
        if function.kind == "AggregateExpression":
            function.data.pop("aggregateFunction")
            function.children = list(function.children[0].children)
        name = str(function.get("headwater_name") or "")
        function.kind = "PythonUDF"
        kinds = self.functions.get(name, set())
        function.data["evalType"] = next(iter(kinds)) if len(kinds) == 1 else None
        function.data["dataType"] = None

    def dots(self, value: Text, path: list[str]) -> Text:
        """Fields inside a value."""
        for name in path:
            made = self.generic("Dot", [value], _field(value.get("dataType"), name))
            made.data["name"] = name
            value = made
        return value

    def item(self, value: Text, place: Text) -> Text:
        """An element of an array or an entry of a map."""
        outer = value.get("dataType")
        kind = outer.get("type") if isinstance(outer, dict) else ""
        inner = outer.get("elementType" if kind == "array" else "valueType") if kind else None
        return self.generic("GetArrayItem", [value, place], inner)


_SPECIAL = ("outer", "lambdafunction", "struct", "named_struct", "from_json", "from_avro",
            "arrays_zip", "nvl2", "static_invoke", "update_fields")  # fmt: skip


def _field(outer: Any, name: str) -> Any:
    if not isinstance(outer, dict):
        return None
    if outer.get("type") == "array":
        inner = _field(outer.get("elementType"), name)
        return inner and {"type": "array", "elementType": inner, "containsNull": True}
    for field in outer.get("fields", ()):
        if field["name"].lower() == name.lower():
            return field["type"]
    return None
