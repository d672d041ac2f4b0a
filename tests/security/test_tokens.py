"""Nobody gets in who was not let in: whatever happens to tokens, a closed server stays closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from typer.testing import CliRunner

from headwater.errors import UsageError
from headwater.server.app import ServerSettings
from headwater.server.http import auth
from headwater.server.http.auth import create_token, list_tokens, revoke_token
from headwater.server.http.serve import read_tokens
from headwater.server.store import StoreError, open_store
from tests.integration.server.conftest import Client, Process
from tests.integration.server.test_command import app as program
from tests.security.attacks import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.server.store import Store

PATHS = (
    ("GET", "/api/v1/jobs"), ("GET", "/api/v2/metrics"), ("POST", "/api/v1/lineage"),
    ("POST", "/api/v2/events"), ("PUT", "/api/v1/tags/x"), ("DELETE", "/api/v1/namespaces/x"),
    ("POST", "/api/v2/purge"),
)  # fmt: skip


def look_again(*clients: Client) -> None:
    """Have the servers read the tokens anew with the next request."""
    for client in clients:
        client.app.auth._read_at = float("-inf")


def codes(client: Client, token: str | None = None) -> set[int]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return {client.call(m, p, headers=headers, content=b"{}").status_code for m, p in PATHS}


def revoke_all(store: Store) -> None:
    for token in list_tokens(store.connection):
        if token.revoked is None:
            revoke_token(store, token.id)


def test_a_server_without_its_last_token_stays_closed(store_url: str) -> None:
    client, other = Client(open_store(store_url)), Client(open_store(store_url))
    hand = open_store(store_url)
    try:
        assert 401 not in codes(client)
        token = create_token(hand, "first", "admin")
        look_again(client, other)
        for one in (client, other):
            assert codes(one) == {401}
            assert 401 not in codes(one, token)
        revoke_all(hand)
        look_again(client, other)
        for one in (client, other):
            assert codes(one) == {401}
            assert codes(one, token) == {401}
            assert one.get("/api/v2/health")["may"] == []
        again = create_token(hand, "second", "admin")
        look_again(client)
        assert 401 not in codes(client, again)
    finally:
        for one in (client, other):
            one.close()
        hand.close()


def test_a_restart_does_not_open_it_and_insecure_does(store_url: str) -> None:
    hand = open_store(store_url)
    create_token(hand, "once", "read")
    revoke_all(hand)
    closed = Client(open_store(store_url))
    opened = Client(open_store(store_url), ServerSettings(insecure=True))
    try:
        assert codes(closed) == {401}
        assert "warnings" not in closed.get("/api/v2/health")
        assert 401 not in codes(opened)
        assert "--insecure" in opened.get("/api/v2/health")["warnings"][0]
        token = create_token(hand, "again", "admin")
        look_again(opened)
        assert codes(opened) == {401}
        assert 401 not in codes(opened, token)
        assert "warnings" not in opened.get("/api/v2/health")
        revoke_all(hand)
        look_again(opened)
        assert codes(opened) == {401}, "a token was in use, so the server stays closed"
    finally:
        closed.close()
        opened.close()
        hand.close()


def test_a_store_that_reads_tokens_slowly_keeps_no_revoked_one_in_use(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, hand = Client(open_store(store_url)), open_store(store_url)
    try:
        token = create_token(hand, "x", "admin")
        assert 401 not in codes(client, token)
        monkeypatch.setattr(auth, "REFRESH", 0.0)
        monkeypatch.setattr(auth, "PATIENCE", 0.0)  # no reading is done in time
        revoke_all(hand)
        eventually(lambda: codes(client, token) == {401})
    finally:
        client.close()
        hand.close()


def test_rows_that_vanish_open_nothing(store_url: str) -> None:
    client, hand = Client(open_store(store_url)), open_store(store_url)
    try:
        create_token(hand, "x", "read")
        assert codes(client) == {401}
        hand.connection.begin()
        hand.connection.run("DELETE FROM token")
        hand.connection.commit()
        look_again(client)
        assert codes(client) == {401}
    finally:
        client.close()
        hand.close()


def test_a_token_given_at_start_outlives_every_stored_one(store_url: str) -> None:
    client, hand = (
        Client(open_store(store_url), ServerSettings(tokens=["fixed"])),
        open_store(store_url),
    )
    try:
        create_token(hand, "x", "admin")
        revoke_all(hand)
        look_again(client)
        assert codes(client) == {401}
        assert 401 not in codes(client, "fixed")
    finally:
        client.close()
        hand.close()


def test_tokens_that_cannot_be_read_let_nobody_in(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise StoreError("permission denied for table token")

    monkeypatch.setattr(client.app.auth, "_load", broken)
    for _ in range(3):
        assert codes(client) == {503}
        assert client.call("GET", "/api/v2/health").json()["may"] == []


def test_a_role_nobody_knows_may_nothing(store_url: str) -> None:
    client, hand = Client(open_store(store_url)), open_store(store_url)
    try:
        token = create_token(hand, "odd", "admin")
        hand.connection.begin()
        hand.connection.run("UPDATE token SET role = ?", ("superuser",))
        hand.connection.commit()
        assert codes(client, token) == {403}
        headers = {"authorization": f"Bearer {token}"}
        assert client.call("GET", "/api/v2/health", headers=headers).json()["may"] == []
        with pytest.raises(UsageError, match="no role"):
            create_token(hand, "x", "superuser")
    finally:
        client.close()
        hand.close()


@pytest.mark.parametrize(
    "content", ["", "\n\n", "   \n\t\n", "# only a comment\n", "\ufeff\n", "\ufeff# x\n"]
)
def test_a_token_file_without_a_token_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.delenv("HEADWATER_TOKEN", raising=False)
    file = tmp_path / "tokens"
    file.write_text(content, encoding="utf-8")
    options = ["server", "--store", f"sqlite:///{tmp_path}/a.db", "--token-file", str(file)]
    for more in ([], ["--insecure"]):
        found = CliRunner().invoke(program, [*options, *more])
        assert "holds no token" in str(found.exception)
    monkeypatch.setenv("HEADWATER_TOKEN", "good")
    with pytest.raises(UsageError, match="holds no token"):
        read_tokens(file)


def test_a_variable_without_a_token_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "  ", "\t"):
        monkeypatch.setenv("HEADWATER_TOKEN", value)
        with pytest.raises(UsageError, match="HEADWATER_TOKEN is set and holds no token"):
            read_tokens(None)
    monkeypatch.setenv("HEADWATER_TOKEN", "#not a comment")
    assert read_tokens(None) == ["#not a comment"]


def test_the_command_closes_and_opens_as_it_says(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/headwater.db"
    hand = open_store(url)
    create_token(hand, "once", "read")
    revoke_all(hand)
    hand.close()
    server = launch(url, "--no-page")
    assert httpx.get(f"{server.url}/api/v1/jobs").status_code == 401
    assert "every token of this store is revoked" in (tmp_path / "server0.log").read_text()
    server.stop()
    server = launch(url, "--no-page", "--insecure")
    assert httpx.get(f"{server.url}/api/v1/jobs").status_code == 200
    assert httpx.get(f"{server.url}/api/v2/health").json()["warnings"]
    assert "--insecure" in (tmp_path / "server1.log").read_text()


def test_a_running_server_sees_its_last_token_revoked(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page")
    hand = open_store(server.store)
    token = create_token(hand, "x", "read")
    headers = {"authorization": f"Bearer {token}"}

    def code() -> int:
        return httpx.get(f"{server.url}/api/v1/jobs", headers=headers).status_code

    # The server reads tokens again every two seconds; with the first of them it asks for one.
    eventually(lambda: httpx.get(f"{server.url}/api/v1/jobs").status_code == 401)
    assert code() == 200
    revoke_all(hand)
    hand.close()
    eventually(lambda: code() == 401)
    assert httpx.get(f"{server.url}/api/v1/jobs").status_code == 401
