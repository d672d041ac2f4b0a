"""Moments at the ends of what a year can be, and durations."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from headwater.lineage.moments import from_micros, iso, micros, seconds
from headwater.lineage.openlineage import facets

OFFSETS = [timezone(timedelta(minutes=m)) for m in (-1439, -840, -60, -1, 0, 1, 60, 840, 1439)]
FIRST = datetime(1, 1, 1, tzinfo=timezone.utc)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
EDGES = (FIRST, LAST, FIRST.replace(hour=14), LAST.replace(hour=9))


@pytest.mark.parametrize("zone", OFFSETS, ids=str)
@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_what_becomes_a_number_can_be_written(edge: datetime, zone: timezone) -> None:
    moment = edge.replace(tzinfo=zone)
    try:
        inside = moment.astimezone(timezone.utc)
    except OverflowError:
        with pytest.raises(ValueError, match="years 1 to 9999"):
            micros(moment)
    else:
        assert from_micros(micros(moment)) == inside
        assert iso(micros(moment)) == inside.isoformat().replace("+00:00", "Z")


def test_a_number_that_no_year_has_is_shown_as_the_nearest() -> None:
    hours = 14 * 3_600 * 1_000_000
    first, last = micros(FIRST), micros(LAST)
    for far in (1, hours, 10**30):
        assert iso(first - far) == "0001-01-01T00:00:00Z"
        assert iso(last + far) == "9999-12-31T23:59:59.999999Z"


def test_a_nominal_time_that_no_year_has_does_not_cost_the_other() -> None:
    for odd in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00", "2026-01-01T00:00:00"):
        body = f'{{"nominalStartTime":"{odd}","nominalEndTime":"1970-01-01T00:00:01Z"}}'.encode()
        found = facets.read(body, facets.NominalTimeFacet)
        assert found is not None
        assert found.period == (None, 1_000_000)


@pytest.mark.parametrize("text", ["inf", "nan", "1e400d", "1e300d", "-1s", "", "d", "x"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"float|below zero|longer than 10,000 years"):
        seconds(text)


def test_durations_are_read() -> None:
    assert [seconds(text) for text in ("90d", "12h", "30M", "45s", "1.5")] == [
        7_776_000, 43_200, 1_800, 45, 1.5,
    ]  # fmt: skip
