"""Times of `--from`, `--to` and `--at`: now and how long ago are moments, all else is the server's."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from headwater.cli.questions.times import moment, until
from headwater.errors import UsageError


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("45s", timedelta(seconds=45)),
        ("90m", timedelta(minutes=90)),
        ("1h", timedelta(hours=1)),
        ("2d", timedelta(days=2)),
        ("1H", timedelta(hours=1)),
        ("now", timedelta()),
        ("NOW", timedelta()),
    ],
)
def test_how_long_ago_is_a_moment(text: str, ago: timedelta) -> None:
    before = datetime.now(timezone.utc)
    found = datetime.fromisoformat(str(moment(text)).replace("Z", "+00:00"))
    assert before <= found + ago + timedelta(milliseconds=1)
    assert found + ago <= datetime.now(timezone.utc) + timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "text", ["2026-11-01", "2026-11-01T10:00:00Z", "20261101", "h", "-1h", "yesterday", None]
)
def test_what_is_no_duration_is_left_to_the_server(text: str | None) -> None:
    assert moment(text) == text


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_time_is_refused(text: str) -> None:
    for read in (moment, until):
        with pytest.raises(UsageError, match="empty"):
            read(text)


def test_until_now_is_left_to_the_server_s_clock() -> None:
    assert until("now") is None
    assert until(None) is None
    assert until("2026-11-01") == "2026-11-01"
    assert str(until("1h")) > str(until("2h"))


def test_longer_ago_than_all_years_is_refused_with_a_reason() -> None:
    bound = "99999999d is longer than 10,000 years, which are 3,660,000 days"
    with pytest.raises(UsageError, match=f"^{bound}$"):
        moment("99999999d")
