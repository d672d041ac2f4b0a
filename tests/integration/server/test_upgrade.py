"""A store of each release opens and answers the same, and there is a way back.

`python -m tests.integration.server.test_upgrade` keeps a store and the answers of this release.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripts.replay import differences

import headwater
from headwater.server.store import StoreError, open_store
from headwater.server.store import database as databases
from headwater.server.store.database.schema import LATEST, MIGRATIONS
from headwater.server.store.keep.rebuild import rebuild, verify

from .making import event
from .old_stores import KEPT, open_kept
from .test_store_copy import answers, fill, run

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASES = KEPT / "releases"
PIPELINE = KEPT / "orders-pipeline.ndjson"
NEW = "CREATE TABLE of_tomorrow (number {int} PRIMARY KEY)"


# Of a batch whose runs follow each other within seconds: that is no schedule any more.
NO_HABIT = re.compile(r".*/t1\.freshness\.(dueAt|\w*[sS]econds)")


def changed(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """What an answer no longer says; what it says in addition is no loss."""
    return [
        (path, had, has)
        for path, had, has in differences(before, after)
        if had is not None and not (has is None and NO_HABIT.fullmatch(path))
    ]


@pytest.mark.parametrize("release", sorted(path.stem for path in RELEASES.glob("*.db")))
def test_a_store_of_a_release_answers_the_same(
    release: str, store_url: str, tmp_path: Path
) -> None:
    recorded = json.loads((RELEASES / f"{release}.json").read_text())
    store = open_kept(RELEASES / f"{release}.db", store_url, tmp_path)
    assert store.connection.all("SELECT max(version) FROM migration") == [(LATEST,)]
    assert verify(store) == recorded["records"]
    url = store.database.url
    assert changed(recorded["answers"], answers(store)) == []  # which closes it
    with closing(open_store(url)) as again:
        # What is computed anew from the log says the same, and new events are taken.
        assert rebuild(again) > 0
        assert changed(recorded["answers"], answers(again)) == []
    with closing(open_store(url)) as again:
        sent = again.append([json.dumps(event("START", 500, run=500, job="new")).encode()])
        assert sent[0].error is None
        known = again.append((RELEASES / f"{release}.ndjson").read_bytes().splitlines())
        assert all(one.duplicate for one in known), "what was taken in before is known"


def test_this_schema_is_kept_once_it_is_released() -> None:
    """An unreleased version may still change; the changelog says which those are."""
    changelog = (Path(__file__).parents[3] / "CHANGELOG.md").read_text()
    released = f"## [{headwater.__version__}]" in changelog
    assert not released or (RELEASES / f"{headwater.__version__}.db").exists()


@contextmanager
def tomorrow() -> Iterator[None]:
    """The next release, as far as it can be had: this one with a further migration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(databases, "MIGRATIONS", (*MIGRATIONS, NEW))
        patch.setattr(databases, "LATEST", LATEST + 1)
        yield


def test_the_way_back_from_a_newer_release(store_url: str, tmp_path: Path) -> None:
    with closing(open_store(store_url)) as store:
        fill(store)
        before = answers(store)
    backup = tmp_path / "before.backup"
    run("store", "backup", str(backup), "--store", store_url)

    since = tmp_path / "since.ndjson"
    late = event("START", 900, run=900, job="since", outputs=["since"])
    with tomorrow(), closing(open_store(store_url)) as newer:
        assert newer.append([json.dumps(late).encode()])[0].error is None
        run("events", "export", str(since), "--store", store_url)

    problem = f"newer Headwater .schema {LATEST + 1}, known {LATEST}"
    with pytest.raises(StoreError, match=problem):
        open_store(store_url)
    back = f"sqlite:///{tmp_path}/back.db"
    run("store", "restore", str(backup), "--store", back)
    with closing(open_store(back)) as old:
        known = verify(old)
        assert answers(old) == before
    run("events", "import", str(since), "--store", back)
    with closing(open_store(back)) as old:
        assert verify(old) == known + 1, "what was there before the backup is known"
        assert old.connection.all("SELECT name FROM job WHERE name = ?", ("since",)) == [("since",)]


def keep() -> None:
    """Write this release's store and its answers."""
    RELEASES.mkdir(exist_ok=True)
    file = RELEASES / f"{headwater.__version__}.db"
    file.unlink(missing_ok=True)
    store = open_store(f"sqlite:///{file}")
    fill(store)
    events = PIPELINE.read_bytes()
    assert all(one.error is None for one in store.append(events.splitlines()))
    file.with_suffix(".ndjson").write_bytes(events)
    records = verify(store)  # with every event; the answers that list them would be the larger part
    told = {path: one for path, one in answers(store).items() if "/events" not in path}
    with closing(sqlite3.connect(file)) as raw:  # as small as it can be
        raw.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM")
    file.chmod(0o644)
    file.with_suffix(".json").write_text(
        json.dumps({"records": records, "answers": told}, sort_keys=True)
    )


if __name__ == "__main__":
    keep()
