"""Which use of a column counts as reading a tagged one."""

from __future__ import annotations

import pytest

from headwater.insight import ColumnUse, Passage
from headwater.server.alerts.new_readers import _use


@pytest.mark.parametrize(
    ("used", "tagged", "topic", "reads"),
    [
        ("email", "email", False, True),
        ("email", "mail", False, False),
        ("address", "address.city", False, True),
        ("address.city", "address", False, True),
        ("address.city", "address.zip", False, False),
        ("value", "email", True, True),
        ("value", "address.city", True, True),
        ("value", "key.id", True, False),
        ("key", "key.id", True, True),
        ("key", "email", True, False),
        ("value", "email", False, False),
    ],
)
def test_who_takes_what_holds_a_tagged_column_reads_it(
    used: str, tagged: str, topic: bool, reads: bool
) -> None:
    passage = Passage(
        ("job", 1), ("dataset", 2), ("dataset", 3), (ColumnUse(used, "x"),), from_topic=topic
    )
    assert (_use(passage, tagged) == f"it reads {used}") is reads
