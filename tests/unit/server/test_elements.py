"""The lines of a batch: however they end, without empty ones, and no more than are allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.server.http import HttpError
from headwater.server.http.body_items import lines


@given(st.lists(st.sampled_from([b"{}", b"", b" ", b"\t"])), st.sampled_from([b"\n", b"\r\n"]))
def test_lines_are_found_by_either_end(parts: list[bytes], end: bytes) -> None:
    assert lines(end.join(parts), len(parts)) == [part for part in parts if part.strip()]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_more_lines_than_allowed_are_refused(end: bytes) -> None:
    assert len(lines(end.join([b"{}"] * 3) + end, 3)) == 3
    for body in (b"{}" + end * 4, end.join([b"{}"] * 4)):
        with pytest.raises(HttpError, match="more than 3 events"):
            lines(body, 3)
