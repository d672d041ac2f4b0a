"""A lag grows if the newer reports are all above the older ones, and by enough to matter."""

from __future__ import annotations

import pytest

from headwater.insight import grows


@pytest.mark.parametrize(
    ("lags", "growing"),
    [
        ([0, 20, 40, 60], True),
        ([0, 20, 15, 60, 50, 90], True),
        ([0, 20, 40], False),  # too few reports
        ([0, 500, 0, 500, 0, 500, 20, 500], False),  # a batch every other minute
        ([400, 300, 200, 100], False),
        ([500, 500, 500, 500], False),
        ([0, 1, 2, 3, 4, 5], False),  # a handful of records
        ([100_000, 100_010, 100_020, 100_030], False),  # a handful of many
        ([9_000] * 5 + [0, 0, 0, 50, 60, 90, 100, 120, 130, 140], True),  # only the last ten count
        ([10, 90, 200, 10_000, 400, 300, 200, 90, 20, 0], False),  # it is over
    ],
)
def test_a_growing_lag(lags: list[int], growing: bool) -> None:
    assert grows(lags) is growing
