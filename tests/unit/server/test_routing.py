"""A route is its handler's declaration: path, parameters, role and description."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from headwater.server.api.parameters import flag, integer, moment, text
from headwater.server.http import HttpError, Request
from headwater.server.routing import Router, Routes

if TYPE_CHECKING:
    from headwater.server.app import App

api = Routes()


@api.get("/api/things/{namespace}/{name}")
async def thing(
    namespace: str,
    name: str,
    limit: int = integer(10, 1, 50),
    kind: str = text("table", options=("table", "topic")),
    since: int | None = moment(),
    deep: bool = flag(name="withDepth"),
) -> list[Any]:
    """One thing.

    More of it.
    """
    return [namespace, name, limit, kind, since, deep]


@api.route("PUT", "/api/things/{namespace}/{name}", role="admin")
async def put(namespace: str, name: str) -> str:
    """Make a thing."""
    return f"{namespace} {name}"


@api.get("/api/things/all/{name}")
async def everywhere(name: str, q: str = text(required=True)) -> list[str]:
    """One name everywhere."""
    return [name, q]


def ask(path: str, query: str = "", method: str = "GET") -> Any:
    router = Router()
    router.mount(cast("App", None), api)
    scope = {"method": method, "path": path, "raw_path": path.encode(), "headers": []}
    request = Request({**scope, "query_string": query.encode()})
    return asyncio.run(router.find(request).handler(request))


def test_a_handler_gets_what_it_names() -> None:
    assert ask("/api/things/s3%3A%2F%2Flake/a%2Fb") == [
        "s3://lake",
        "a/b",
        10,
        "table",
        None,
        False,
    ]
    query = "limit=99&kind=TOPIC&since=1970-01-01T00:00:01Z&withDepth=yes"
    assert ask("/api/things/x/y", query) == ["x", "y", 50, "topic", 1_000_000, True]
    assert ask("/api/things/x/y", method="PUT") == "x y"


@pytest.mark.parametrize(
    ("written", "ago"), [("now", 0), ("NOW", 0), ("90m", 5_400), ("2d", 172_800), ("1H", 3_600)]
)
def test_a_time_may_be_how_long_ago(written: str, ago: int) -> None:
    before = time.time_ns() // 1_000
    found = ask("/api/things/x/y", f"since={written}")[4] + ago * 1_000_000
    assert before <= found <= time.time_ns() // 1_000


def test_a_segment_by_its_name_goes_before_any_segment() -> None:
    assert ask("/api/things/all/y", "q=1") == ["y", "1"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "limit: less than 1"),
        ("limit=x", "limit: not a whole number"),
        ("kind=view", "kind: not one of table, topic"),
        (
            "since=yesterday",
            "since: not a time: RFC 3339, a date, how long ago (90m, 2d), or now",
        ),
        (
            "since=99999999999d",
            "since: not a time: RFC 3339, a date, how long ago (90m, 2d), or now",
        ),
    ],
)
def test_a_wrong_parameter_is_named(query: str, message: str) -> None:
    with pytest.raises(HttpError) as refused:
        ask("/api/things/x/y", query)
    assert (refused.value.code, refused.value.message) == (400, message)
    assert [problem.field for problem in refused.value.problems] == [query.partition("=")[0]]


def test_a_missing_parameter_a_wrong_path_and_a_wrong_method() -> None:
    for path, method, code in (
        ("/api/things/all/y", "GET", 400),
        ("/api/things/x", "GET", 404),
        ("/api/things/x/y", "DELETE", 405),
    ):
        with pytest.raises(HttpError) as refused:
            ask(path, method=method)
        assert refused.value.code == code
    assert refused.value.headers == [(b"allow", b"GET, HEAD, OPTIONS, PUT")]


def test_the_declaration_describes_the_route() -> None:
    found = api.declared[0]
    assert (found.method, found.role, found.summary) == ("GET", "read", "One thing")
    assert [one.name for one in found.parameters.values()] == [
        "limit",
        "kind",
        "since",
        "withDepth",
    ]
    assert found.parameters["kind"].schema == {"type": "string", "enum": ["table", "topic"]}


def test_a_parameter_that_nothing_gives_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="neither in /api/x nor declared"):

        @Routes().get("/api/x")
        async def wrong(name: str) -> str:
            return name
