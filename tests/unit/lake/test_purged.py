"""Records that name what was purged are found by the digest that the log has of it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lake.purged import Purges
from headwater.server.store.keep.purge import KINDS, PurgeTarget

from .estates import DATASETS, JOBS, estate

TARGETS = [
    PurgeTarget("dataset", "s3://lake", DATASETS[0]),
    PurgeTarget("job", "jobs", JOBS[0]),
    PurgeTarget("namespace", "hive://metastore"),
    PurgeTarget("namespace", "jobs"),
]


@given(estate(), st.sampled_from(TARGETS))
def test_the_same_records_as_on_the_server(bodies: list[bytes], target: PurgeTarget) -> None:
    purges = Purges({target.digest: 5})
    assert [purges.took(one, 4) for one in bodies] == [target.mentioned(one) for one in bodies]
    assert not any(purges.took(one, 6) for one in bodies)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_commands_are_found_as_well(kind: str) -> None:
    target = PurgeTarget(kind, "s3://lake", "t")
    purges = Purges({target.digest: 5})
    for command in (
        {"command": "tagged", "namespace": "s3://lake", "name": "t"},
        {"command": "alias", "alias": ["s3://lake", "t"], "of": ["x", "y"]},
    ):
        body = msgspec.json.encode(command)
        assert purges.took(body, 5) is target.mentioned(body) is True
    body = msgspec.json.encode({"command": "namespace", "name": "s3://lake"})
    assert not purges.took(body, 5)
    assert Purges({PurgeTarget("namespace", "s3://lake").digest: 5}).took(body, 5)


def test_what_is_no_json_names_nothing() -> None:
    assert not Purges({TARGETS[0].digest: 5}).took(b"{", 1)
