"""What a sentence says of numbers."""

from __future__ import annotations

from headwater.lineage.wording import affected_text


def said(datasets: int, jobs: int, *names: str, more: bool = False) -> str:
    listed = [{"type": "dataset", "namespace": "s", "name": name} for name in names]
    found = {"datasets": datasets, "jobs": jobs, "names": listed, "more": more}
    return affected_text(found, names=2)


def test_only_what_there_is_downstream_is_said() -> None:
    assert said(0, 0) == ""
    assert said(1, 0, "a") == "1 dataset downstream: a"
    assert said(0, 1, "a") == "1 job downstream: a"
    assert said(10, 2, "a", "b", "c") == "10 datasets and 2 jobs downstream: a, b"
    both = [{"type": "dataset", "namespace": space, "name": "a"} for space in ("s", "t")]
    found = {"datasets": 2, "jobs": 0, "names": both, "more": False}
    assert affected_text(found, names=2) == "2 datasets downstream: s:a, t:a"
    assert said(1, 20, more=True) == "at least 1 dataset and 20 jobs downstream"
