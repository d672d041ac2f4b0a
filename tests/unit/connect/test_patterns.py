"""Java's regular expressions: the same answers, in bounded time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.connect.derive.config_values import split_patterns
from headwater.connect.derive.java_regex import PatternError, literal, literals, pattern


@pytest.mark.parametrize(
    ("expression", "replacement", "topic", "becomes"),
    [
        ("(.*)", "x_$1", "orders", "x_orders"),
        ("public", "x", "srv.public.orders", "srv.public.orders"),
        (r"([^.]+)\.([^.]+)\.([^.]+)", "$3", "srv.public.orders", "orders"),
        (r"(?<db>[^.]+)\.(?<table>[^.]+)", "${table}-${db}", "shop.orders", "orders-shop"),
        ("(a)(b)", "$12", "ab", "a2"),
        ("(.*)", r"cost\$$1", "x", "cost$x"),
        (r"\Qa.b\E(\p{Alpha}+)", "$1", "a.bcd", "cd"),
        ("a|ab", "X", "ab", "Xb"),
        ("(?i)ORDERS", "o", "orders", "o"),
        (r"(?!_)(.*)", "t.$1", "orders", "t.orders"),
        (r"(?!_)(.*)", "t.$1", "_schemas", "_schemas"),
        (r"(\w+)-v\d+", "$1", "orders-v12", "orders"),
        ("(.*)", "$0$0", "x", "xx"),
    ],
)
def test_a_router_needs_the_whole_name(
    expression: str, replacement: str, topic: str, becomes: str
) -> None:
    found = pattern(expression)
    got = found.replace_first(topic, replacement) if found.matches(topic) else topic
    assert got == becomes


@pytest.mark.parametrize("expression", ["(", "[a&&[b]]", r"\p{Klingon}", "a" * 3_000, r"\k"])
def test_what_java_or_we_cannot_follow_is_an_error(expression: str) -> None:
    with pytest.raises(PatternError):
        pattern(expression).matches("a")


@pytest.mark.parametrize("replacement", ["$1", "${no}", "$", "$x"])
def test_a_replacement_without_its_group_is_an_error(replacement: str) -> None:
    with pytest.raises(PatternError):
        pattern("a").replace_first("a", replacement)


@pytest.mark.parametrize(
    "expression",
    ["(a+)+b", "(a|aa)+b", "(.*)(.*)(.*)(.*)(.*)(.*)x", "(a?){60}b", "((a*)*)*b", r"([a-z]+\.?)+!"],
)
def test_no_expression_runs_away(expression: str) -> None:
    start = time.thread_time()
    assert not pattern(expression).matches("a" * 249)
    assert pattern(expression).find("a" * 249) is None
    assert time.thread_time() - start < 1.5


def test_looks_around_beside_many_repeats_are_refused() -> None:
    with pytest.raises(PatternError, match="too many repeats"):
        pattern("(?=a)(a+)+(b+)+(c+)+")


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", r"\.", "(a)", "(b|ab)"])
_REPEATED = st.tuples(_ATOMS, st.sampled_from(["", "*", "+", "?", "*?", "{1,2}"])).map("".join)
_EXPRESSIONS = st.lists(_REPEATED, min_size=1, max_size=6).map("".join)


@given(_EXPRESSIONS, st.text("ab.c", max_size=10))
def test_the_machine_agrees_with_an_engine_that_backtracks(expression: str, text: str) -> None:
    found = pattern(expression)
    theirs = re.compile(expression)
    assert found.matches(text) == (theirs.fullmatch(text) is not None)
    mine, other = found.find(text), theirs.search(text)
    assert (mine is None) == (other is None)
    if mine and other:
        assert (mine.start, mine.end) == other.span()


def test_literals() -> None:
    assert literal(r"public\.orders") == "public.orders"
    assert literal("public.orders") == "public.orders"
    assert literal(r"public\..*") is None
    assert literal("a|b") is None


@pytest.mark.parametrize(
    ("java", "texts"),
    [
        (r"shop\.orders", ["shop.orders"]),
        (r"^shop[.]orders$", ["shop.orders"]),
        (r"shop\.(orders|items)", ["shop.orders", "shop.items"]),
        (r"(?:a|b)\.(c|d)", ["a.c", "a.d", "b.c", "b.d"]),
        (r"a|b", ["a", "b"]),
        (r"\Qa.b$\E|c\$d", ["a.b$", "c$d"]),
        (r"inv[_]x", ["inv_x"]),
        ("", [""]),
    ],
)
def test_an_expression_that_stands_for_a_few_texts(java: str, texts: list[str]) -> None:
    assert literals(java) == texts
    assert all(pattern(java).matches(text) for text in texts)


@pytest.mark.parametrize(
    "java",
    [r"a.*", r"a[bc]", r"(a|b)+", r"a?", r"t\d", r"(?i)a", r"(?=a)b", r"a{2}", "(a", "a)", "[^.]",
     "(a|b)" * 7, r"a\1", "(?<n>a)", "((" * 2_000],
)  # fmt: skip
def test_an_expression_that_stands_for_too_many(java: str) -> None:
    assert literals(java) is None


def test_a_list_of_expressions() -> None:
    assert split_patterns(r"a\.b, c{1\,3} ,,d\\,e") == [r"a\.b", "c{1,3}", r"d\\", "e"]
