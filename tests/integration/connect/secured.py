"""A broker with SASL and TLS and a worker with HTTPS and passwords, on a lab of their own."""

from __future__ import annotations

import ssl
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import httpx

from headwater.lab.ports import LOOPBACK
from headwater.lab.services.connect import USERS, Connect
from headwater.lab.services.kafka import Kafka
from headwater.lab.services.logins import USER
from tests.unit.connect.certificates import STORE_PASSWORD, Authority, Issued

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headwater.lab.services.base import LabContext

PASSWORD = "correct-horse-hunter2"
TOKEN = "token-hunter2"
SECRETS = (PASSWORD, TOKEN, STORE_PASSWORD)
SASL = "org.apache.kafka.common.security"


def add(lab: LabContext, name: str, more: Mapping[str, object]) -> None:
    """Append to a properties file: of two lines with one key, Java takes the later."""
    with lab.home.conf(name).open("a") as out:
        out.writelines(f"{key}={value}\n" for key, value in more.items())


class SecuredKafka(Kafka):
    """The lab's broker with three more doors: SCRAM in the clear, SCRAM and OAuth behind TLS."""

    ports: ClassVar[tuple[str, ...]] = (  # type: ignore[assignment]
        "kafka", "kafka-controller", "kafka-scram", "kafka-tls", "kafka-oauth",
    )  # fmt: skip

    def __init__(self, authority: Authority, server: Issued) -> None:
        self.authority, self.server = authority, server

    def prepare(self, lab: LabContext) -> None:
        super().prepare(lab)
        doors = {
            "PLAINTEXT": "kafka", "CONTROLLER": "kafka-controller", "SCRAM": "kafka-scram",
            "TLS": "kafka-tls", "OAUTH": "kafka-oauth",
        }  # fmt: skip
        at = {door: f"{door}://{LOOPBACK}:{lab.port(port)}" for door, port in doors.items()}
        scram = f"{SASL}.scram.ScramLoginModule required;"
        oauth = f"{SASL}.oauthbearer.OAuthBearerLoginModule required"
        protocols = {
            "PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", "SCRAM": "SASL_PLAINTEXT",
            "TLS": "SASL_SSL", "OAUTH": "SASL_SSL",
        }  # fmt: skip
        add(
            lab,
            "kafka.properties",
            {
                "listeners": ",".join(at.values()),
                "advertised.listeners": ",".join(v for k, v in at.items() if k != "CONTROLLER"),
                "listener.security.protocol.map": ",".join(
                    f"{door}:{protocol}" for door, protocol in protocols.items()
                ),
                "inter.broker.listener.name": "PLAINTEXT",
                "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.scram.scram-sha-512.sasl.jaas.config": scram,
                "listener.name.tls.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.tls.scram-sha-512.sasl.jaas.config": scram,
                "listener.name.tls.ssl.client.auth": "required",
                "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
                "listener.name.oauth.oauthbearer.sasl.jaas.config": (
                    f'{oauth} unsecuredLoginStringClaim_sub="broker";'
                ),
                **stores("ssl.", self.authority, self.server),
            },
        )

    def started(self, lab: LabContext) -> None:
        """Give the agent its password."""
        from confluent_kafka import admin as kafka

        admin: Any = kafka.AdminClient({"bootstrap.servers": f"{LOOPBACK}:{lab.port('kafka')}"})
        made: Any = kafka
        info = made.ScramCredentialInfo(made.ScramMechanism.SCRAM_SHA_512, 4096)
        asked = made.UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        for future in admin.alter_user_scram_credentials([asked]).values():
            future.result(30)


class SecuredConnect(Connect):
    """The lab's worker with a login behind HTTPS, which wants a certificate besides."""

    def __init__(self, authority: Authority, server: Issued, client: httpx.Client) -> None:
        self.authority, self.server, self.client = authority, server, client

    def asks_login(self, lab: LabContext) -> bool:
        return True

    def prepare(self, lab: LabContext) -> None:
        super().prepare(lab)
        lab.write(USERS, {USER: PASSWORD})
        add(
            lab,
            "connect.properties",
            {
                "listeners": f"https://{LOOPBACK}:{lab.port('connect')}",
                "rest.advertised.listener": "https",
                "listeners.https.ssl.client.auth": "required",
                **stores("listeners.https.ssl.", self.authority, self.server),
            },
        )

    def ready(self, lab: LabContext) -> bool:
        answer = self.client.get(f"https://{LOOPBACK}:{lab.port('connect')}/health")
        return answer.status_code == 200


def stores(prefix: str, authority: Authority, server: Issued) -> dict[str, object]:
    """Java's settings for who one is and whom one believes."""
    return {
        f"{prefix}keystore.type": "PKCS12",
        f"{prefix}keystore.location": server.store,
        f"{prefix}keystore.password": STORE_PASSWORD,
        f"{prefix}key.password": STORE_PASSWORD,
        f"{prefix}truststore.type": "PKCS12",
        f"{prefix}truststore.location": authority.store,
        f"{prefix}truststore.password": STORE_PASSWORD,
    }


class TlsGate:
    """A gate with TLS before the lab's registry.

    Not the lab's own, which asks for a password alone: servers on asyncio close a connection with a wrong
    certificate without the alert that a client goes by.
    """

    def __init__(self, behind: str, authority: Authority, server: Issued) -> None:
        basic = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        allowed = (f"Basic {basic}", f"Bearer {TOKEN}")
        refused = self.refused = [0]

        class Door(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.headers.get("Authorization") not in allowed:
                    refused[0] += 1
                    self._answer(401, b"{}")
                    return
                got = httpx.get(behind + self.path, trust_env=False)
                self._answer(got.status_code, got.content)

            def _answer(self, code: int, body: bytes) -> None:
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.cert, server.key)
        context.load_verify_locations(authority.pem)
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = ThreadingHTTPServer((LOOPBACK, 0), Door)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://{LOOPBACK}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def client(authority: Authority, shown: Issued) -> httpx.Client:
    """A client that Connect lets in."""
    context = ssl.create_default_context(cafile=authority.pem)
    context.load_cert_chain(shown.cert, shown.key)
    return httpx.Client(verify=context, auth=(USER, PASSWORD), trust_env=False, timeout=30)


def folder_of(path: Path) -> tuple[Authority, Issued, Issued, Authority, Issued]:
    """Our authority with a server and an agent, and a stranger with an agent of his own."""
    ours, theirs = Authority(path, "ours"), Authority(path, "theirs")
    return ours, ours.issue("server"), ours.issue("agent"), theirs, theirs.issue("stranger")
