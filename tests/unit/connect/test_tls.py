"""Certificates on the wire: who is believed, who is not, and what is said of it."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.agent.clusters_file import AgentConfig
from headwater.connect.agent.process import AgentProcess
from headwater.connect.commands.inspect import agent_problems
from headwater.connect.config import ClusterConfig
from headwater.connect.services.endpoint import ConnectError, Endpoint, ProblemKind
from headwater.connect.services.registry import RegistryError, SchemaRegistry
from headwater.connect.services.rest import ConnectRest

from .certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Door:
    """A server that shows a certificate and wants to see one."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.theirs = Authority(folder, "ours"), Authority(folder, "theirs")
        self.agent, self.stranger = self.ours.issue("agent"), self.theirs.issue("stranger")
        server = self.ours.issue("server")

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = b'{"version": "4.3.1"}' if self.path == "/" else b"{}"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.cert, server.key)
        context.load_verify_locations(self.ours.pem)
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def endpoint(self, host: str = "127.0.0.1", **more: Any) -> Endpoint:
        given = {"ca": self.ours.pem, "cert": self.agent.cert, "key": self.agent.key, **more}
        verify = bool(given.pop("verify", True))
        url = f"https://{host}:{self.server.server_port}"
        return Endpoint((url,), **{k: str(v) for k, v in given.items()}, verify=verify, timeout=5.0)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    made = Door(tmp_path_factory.mktemp("certificates"))
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_whom_we_know_and_who_knows_us(door: Door) -> None:
    for endpoint in (door.endpoint(), door.endpoint(ca=door.theirs.pem, verify=False)):
        connect = ConnectRest(endpoint)
        assert connect.root()["version"] == "4.3.1"
        connect.close()


@pytest.mark.parametrize("wrong", ["ca", "stranger", "nobody", "host"])
def test_a_certificate_that_is_not_believed_is_never_silence(door: Door, wrong: str) -> None:
    endpoint = {
        "ca": door.endpoint(ca=door.theirs.pem),
        "stranger": door.endpoint(cert=door.stranger.cert, key=door.stranger.key),
        "nobody": door.endpoint(cert="", key=""),
        "host": door.endpoint("localhost"),
    }[wrong]
    connect, registry = ConnectRest(endpoint), SchemaRegistry(endpoint)
    for ask in (connect.unhealthy, connect.poll):
        with pytest.raises(ConnectError) as caught:
            ask()
        assert caught.value.trouble is ProblemKind.TLS, caught.value.message
    with pytest.raises(RegistryError) as refused:
        registry.latest("orders-value")
    assert refused.value.trouble is ProblemKind.TLS
    connect.close()
    registry.close()


def test_a_certificate_that_cannot_be_read_stops_one_cluster_and_not_the_others(
    door: Door, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.pem").write_text("no certificate")
    broken = ClusterConfig(name="broken", endpoint=door.endpoint(cert=tmp_path / "broken.pem"))
    well = ClusterConfig(name="well", endpoint=door.endpoint())
    state = str(tmp_path / "state.db")
    transport = {"type": "file", "log_file_path": str(tmp_path / "events"), "append": True}
    asked = [0]

    def looks() -> None:
        asked[0] += 1
        if asked[0] == 2:
            watch.stop.set()

    watch = AgentProcess(AgentConfig((broken, well), "", transport), state, reload=looks)
    watch.run()
    assert sum("certificates:" in record.message for record in caplog.records) == 1
    assert [one["cluster"] for one in agent_problems(state)] == ["broken"]
    watch = AgentProcess(AgentConfig((well,), "", transport), state, reload=looks)
    asked[0] = 0
    watch.run()
    assert agent_problems(state) == [], "the cluster is no longer watched"
    alone = AgentProcess(AgentConfig((broken,), "", transport), str(tmp_path / "other.db"))
    with pytest.raises(ConnectError, match="certificates"):
        alone.run()
