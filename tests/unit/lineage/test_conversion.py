"""Types are prepared by modules: msgspec ends the process when two threads meet a new type at once."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from headwater.lineage.conversion import converter

SOURCES = Path(__file__).parents[3] / "src/headwater"
# Types that msgspec knows without looking at them.
SCALARS = {"UUID", "datetime"}


class Point(msgspec.Struct):
    x: int
    y: int = 0


def test_a_converter_converts_and_refuses() -> None:
    to_points = converter(tuple[Point, ...])
    assert to_points([{"x": 1}, {"x": 2, "y": 3}]) == (Point(1), Point(2, 3))
    with pytest.raises(
        msgspec.ValidationError, match=r"Expected `int`, got `str` - at `\$\[0\]\.x`"
    ):
        to_points([{"x": "1"}])


def first_met_in_functions(tree: ast.Module) -> list[int]:
    """The lines of functions that hand msgspec a type, where a thread may be the first to do so."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            typed = any(one.arg == "type" for one in call.keywords)
            match call.func.attr:
                case "decode" if typed:
                    found.append(call.lineno)
                case "Decoder" if call.args or typed:
                    found.append(call.lineno)
                case "convert" if "msgspec" in ast.unparse(call.func):
                    kind = ast.unparse(call.args[1]) if len(call.args) > 1 else ""
                    if kind not in SCALARS:
                        found.append(call.lineno)
    return found


def test_functions_are_found_that_meet_a_type_first() -> None:
    tree = ast.parse(
        "import msgspec\n"
        "early = msgspec.json.Decoder(Point)\n"
        "def read(body):\n"
        "    early.decode(body)\n"
        "    msgspec.convert(body, UUID)\n"
        "    msgspec.json.decode(body)\n"
        "    msgspec.json.decode(body, type=Point)\n"
        "    msgspec.convert(body, Point)\n"
        "    msgspec.json.Decoder(Point)\n"
    )
    assert first_met_in_functions(tree) == [7, 8, 9]


def test_no_function_meets_a_type_first() -> None:
    allowed = {
        # What `converter` itself does, when a module calls it.
        "lineage/conversion.py": 1,
        # A member of a facet, whose type has a decoder by then.
        "lineage/openlineage/facets.py": 1,
    }
    found = {
        path.relative_to(SOURCES).as_posix(): lines
        for path in SOURCES.rglob("*.py")
        if "msgspec" in (text := path.read_text())
        and (lines := first_met_in_functions(ast.parse(text)))
    }
    assert {name: len(lines) for name, lines in found.items()} == allowed, found


def test_a_facet_has_a_decoder_for_its_type() -> None:
    facets = import_module("headwater.lineage.openlineage.facets")
    assert facets.read(b'{"physicalName":"p"}', facets.Physical) is not None
    with pytest.raises(KeyError):
        facets.read(b"{}", Point)
