"""Every kind of credential is masked wherever it stands, and nothing else is."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lineage import secrets
from headwater.lineage.secrets import MaskingFormatter, clean, clean_value, holds_secret, redact
from tests.properties import FULL

if TYPE_CHECKING:
    from collections.abc import Iterable

FIXTURES = Path(__file__).parents[2] / "fixtures"
SECRET = "xQ7vT2mK9w"
SHAPED = {"%S": SECRET, "%A": "7EXAMPLE7EXAMPLE", "%G": SECRET * 2, "%U": "app"}


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (FIXTURES / "secrets" / name).read_text().splitlines()]


def some(cases: Iterable[Any], step: int) -> list[Any]:
    """The cases for `parametrize`: one of `step` is quick."""
    return [
        pytest.param(case, marks=pytest.mark.full if place % step else ())
        for place, case in enumerate(cases)
    ]


def planted(text: str) -> str:
    for mark, value in SHAPED.items():
        text = text.replace(mark, value)
    return text


def holds(text: str) -> bool:
    return any(value in text for mark, value in SHAPED.items() if mark != "%U")


@pytest.mark.parametrize("case", lines("masked.ndjson"), ids=lambda case: case["kind"])
def test_a_credential_is_masked_in_any_text(case: dict[str, str]) -> None:
    text = planted(case["text"])
    assert holds(text)
    masked = redact(text)
    assert not holds(masked), masked
    assert redact(masked) == masked
    in_error = {"errorMessage": {"message": f"failed: {text}", "stackTrace": f"\tat x\n{text}\n"}}
    in_event = json.dumps(
        {"run": {"facets": in_error}, "job": {"facets": {"sql": {"query": text}}}}
    )
    assert holds_secret(in_event.encode())
    assert not holds(clean(in_event.encode()).decode())


@pytest.mark.parametrize("case", lines("masked_documents.ndjson"), ids=lambda case: case["kind"])
def test_a_credential_is_masked_by_its_key(case: dict[str, Any]) -> None:
    body = planted(json.dumps(case["document"])).encode()
    assert holds_secret(body)
    text = clean(body).decode()
    assert not holds(text)
    assert '"password"' not in text.partition(":")[2]
    assert not holds_secret(text.encode())


@pytest.mark.parametrize("case", lines("masked.ndjson"), ids=lambda case: case["kind"])
def test_a_credential_is_masked_in_a_key(case: dict[str, str]) -> None:
    text = planted(case["text"])
    for document in ({text: {"a": 1}}, {"facets": {"x": [{"b": {text: None}}]}}):
        body = json.dumps(document).encode()
        assert holds_secret(body)
        cleaned = clean(body)
        assert not holds(cleaned.decode())
        assert clean(cleaned) is cleaned
    assert holds_secret(b"{}", text)


def test_keys_that_are_masked_alike_are_told_apart() -> None:
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI"
    sent = {
        "password=a": 1, "password=b": 2, "password=*** (2)": 3, "password": "c",
        f"{jwt}x.y": 4, f"{jwt}z.y": {"token=abcdef1": 5, "token=abcdef2": 6}, "***": 7,
        "postgres://a:b@h": 8, "postgres://c:d@h": 9,
    }  # fmt: skip
    masked = {
        "password=***": 1, "password=*** (3)": 2, "password=*** (2)": 3, "password": "***",
        "*** (2)": 4, "*** (3)": {"token=***": 5, "token=*** (2)": 6}, "***": 7,
        "postgres://***@h": 8, "postgres://***@h (2)": 9,
    }  # fmt: skip
    assert list(clean_value(sent).items()) == list(masked.items())
    assert clean_value(masked) == masked
    assert secrets.scrub_all({"pw=ab12": 1, "pw=cd34": 2}, ["ab12", "cd34"]) == {
        "pw=***": 1,
        "pw=*** (2)": 2,
    }


def test_telling_keys_apart_takes_linear_time() -> None:
    def spent(size: int) -> float:
        secrets._known.cache_clear()
        sent = {f"password=*** ({n})": n for n in range(size)} | {
            f"password=x{n}": n for n in range(size)
        }
        start = time.thread_time()
        assert len(clean_value(sent)) == 2 * size
        return time.thread_time() - start

    small, large = min(spent(1_000) for _ in range(3)), spent(10_000)
    assert large < 30 * small


def test_no_long_key_is_remembered() -> None:
    def remembered() -> int:
        return secrets._known.cache_info().currsize + secrets._graded.cache_info().currsize

    clean_value({"a": "b"})
    before = remembered()
    clean_value({f"{'x' * 5_000}{n}{'y' * 500}": n for n in range(50)})
    assert remembered() - before <= 1


STEP, AHEAD = 600, 420


@pytest.mark.parametrize("case", lines("masked.ndjson"), ids=lambda case: case["kind"])
def test_a_long_text_is_masked_by_steps_as_it_is_at_once(
    case: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a step begins or ends: before a credential, at each character of it, behind it."""
    text = planted(case["text"])
    before, rest = "a = b; some text\n" * 100, "\n" + "a = b; more of it\n" * 70
    at_borders = [
        before[: border - offset - 1] + f"\n{text}{rest}"
        for border in ((STEP, 2 * STEP) if FULL else (STEP,))
        for offset in (range(len(text) + 2) if FULL else (1, len(text) // 2, len(text)))
    ]
    at_once = redact(f"\n{text}{rest}")
    for name in ("_SEARCHED", "_SHARED", "_LONGEST"):
        monkeypatch.setattr(secrets, name, STEP)
    monkeypatch.setattr(secrets, "_AHEAD", AHEAD)
    for one in at_borders:
        by_steps = redact(one)
        if "cut off" in case["kind"]:
            assert not holds(by_steps)
        else:
            assert by_steps == one[: len(one) - len(text) - len(rest) - 1] + at_once


@pytest.mark.parametrize("length", some([1_000, 16 * 1024, 80_000, 65_000, 300_000], 2))
def test_a_login_is_masked_however_long_it_is(length: int) -> None:
    rest = "some text\n" * 10_000
    for before in ("", "x", rest, rest[:65_000], rest[:79_990]):
        for login in (
            f"app:{'p' * length}",
            f"{'u' * length}:{SECRET}",
            f"a:{'p@' * (length // 2)}",
        ):
            text = f"{before}postgres://{login}@db/shop and {rest}"
            assert redact(text) == f"{before}postgres://***@db/shop and {rest}"
    for before in ("", rest):  # what follows the login may be as long
        text = f"{before}postgres://app:{SECRET}@db/{'x' * length} and {rest}"
        assert redact(text) == f"{before}postgres://***@db/{'x' * length} and {rest}"


HOSTILE = {
    "quotes in SQL": ("password '", "''"),
    "backslashes in SQL": ("password '", "\\a"),
    "an open value": ("password=", "<"),
    "an open string": ('password="', "\\a"),
    "a long login": ("postgres://a@", "b@"),
    "many logins": ("postgres://", "a:b@c://"),
}


@pytest.mark.parametrize("case", some(HOSTILE, 3))
def test_a_long_text_takes_little_memory(case: str) -> None:
    """A repeated group of a pattern keeps 200 bytes for each repetition: 220 MB a MB before."""
    start, repeated = HOSTILE[case]
    program = (
        "import resource, sys\n"
        "from headwater.lineage.secrets import redact\n"
        f"text = {start!r} + {repeated!r} * (1_000_000 // {len(repeated)})\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "redact(text)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert float(found.stdout) < 40  # whatever its length


def test_a_value_that_does_not_end_is_masked_to_the_end() -> None:
    for start, held in (("password '", "x y'' "), ("password=", "xy"), ('password="', "x y ")):
        assert redact(f"a {start}" + held * 40_000 + " b") in (
            f"a {start.rstrip(chr(34) + chr(39))}***",
            f"a {start}***",
        )


@pytest.mark.parametrize(
    "text",
    [
        "token spark.jars " + "a" * 90_000 + "\nTAIL " + "b " * 10_000,
        "token --jars " + "a" * 90_000 + " TAIL",
        "token <name>spark.jars</name><value>" + "a" * 90_000 + "</value> TAIL",
    ],
)
def test_nothing_is_lost_behind_a_long_value_that_is_no_secret(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("start", ['"password": "', "password=", "IDENTIFIED BY '"])
def test_nothing_of_a_credential_is_left_behind_a_step(start: str) -> None:
    for length in range(65_533, 65_538):  # an escape or a comma lies across the end of the step
        for divided in ("\\n", ",", '\\"'):
            secret = ("Ab1z" * 20_000)[:length] + divided + "S3CRET" + "y" * 30_000
            assert "S3CRET" not in redact(f"a {start}{secret}"), (length, divided)


def test_what_stands_beside_a_credential_stays() -> None:
    text = "host=db user=app password=hunter2 dbname=shop"
    assert redact(text) == "host=db user=app password=*** dbname=shop"
    text = "CREATE USER app IDENTIFIED BY 'it''s' PASSWORD EXPIRE"
    assert redact(text) == "CREATE USER app IDENTIFIED BY *** PASSWORD EXPIRE"
    found = clean_value(
        {
            "environmentVariables": [
                {"name": "API_KEY", "value": "x1"},
                {"name": "HOME", "value": "/"},
            ]
        }
    )
    assert found == {"environmentVariables": [{"name": "API_KEY", "value": "***"}, {"name": "HOME", "value": "/"}]}  # fmt: skip
    assert clean_value(["--password", "x", "--verbose"]) == ["--password", "***", "--verbose"]


def harmless() -> list[str]:
    folder = FIXTURES / "secrets"
    return [
        *(folder / "harmless.txt").read_text().splitlines(),
        *(folder / "harmless.sql").read_text().splitlines(),
    ]


@pytest.mark.parametrize("text", harmless())
def test_a_harmless_text_stays_as_it_was(text: str) -> None:
    assert redact(text) == text
    document = {
        "facets": {"sql": {"query": text}, "documentation": {"description": text}, text: {}}
    }
    assert clean_value(document) == document


@pytest.mark.parametrize(
    "text",
    [
        "properties:\n  password:\n    type: string\n    minLength: 8\n",
        "services:\n  db:\n    secrets:\n      - db_password\n      - api_key\n",
        "volumes:\n- secret:\n    secretName: headwater-agent\n",
        "password:\n# the agent reads it from the environment\nhost: db\n",
        "authorization:\n  mode: rbac\n",
    ],
)
def test_what_stands_below_a_key_of_yaml_is_not_its_value(text: str) -> None:
    assert redact(text) == text


def events() -> list[dict[str, Any]]:
    demo = (FIXTURES / "page" / "demo.ndjson").read_text().splitlines()
    marquez = json.loads((FIXTURES / "marquez" / "shapes.json").read_text())
    schemas = [
        json.loads(path.read_text()) for path in sorted((FIXTURES / "schema").glob("*.json"))
    ]
    queries = json.loads((FIXTURES / "lineage" / "queries.json").read_text())
    event = json.loads((FIXTURES / "lineage" / "event.json").read_text())
    return [*map(json.loads, demo), {"all": marquez}, {"all": schemas}, {"all": queries}, event]


def test_nothing_is_masked_in_recorded_events() -> None:
    found = events()
    assert len(found) > 100
    assert [one for one in found if clean_value(one) != one] == []


@pytest.mark.parametrize(
    "document",
    [
        {"fields": [{"name": "password", "type": "string", "description": "bcrypt"}]},
        {
            "fields": {
                "password": {"inputFields": [{"namespace": "n", "name": "t", "field": "token"}]}
            }
        },
        {"columns": {"password": "string", "token": "varchar(20)", "api_key": "struct<a:int>"}},
        {"tags": [{"key": "secret", "value": "true", "source": "USER"}]},
        {"tokens": 512, "max_tokens": 4096, "password": None, "secret": False, "token": ""},
        {"credentials": {"source": "vault", "path": "db/app"}, "authorization": {"mode": "rbac"}},
        {"name": "orders", "key": "order_id", "value": "int", "signature": "f(x: int) -> str"},
    ],
)
def test_a_harmless_document_stays_as_it_was(document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    assert clean(body) is body
    assert not holds_secret(body)


def test_a_credential_is_found_beside_what_was_searched_before() -> None:
    members = {f"c{n}": "x" * 20 for n in range(20)}
    assert not holds_secret(json.dumps(members).encode())
    for case in lines("masked.ndjson"):
        assert holds_secret(json.dumps({**members, "text": planted(case["text"])}).encode())
    assert not holds_secret(json.dumps(members).encode())


def test_most_documents_are_not_even_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"name": "orders", "query": "SELECT 1 FROM t WHERE d_year = 2001"}).encode()
    monkeypatch.setattr("headwater.lineage.secrets.clean_value", None)
    assert not holds_secret(body)


def test_a_log_line_and_the_trace_below_it_are_masked() -> None:
    line = logging.LogRecord("x", logging.ERROR, "", 0, "to %s", ("postgres://u:hunter2@db",), None)
    try:
        raise ValueError("Server=db;Password=hunter2;")
    except ValueError:
        line.exc_info = sys.exc_info()
    text = MaskingFormatter().format(line)
    assert "ValueError: Server=db;Password=***;" in text
    assert "postgres://***@db" in text


def test_no_name_makes_a_line_of_a_log_of_its_own_or_reaches_the_terminal() -> None:
    forged = "x\n2026-01-01 00:00:00,000 INFO all is well\r\x1b[2J\u202e\u2028\x85\ud800 ünï"
    line = logging.LogRecord("x", logging.INFO, "", 0, "alert open: %s", (forged,), None)
    text = MaskingFormatter().format(line)
    assert text.isprintable()
    assert text.endswith(
        "alert open: x\\n2026-01-01 00:00:00,000 INFO all is well"
        r"\r\x1b[2J\u202e\u2028\x85\ud800 ünï"
    )
    try:
        raise ValueError(forged)
    except ValueError:
        line.exc_info = sys.exc_info()
    first, *trace = MaskingFormatter().format(line).split("\n")
    assert first == text
    assert all(one.startswith("  ") and one.isprintable() for one in trace)
    assert "  2026-01-01 00:00:00,000 INFO all is well" in trace[-1]


def test_what_calls_for_masking_is_noticed_in_a_document() -> None:
    hints = [hint for found, _ in secrets._STEPS[1:] for hint in found]
    assert [hint for hint in hints if not secrets._HINT.search(hint.encode())] == []


ATTACKS = [
    "eyJ-", "eyJaaaaaaaa.", "password=", "password='", 'password="', "password=\\\"", "sig=f(",
    "sig=f(,", "token=a", "-----BEGIN ", "-----BEGIN A-----", "://a:", "://a:b@", "://a/hooks/",
    "://a/hooks/a/", "identified by '", "identified with a ", "password '", "password ('", "bearer ",
    "basic a", "--password ", "-u a:", "<name>password</name><value>", "password" * 20, "a.b-c_d$",
    "jdbc:oracle:thin:a/", "secret {", "secret={", "token->", "key\\\\", "xoxb-", "ghp_a", "'password':",
    "password =\n", "jaas.config=", "services/T", "A" * 50 + "password", "passwordA", "\\\\\\\"password",
    "%3A%2F%2F", "%3a%2f%2fa%3Ab", '("password","', "(('token', '", "name: password, value: ", '"name":"key","value":"',
    "(spark.a.token,", "<password a>", "<a:password b", "password: |\n a\n", "sig: >\n ", 'password="""', "sig='''",
    'password=\\\\\\"', 'sig=\\\\" a', "token=[", "sig=[a1b2c3", '--password "\\a', "key value",
    "'--password', ", "password:\n value: ", "password:\n a: ", "\\u0022password\\u0022:", "password\\u003d",
    "%253A%252F%252F", ":\\/\\/a:", "%22password%22%3A",
]  # fmt: skip


@pytest.mark.parametrize("piece", some(ATTACKS, 5))
def test_the_time_is_linear_in_the_length(piece: str) -> None:
    def spent(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        best = float("inf")
        for _ in range(2):
            start = time.thread_time()
            redact(text)
            best = min(best, time.thread_time() - start)
        return best

    # Ten times the text in about ten times the time; quadratic would be a hundred times.
    small, large = spent(4_000), spent(40_000)
    assert large < 30 * max(small, 0.0005)


def test_backslashes_inside_a_nested_quote_are_read_once() -> None:
    def spent(size: int) -> float:
        start = time.thread_time()
        redact('password=\\\\"x' + "\\" * size)
        return time.thread_time() - start

    small, large = min(spent(2_000) for _ in range(3)), spent(20_000)
    assert large < 30 * max(small, 0.0005)


@pytest.mark.parametrize(
    "piece", some(["pwd=://", "https://a[", "://a:/", "://@", "://a:b", *ATTACKS], 5)
)
def test_a_document_is_searched_at_the_price_of_its_length(piece: str) -> None:
    # Linear is not enough: one repetition inside another took 9 seconds a megabyte.
    document = json.dumps({"a": (piece * 30_000)[:100_000] + "@@"}).encode()
    start = time.thread_time()
    secrets.holds_secret(document)
    assert time.thread_time() - start < 0.4
