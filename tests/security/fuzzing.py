"""Events and requests that are wrong in every way, the same ones for the same seed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.properties import places

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

FIXTURES = Path(__file__).parents[1] / "fixtures"
STRINGS = (
    "", " ", "\0", "a\0b", "null", "x" * 1_024, "x" * 1_025, "é" * 600, "٣", "../..", "..", ".",
    "a/b", "a:b", "%", "%2F", "%00", "{in}", "'; --", '"', "\\", "\n", "\u202e", "\ufeff", "👩‍👩‍👧",
    "<script>", "__proto__", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00", "2026-01-01T00:00:00+23:59", "2026-01-01", "1970-01-01T00:00:00Z", "NaN", "-1", "1e400",
    "00000000-0000-0000-0000-000000000000", "dataset:a:b", "job:a:b", "datasetField:" + ":" * 50,
    "job:" + "x" * 2_000, "password=hunter2", "postgres://u:p@h/db", "START", "COMPLETE", "true",
)  # fmt: skip
NUMBERS = (0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308)
VALUES: tuple[Any, ...] = (
    *STRINGS,
    *NUMBERS,
    None,
    True,
    False,
    [],
    {},
    [[]],
    [{}],
    {"": {}},
    [None],
    {"a": None},
)
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")


def seeds() -> list[dict[str, Any]]:
    """Real events of several producers, to begin with."""
    found = [json.loads((FIXTURES / "lineage" / "event.json").read_text())]
    found += [json.loads(line) for line in (FIXTURES / "fuzz" / "seeds.ndjson").open()]
    return found


def kept() -> list[bytes]:
    """Bodies that once broke something, or could: each is sent in every run."""
    lines = (FIXTURES / "fuzz" / "bodies.ndjson").read_text().splitlines()
    return [json.loads(line)["body"].encode("latin-1") for line in lines]


def _at(made: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        made = made[key]
    return made


def _value(chance: random.Random) -> Any:
    """One of the values; a copy, since what it is put into may be changed again."""
    return copy.deepcopy(chance.choice(VALUES))


def changed(chance: random.Random, document: Any, most: int = 3) -> Any:
    """A document with a few places replaced, removed, repeated, renamed or moved."""
    made = copy.deepcopy(document)
    for _ in range(chance.randint(1, most)):
        paths = list(places(made))
        if not paths:
            return _value(chance)
        path = chance.choice(paths)
        inside, key = _at(made, path[:-1]), path[-1]
        how = chance.randrange(7)
        if how <= 2:
            inside[key] = _value(chance)
        elif how == 3:
            del inside[key]
        elif how == 4:
            inside[key] = copy.deepcopy(_at(made, chance.choice(paths)))
        elif how == 5 and isinstance(inside, dict):
            inside[str(chance.choice(STRINGS))] = inside.pop(key)
        elif isinstance(inside, list):
            inside.extend([inside[key]] * chance.choice((1, 2, 60)))
        else:
            inside[key] = [inside[key]] if chance.random() < 0.5 else {"x": inside[key]}
    return made


def broken(chance: random.Random, body: bytes) -> bytes:
    """A text with some of its bytes changed, removed, put in, or repeated."""
    made = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        at, how = chance.randrange(len(made) + 1), chance.randrange(5)
        if how == 0:
            made[at : at + 1] = bytes([chance.randrange(256)])
        elif how == 1:
            del made[at : at + chance.randint(1, 20)]
        elif how == 2:
            made[at:at] = chance.choice(
                (b"\xff", b"\0", b"\xed\xa0\x80", b"{", b"]", b'"', b",", b"e9")
            )
        elif how == 3:
            made[at:at] = made[at : at + chance.randint(1, 200)]
        else:
            del made[at:]
    return bytes(made).replace(b"\n", b" ").replace(b"\r", b" ")


def events(chance: random.Random, count: int) -> Iterator[bytes]:
    """Bodies of events: the kept ones, then so many that were made from real ones."""
    yield from kept()
    known = seeds()
    for number in range(count):
        made = copy.deepcopy(chance.choice(known))
        if isinstance(made.get("run"), dict):  # else most of them would end one and the same run
            made["run"]["runId"] = f"00000000-0000-4000-8000-{chance.randrange(count):012d}"
        made = changed(chance, made)
        body = json.dumps(made, ensure_ascii=bool(number % 2)).encode("utf-8", "surrogatepass")
        yield broken(chance, body) if number % 4 == 0 else body


def sample(chance: random.Random, schema: Any, parts: dict[str, Any], depth: int = 0) -> Any:
    """Something that a schema of the description allows, or nearly."""
    if "$ref" in schema:
        return sample(chance, parts[schema["$ref"].rpartition("/")[2]], parts, depth + 1)
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return sample(chance, chance.choice(options), parts, depth + 1)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema.get("type", "object")
    if depth > 8:
        return None
    if kind == "object":
        properties = schema.get("properties", {})
        return {n: sample(chance, one, parts, depth + 1) for n, one in properties.items()}
    if kind == "array":
        return [sample(chance, schema.get("items", {}), parts, depth + 1)] * chance.randint(0, 2)
    if kind in ("integer", "number"):
        return chance.choice(NUMBERS)
    return chance.random() < 0.5 if kind == "boolean" else chance.choice(STRINGS)


class Requests:
    """Requests made from a server's own description, around names that it holds."""

    def __init__(self, chance: random.Random, document: dict[str, Any], names: list[str]) -> None:
        self._chance = chance
        self._parts = document["components"]["schemas"]
        self._names = names or ["x"]
        self._calls = [
            (method.upper(), path, one)
            for path, methods in document["paths"].items()
            for method, one in methods.items()
            if path != "/api/v2/live"  # never ends
        ]

    def _text(self) -> str:
        chance = self._chance
        if chance.random() < 0.6:
            return chance.choice(self._names)
        return str(chance.choice(VALUES))

    def one(self) -> tuple[str, str, bytes | None, dict[str, str]]:
        """Method, address, body and headers."""
        chance = self._chance
        method, path, call = chance.choice(self._calls)
        if path == "/api/v2/purge" and chance.random() < 0.9:  # writes the whole store anew
            method, path, call = chance.choice(self._calls)
        query = []
        for parameter in call["parameters"]:
            if parameter["in"] == "path":
                text = quote(self._text(), safe="")
                path = path.replace("{" + parameter["name"] + "}", text or "%20")
            elif chance.random() < 0.5:
                query.append(f"{parameter['name']}={quote(self._text(), safe='')}")
        if query:
            path += "?" + chance.choice(("&", "&", "&&", ";")).join(query)
        if chance.random() < 0.03:
            method = chance.choice(METHODS)
        body = self._body(call) if "requestBody" in call or chance.random() < 0.05 else None
        headers = {}
        if chance.random() < 0.1:
            name = chance.choice(
                ("content-type", "content-encoding", "accept", "last-event-id", "if-none-match")
            )
            headers[name] = chance.choice(("text/plain", "gzip", "zstd", "*", "9" * 30, "br", ""))
        return method, path, body, headers

    def _body(self, call: dict[str, Any]) -> bytes:
        chance = self._chance
        content = call.get("requestBody", {}).get("content", {})
        schema: Any = next((one["schema"] for one in content.values()), {})
        made = sample(chance, schema, self._parts)
        if chance.random() < 0.6:
            made = changed(chance, made)
        body = json.dumps(made).encode("utf-8", "surrogatepass")
        return broken(chance, body) if chance.random() < 0.2 else body
