"""Who may do what, and what a stranger cannot do."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from typer.testing import CliRunner

from headwater.server.app import ServerSettings
from headwater.server.http import HttpError
from headwater.server.http.auth import create_token
from headwater.server.http.hosts import Hosts
from headwater.server.store import StoreUnavailableError, open_store

from .conftest import Client, Process
from .making import event
from .test_command import app as program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROLES = ("write", "read", "admin")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Client, dict[str, str]]]:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    tokens = {role: create_token(store, role, role) for role in ROLES}
    client = Client(store)
    yield client, tokens
    client.close()


def bearer(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def test_every_route_asks_for_its_role(guarded: tuple[Client, dict[str, str]]) -> None:
    client, tokens = guarded
    allowed = {"read": {"read", "admin"}, "write": {"write", "admin"}, "admin": {"admin"}}
    routes = [(r.method, "/" + "/".join(r.pattern), r.role) for r in client.app.router.routes]
    routes.append(("POST", "/api/v1/lineage", "write"))
    for method, path, role in routes:
        if path == "/api/v2/live":
            continue
        address = path.replace("{", "").replace("}", "")
        if role == "none":
            assert client.call(method, address).status_code == 200
            continue
        answer = client.call(method, address)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == 'Bearer realm="headwater"'
        for held, token in tokens.items():
            code = client.call(method, address, headers=bearer(token)).status_code
            assert (code == 403) == (held not in allowed[role]), (method, path, held, code)


def test_what_removes_things_needs_an_admin(guarded: tuple[Client, dict[str, str]]) -> None:
    client, _tokens = guarded
    roles = {f"{r.method} /{'/'.join(r.pattern)}": r.role for r in client.app.router.routes}
    hiding = [call for call, role in roles.items() if role == "admin"]
    assert {call for call in hiding if not call.startswith("DELETE")} == {
        "POST /api/v2/purge",
        "POST /api/v2/alerts/test",  # it removes nothing, and makes the server call others
    }
    assert {call.rsplit("/", 1)[1] for call in hiding} >= {"{namespace}", "{dataset}", "{job}"}
    tags = [role for call, role in roles.items() if call.startswith("DELETE") and "/tags/" in call]
    assert set(tags) == {"write"}


@pytest.mark.parametrize(
    "header", ["Basic abc", "Bearer", "Bearer  ", "bearer wrong", "x", "Bearer \xff"]
)
def test_what_is_no_token_is_401(guarded: tuple[Client, dict[str, str]], header: str) -> None:
    client, _ = guarded
    answer = client.call(
        "GET", "/api/v1/jobs", headers={b"authorization": header.encode("latin-1")}
    )
    assert answer.status_code == 401
    assert set(answer.json()) >= {"code", "message"}


def test_a_store_that_is_away_lets_nobody_in_and_keeps_those_who_are(
    guarded: tuple[Client, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, tokens = guarded
    auth = client.app.auth
    auth.check(b"Bearer " + tokens["read"].encode(), "read")

    def away() -> Any:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(auth, "_load", away)
    auth._read_at = float("-inf")
    auth.check(b"Bearer " + tokens["read"].encode(), "read")
    auth._tokens, auth._read_at = None, float("-inf")
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            auth.check(None, "read")


def test_pages_of_other_sites_get_nothing(client: Client) -> None:
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    asked = client.call(
        "OPTIONS", "/api/v1/lineage", headers={**foreign, "access-control-request-method": "POST"}
    )
    assert (asked.status_code, asked.headers["allow"]) == (200, "GET, HEAD, OPTIONS, POST")
    for method, path in (("POST", "/api/v1/lineage"), ("PUT", "/api/v1/tags/x"),
                         ("POST", "/api/v2/events")):  # fmt: skip
        body = json.dumps(event("START", 0))
        assert client.call(method, path, headers=foreign, content=body).status_code == 403
    answer = client.call("GET", "/api/v1/jobs", headers=foreign)
    for one in (asked, answer):
        assert not any(name.startswith("access-control") for name in one.headers)
    near = {"origin": "http://localhost:3000", "sec-fetch-site": "same-origin"}
    assert client.call("PUT", "/api/v1/tags/x", headers=near, json={}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/a%00b", "/api/v1/search?q=%00", "/api/v2/search?q=a%00"]
)
def test_a_nul_in_an_address_is_refused(client: Client, path: str) -> None:
    assert client.call("GET", path).status_code == 400


def test_a_nul_in_a_body_is_refused(client: Client) -> None:
    for path, body in (
        ("/api/v1/tags/x", {"description": "a\0b"}),
        ("/api/v1/namespaces/x", {"ownerName": "\0"}),
        ("/api/v1/namespaces/x/datasets/d", {"description": "\0", "fields": []}),
    ):
        answer = client.call("PUT", path, json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["problems"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def test_tls_by_certificate_and_key(launch: Callable[..., Process], tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    server = launch(
        None,
        "--no-page",
        "--certificate",
        str(cert),
        "--key",
        str(key),
        scheme="https",
        verify=cert,
    )
    trusting = ssl.create_default_context(cafile=str(cert))
    with httpx.Client(verify=trusting, base_url=server.url) as http:
        assert http.post("/api/v1/lineage", json=event("START", 0)).status_code == 201
        assert http.get("/api/v1/jobs").json()["totalCount"] == 1
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/api/v2/health")
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{server.url.replace('https', 'http')}/api/v2/health")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "no token is set"),
        (["--certificate", "x.pem"], "both --certificate and --key"),
        (["--certificate", "x.pem", "--key", "y.pem"], "x.pem is not a file"),
        (["--token-file", "nowhere"], "cannot read the token file"),
        (["--keep", "soon"], "not a duration"),
        (["--kafka-bootstrap", "k:1", "--kafka-config", "nowhere"], "cannot read nowhere"),
    ],
)
def test_what_is_asked_wrongly_is_said_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.delenv("HEADWATER_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(
        program, ["server", "--store", f"sqlite:///{tmp_path}/a.db", *options]
    )
    assert said in str(found.exception)


def test_a_port_of_the_system_s_choice_is_printed_when_it_answers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "headwater", "server", "--port", "0", "--no-page"]
    command += ["--store", str(tmp_path / "a.db")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = next(line for line in server.stderr if "headwater server on" in line)
            assert httpx.get(f"{said.split()[-1]}/api/v2/health").status_code == 200
        finally:
            server.terminate()


def test_no_token_stands_on_the_command_line() -> None:
    for command in (["server"], ["runs", "abort"], ["events", "import"]):
        text = CliRunner().invoke(program, [*command, "--help"], env={"COLUMNS": "200"}).output
        assert "--token " not in text
        assert "--password" not in text


def test_a_token_file_opens_the_door(tmp_path: Path) -> None:
    from headwater.server.http.serve import read_tokens

    (tmp_path / "tokens").write_text("# comment\n\nfirst\n  second \n")
    assert read_tokens(tmp_path / "tokens")[-2:] == ["first", "second"]
    client = Client(
        open_store(f"sqlite:///{tmp_path}/b.db"), ServerSettings(tokens=["first", "second"])
    )
    assert client.call("GET", "/api/v1/jobs", headers=bearer("second")).status_code == 200
    assert client.call("GET", "/api/v1/jobs").status_code == 401
    client.close()


HOSTS = {
    "127.0.0.1:5000": True,
    "localhost": True,
    "LOCALHOST.:5000": True,
    "[::1]:5000": True,
    "lineage.localhost:80": True,
    "lineage.example": True,
    "rebound.example:5000": False,
    "127.0.0.1.rebound.example": False,
    "": False,
}


@pytest.mark.parametrize("host", HOSTS)
def test_a_local_server_answers_only_to_its_own_names(launched: Process, host: str) -> None:
    expected = (200, 201) if HOSTS[host] else (403, 403)
    headers = {"host": host}
    asked = httpx.get(f"{launched.url}/api/v1/namespaces", headers=headers)
    sent = httpx.post(
        f"{launched.url}/api/v1/lineage", content=json.dumps(event("START", 0)), headers=headers
    )
    assert (asked.status_code, sent.status_code) == expected
    page = httpx.get(f"{launched.url}/api/v2/health", headers=headers)
    assert page.status_code == expected[0]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("hosts")
    store = f"sqlite:///{folder}/a.db"
    server = Process(store, folder / "log", "--allowed-host", "lineage.example")
    yield server
    server.stop()


def test_beyond_this_machine_any_name_does_unless_some_are_given() -> None:
    Hosts.of("0.0.0.0", []).check(b"anything.example")
    some = Hosts.of("0.0.0.0", ["lineage.example"])
    some.check(b"lineage.example:443")
    with pytest.raises(HttpError, match="Host header"):
        some.check(b"anything.example")


def test_deletion_for_good_is_confirmed_and_reported(
    guarded: tuple[Client, dict[str, str]],
) -> None:
    client, tokens = guarded
    headers = bearer(tokens["admin"])
    for number, job in enumerate(("kept", "hunter2")):
        body = json.dumps(event("START", number, run=number, job=job, outputs=["t"]))
        client.call("POST", "/api/v1/lineage", content=body, headers=headers)
    wanted = {"kind": "job", "namespace": "jobs", "name": "hunter2"}

    def ask(**changes: Any) -> httpx.Response:
        body = json.dumps({**wanted, **changes})
        return client.call("POST", "/api/v2/purge", content=body, headers=headers)

    for wrong, field in (
        ({}, "confirm"),
        ({"confirm": "kept"}, "confirm"),
        ({"kind": "run"}, "kind"),
        ({"name": 7}, "name"),
        ({"namespace": ""}, "namespace"),
    ):
        answer = ask(**wrong)
        assert answer.status_code == 422
        assert answer.json()["problems"][0]["field"] == field
    done = ask(confirm="hunter2")
    assert (done.status_code, done.json()) == (200, {"records": 1, "jobs": 1, "datasets": 0})
    assert ask(confirm="hunter2").status_code == 404
    for path in ("/api/v2/events", "/api/v1/events/lineage", "/api/v1/jobs", "/api/v2/overview"):
        text = client.call("GET", path, headers=headers).text
        assert "hunter2" not in text
        assert "kept" in text
    assert [m.kind for m in client.app.live._kept] == ["reset"]
