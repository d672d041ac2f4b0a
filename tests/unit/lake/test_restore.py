"""A store made anew from the lake is the server's, down to the head of its log."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given

from headwater.errors import UsageError
from headwater.lake.projection import LogRecord
from headwater.lake.restore import restore
from headwater.server.store import Store, open_store
from headwater.server.store.keep.chain import head_of
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild, records, verify
from tests.properties import examples

from .estates import estate
from .test_projection import made

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("edge", "run", "column_map", "claim", "facet_change", "dataset", "job", "tag_use")


def log_of(store: Store) -> list[LogRecord]:
    return [LogRecord(row[1], row[2], row[7]) for group in records(store) for row in group]


def held(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table in TABLES:
        rows = store.connection.all(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
        if table in ("dataset", "job", "run"):
            # The members of a packed state stand in the order in which commits brought them.
            rows = [(*row[:-1], plain(msgspec.msgpack.decode(row[-1]))) for row in rows]
        found[table] = sorted(map(repr, rows))
    return found


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(((key, plain(inner)) for key, inner in value.items()), key=repr)
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@examples(60)
@given(estate())
def test_log_and_graph_are_the_servers(events: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = open_store(f"sqlite:///{folder}/server.db")
        for one in events:
            server.append([one])
        dataset = server.connection.all(
            "SELECT n.name, d.name FROM dataset d JOIN namespace n ON n.id = d.namespace LIMIT 1"
        )
        for namespace, name in dataset:
            server.perform(
                {"command": "tagged", "kind": "dataset", "namespace": namespace, "name": name,
                 "tag": "PII", "on": True}
            )  # fmt: skip
        anew = open_store(f"sqlite:///{folder}/anew.db")
        assert restore(anew, log_of(server)) == server.log.seq
        assert head_of(anew.connection) == head_of(server.connection)
        assert held(anew) == held(server)
        assert verify(anew) == server.log.seq
        assert rebuild(anew) == server.log.seq
        server.close()
        anew.close()


def test_only_an_empty_store_is_filled(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    store.append([made("load", 0, "a")])
    with pytest.raises(UsageError, match="not empty"):
        restore(store, [LogRecord(0, 1, made("load", 1, "a"))])
    store.close()


def test_what_was_purged_is_not_brought_back(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    store.append([made("load", 0, "a"), made("other", 0, "a", run=2)])
    purge(store, PurgeTarget("job", "jobs", "load"))
    anew = open_store(f"sqlite:///{tmp_path}/anew.db")
    with pytest.raises(UsageError, match="purged"):
        restore(anew, log_of(store))
    assert head_of(anew.connection)[0] == 0
    assert anew.connection.all("SELECT count(*) FROM log") == [(0,)]
    store.close()
    anew.close()


def test_a_command_about_nothing_is_left_out(tmp_path: Path) -> None:
    anew = open_store(f"sqlite:///{tmp_path}/anew.db")
    command = {"command": "hide", "kind": "job", "namespace": "jobs", "name": "none", "at": 5}
    log = [LogRecord(1, 5, msgspec.json.encode(command)), LogRecord(0, 9, made("load", 0, "a"))]
    assert restore(anew, log) == 1
    assert verify(anew) == 1
    anew.close()
