"""The server behind a reverse proxy: whom it believes, who may do what, and the path it is below.

A proxy is any connection from 127.0.0.1 here; connections from 127.0.0.2 are strangers.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.errors import UsageError
from headwater.server.http import HttpError
from headwater.server.http.auth import read_people
from headwater.server.http.proxies import Person, Proxies, read_root_path

from .making import event, run_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Process

STRANGER = "127.0.0.2"
TRUSTED = ("--trusted-proxies", "127.0.0.1")
PEOPLE = (*TRUSTED, "--user-header", "X-Forwarded-User")


@contextlib.contextmanager
def http(server: Process, address: str = "127.0.0.1") -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=server.url, transport=transport) as client:
        yield client


@pytest.fixture
def signed_in(launch: Callable[..., Process], tmp_path: Path) -> Process:
    (tmp_path / "tokens").write_text("producers\n")
    roles = ("--user-role", "read", "--user-role", "ann=admin", "--user-role", "eve=none")
    return launch(None, *PEOPLE, *roles, "--token-file", str(tmp_path / "tokens"))


@pytest.mark.parametrize(
    ("person", "reads", "writes", "may"),
    [
        ("ann", 200, 201, ["admin", "read", "write"]),
        ("bob", 200, 403, ["read"]),
        ("eve", 403, 403, []),
        ("", 401, 401, []),
        ("*", 200, 403, ["read"]),
    ],
)
def test_people_have_the_role_that_they_were_given(
    signed_in: Process, person: str, reads: int, writes: int, may: list[str]
) -> None:
    headers = {"x-forwarded-user": person}
    with http(signed_in) as proxy:
        assert proxy.get("/api/v2/overview", headers=headers).status_code == reads
        posted = proxy.post("/api/v1/lineage", json=event("START", 0), headers=headers)
        assert posted.status_code == writes
        batch = proxy.post("/api/v2/events", json=[event("START", 0)], headers=headers)
        assert batch.status_code == writes
        assert proxy.get("/api/v2/health", headers=headers).json()["may"] == may
        live = proxy.stream("GET", "/api/v2/live", headers=headers)
        with live as stream:
            assert stream.status_code == reads


def test_a_run_that_a_person_aborts_names_that_person(signed_in: Process) -> None:
    headers = {"x-forwarded-user": "ann"}
    with http(signed_in) as proxy:
        assert proxy.post("/api/v1/lineage", json=event("START", 0), headers=headers).is_success
        closed = proxy.post(f"/api/v2/runs/{run_id(1)}/abort", headers=headers).json()
        assert closed["facets"]["headwater_end"]["by"] == "ann"


def test_a_stranger_is_nobody_whatever_the_headers_say(signed_in: Process) -> None:
    headers = {
        "x-forwarded-user": "ann",
        "x-forwarded-for": "127.0.0.1",
        "forwarded": "for=127.0.0.1",
    }
    with http(signed_in, STRANGER) as stranger:
        assert stranger.get("/api/v2/overview", headers=headers).status_code == 401
        assert stranger.get("/api/v2/live", headers=headers).status_code == 401
        posted = stranger.post("/api/v1/lineage", json=event("START", 0), headers=headers)
        assert posted.status_code == 401
        assert stranger.get("/api/v2/health", headers=headers).json()["may"] == []
        token = {**headers, "authorization": "Bearer producers"}
        assert stranger.post("/api/v1/lineage", json=event("START", 0), headers=token).is_success


def test_a_token_goes_before_a_person_and_a_password_of_the_proxy_does_not(
    signed_in: Process,
) -> None:
    with http(signed_in) as proxy:
        for authorization, person, code in (
            ("Bearer producers", "eve", 201),
            ("Bearer wrong", "ann", 401),
            ("Basic YW5uOng=", "ann", 201),
            ("Basic YW5uOng=", "bob", 403),
            ("Basic YW5uOng=", "", 401),
        ):
            headers = {"authorization": authorization, "x-forwarded-user": person}
            answer = proxy.post("/api/v1/lineage", json=event("START", 0), headers=headers)
            assert answer.status_code == code, (authorization, person)


def test_two_names_are_none(signed_in: Process) -> None:
    """A proxy that adds its header beside the client's, instead of in its place."""
    headers = [("x-forwarded-user", "ann"), ("x-forwarded-user", "bob")]
    with http(signed_in) as proxy:
        assert proxy.get("/api/v2/overview", headers=headers).status_code == 401
        posted = proxy.post("/api/v1/lineage", json=event("START", 0), headers=headers)
        assert posted.status_code == 401


def test_a_page_of_another_site_cannot_act_as_the_person_who_looks_at_it(
    signed_in: Process,
) -> None:
    headers = {"x-forwarded-user": "ann", "sec-fetch-site": "cross-site"}
    with http(signed_in) as proxy:
        posted = proxy.post("/api/v1/lineage", json=event("START", 0), headers=headers)
        assert posted.status_code == 403
        assert proxy.post("/api/v2/events", json=[], headers=headers).status_code == 403


def test_a_server_that_knows_people_is_closed_to_others(launch: Callable[..., Process]) -> None:
    server = launch(None, *PEOPLE)
    with http(server) as proxy:
        assert proxy.get("/api/v2/overview").status_code == 401
        named = {"x-forwarded-user": "ann"}
        assert proxy.get("/api/v2/overview", headers=named).status_code == 200


def held(stack: contextlib.ExitStack, server: Process, address: str, **headers: str) -> int:
    """Open a live stream that stays; its status."""
    client = stack.enter_context(http(server, address))
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return stack.enter_context(client.stream("GET", "/api/v2/live", headers=names)).status_code


def test_a_stranger_gains_nothing_by_a_made_up_origin(launch: Callable[..., Process]) -> None:
    server = launch(None, *TRUSTED, "--client-connections", "2")
    with contextlib.ExitStack() as stack:
        codes = [
            held(stack, server, STRANGER, x_forwarded_for=f"10.9.9.{number}") for number in range(4)
        ]
        assert codes == [200, 200, 503, 503]


def test_clients_behind_a_proxy_are_limited_each_by_its_own_address(
    launch: Callable[..., Process],
) -> None:
    server = launch(None, *TRUSTED, "--client-connections", "2")
    with contextlib.ExitStack() as stack:

        def opened(forwarded: str) -> int:
            return held(stack, server, "127.0.0.1", x_forwarded_for=forwarded)

        assert [opened("10.1.1.1") for _ in range(2)] == [200, 200]
        # Whatever a client writes in front of what the proxy adds, it is the same client.
        for made_up in ("10.1.1.1", "6.6.6.6, 10.1.1.1", "127.0.0.1,10.1.1.1", "x, 10.1.1.1:80"):
            assert opened(made_up) == 503, made_up
        assert opened("::ffff:10.1.1.1") == 503
        assert opened("10.1.1.2") == 200
        with http(server) as proxy:
            for address, code in (("10.1.1.1", 503), ("10.1.1.2", 201)):
                answer = proxy.post(
                    "/api/v1/lineage", json=event("START", 0), headers={"x-forwarded-for": address}
                )
                assert answer.status_code == code
    with http(server) as proxy:  # what has ended does not count
        for _ in range(5):
            headers = {"x-forwarded-for": "10.1.1.2"}
            assert proxy.post("/api/v1/lineage", json=event("START", 0), headers=headers).is_success


@pytest.mark.parametrize(
    ("listed", "client"),
    [
        ("", "10.0.0.1"),
        ("1.1.1.1", "1.1.1.1"),
        ("2.2.2.2, 1.1.1.1, 10.0.0.9", "1.1.1.1"),
        ("nonsense", "10.0.0.1"),
        ("1.1.1.1, nonsense", "10.0.0.1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("10.0.0.7, 10.0.0.8", "10.0.0.7"),
    ],
)
def test_the_client_is_the_last_address_that_is_not_a_proxys(listed: str, client: str) -> None:
    headers = [(b"x-forwarded-for", listed.encode())]
    assert Proxies(["10.0.0.0/24"]).client("10.0.0.1", headers) == client
    assert Proxies(["10.0.0.0/24"]).client("8.8.8.8", headers) == "8.8.8.8"
    assert Proxies().client("10.0.0.1", headers) == "10.0.0.1"


def test_a_name_that_cannot_be_is_refused() -> None:
    proxies = Proxies(["10.0.0.1"], "X-User")
    assert proxies.credential("10.0.0.1", [(b"x-user", "Zoë".encode())]) == Person("Zoë")
    with pytest.raises(HttpError):
        proxies.credential("10.0.0.1", [(b"x-user", b"a" * 300)])


@pytest.mark.parametrize("below", ["/tools/lineage", ""])
def test_below_a_path_everything_is_there_with_and_without_it(
    launch: Callable[..., Process], below: str
) -> None:
    server = launch(None, "--root-path", "/tools/lineage/")
    with http(server) as proxy:
        assert proxy.post(f"{below}/api/v1/lineage", json=event("START", 0)).status_code == 201
        assert proxy.post(f"{below}/api/v2/events", json=[event("START", 1)]).status_code == 201
        assert proxy.get(f"{below}/api/v2/overview").json()["records"] >= 1
        document = proxy.get(f"{below}/datasets/a/b")
        assert document.status_code == 200
        assert '<meta name="headwater-root" content="/tools/lineage"' in document.text
        (script,) = [part for part in document.text.split('"') if part.endswith(".js")]
        assert script.startswith("/tools/lineage/assets/")
        fetched = proxy.get(script.removeprefix("/tools/lineage") if not below else script)
        assert fetched.headers["content-type"].startswith("text/javascript")
        assert proxy.get("/tools/lineages/api/v2/overview").status_code == 404


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Proxies(["proxy.example"]), "not an address"),
        (lambda: Proxies([], "X-User"), "none is given"),
        (lambda: Proxies(["::1"], "Authorization"), "clients send"),
        (lambda: Proxies(["::1"], "X User"), "not the name of a header"),
        (lambda: read_root_path('/a"><script>'), "not a path"),
        (lambda: read_root_path("/../a"), "not a path"),
        (lambda: read_root_path("/api/x"), "/api"),
        (lambda: read_people(["ann=root"]), "neither ROLE"),
        (lambda: read_people(["=read"]), "neither ROLE"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_start(wrong: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        wrong()
