"""Real certificates, passwords and tokens: right ones open every door, wrong ones end no run."""

from __future__ import annotations

import json
import re
import sys
import time
from base64 import urlsafe_b64encode
from types import ModuleType
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.connect.services.endpoint import ConnectError, Endpoint, ProblemKind
from headwater.connect.services.kafka import MSK_REGION, KafkaAdmin
from headwater.connect.services.registry import RegistryError, SchemaRegistry
from headwater.connect.services.rest import ConnectRest
from headwater.lab.clients import unique
from headwater.lab.services.logins import USER
from headwater.lab.waiting import wait_until

from .secured import (
    PASSWORD,
    SECRETS,
    TOKEN,
    SecuredConnect,
    SecuredKafka,
    TlsGate,
    client,
    folder_of,
)
from .watching import ClusterAgent, columns, runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.lab import Lab

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

WRONG = "wrong-battery-hunter2"
GRACE = 2.0


class Estate:
    """The secured lab, its certificates, and the ways in."""

    def __init__(self, folder: Path) -> None:
        from headwater.lab.lab import Lab

        self.ours, self.server, self.agent, self.theirs, self.stranger = folder_of(folder)
        self.folder = folder
        self.http = client(self.ours, self.agent)
        self.lab: Lab = Lab(folder / "lab")
        for name, text in (("password", PASSWORD), ("wrong", WRONG), ("token", TOKEN)):
            (folder / name).write_text(text)

    def open(self) -> None:
        self.lab.up(["kafka", "connect", "registry"])
        port = self.lab.context.port
        self.url = f"https://127.0.0.1:{port('connect')}"
        self.http.base_url = httpx.URL(self.url)
        from headwater.lab.clients import RegistryClient

        self.registry = RegistryClient(self.lab, "registry")
        self.gate = TlsGate(self.registry.url, self.ours, self.server)

    def close(self) -> None:
        if hasattr(self, "gate"):
            self.gate.close()
        self.http.close()
        self.lab.down()

    def endpoint(self, url: str, **more: str) -> Endpoint:
        shown = {
            "username": USER, "password": PASSWORD, "ca": str(self.ours.pem),
            "cert": str(self.agent.cert), "key": str(self.agent.key),
        }  # fmt: skip
        return Endpoint((url,), **{**shown, **more}, timeout=10.0)  # type: ignore[arg-type]

    def door(self, name: str, **more: str) -> dict[str, str]:
        """The client settings for one of the broker's doors."""
        tls = {
            "ssl.ca.location": str(self.ours.pem),
            "ssl.certificate.location": str(self.agent.cert),
            "ssl.key.location": str(self.agent.key),
        }
        scram = {
            "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": USER, "sasl.password": PASSWORD,
        }  # fmt: skip
        doors = {
            "scram": {"security.protocol": "SASL_PLAINTEXT", **scram},
            "tls": {"security.protocol": "SASL_SSL", **scram, **tls},
            "oauth": {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal={USER}",
                **tls,
            },
        }
        address = f"127.0.0.1:{self.lab.context.port(f'kafka-{name}')}"
        return {"bootstrap.servers": address, **doors[name], **more}


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """A broker, a worker and a registry that let in only whom they know."""
    from headwater.lab.services import SERVICES

    made = Estate(tmp_path_factory.mktemp("secured"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SERVICES, "kafka", SecuredKafka(made.ours, made.server))
        patch.setitem(SERVICES, "connect", SecuredConnect(made.ours, made.server, made.http))
        try:
            made.open()
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("door", ["scram", "tls", "oauth"])
def test_kafka_lets_us_in(estate: Estate, door: str) -> None:
    kafka = KafkaAdmin(estate.door(door))
    cluster = kafka.cluster
    assert cluster is not None, kafka.problem
    assert cluster.id == estate.lab.home.settings.cluster_id
    assert kafka.problem == ""


@pytest.mark.parametrize(
    ("door", "wrong", "said"),
    [
        ("scram", {"sasl.password": WRONG}, "uthentication"),
        ("scram", {"sasl.mechanism": "PLAIN"}, "mechanism"),
        ("tls", {"sasl.password": WRONG}, "uthentication"),
        ("tls", {"ssl.ca.location": "theirs"}, "certificate"),
        ("tls", {"ssl.certificate.location": "stranger", "ssl.key.location": "stranger"}, "SSL"),
        ("oauth", {"sasl.oauthbearer.config": "principal=a lifeSeconds=0"}, ""),
        ("oauth", {"sasl.oauthbearer.no.such.key": "1"}, "property"),
    ],
)
def test_kafka_that_refuses_us_says_why(
    estate: Estate, door: str, wrong: dict[str, str], said: str
) -> None:
    files = {
        "ssl.ca.location": estate.theirs.pem,
        "ssl.certificate.location": estate.stranger.cert,
        "ssl.key.location": estate.stranger.key,
    }
    kafka = KafkaAdmin(estate.door(door, **{k: str(files.get(k, v)) for k, v in wrong.items()}))
    assert kafka.cluster is None
    assert kafka.problem
    assert said in kafka.problem
    assert not re.search(r"hunter2|after \d+ms", kafka.problem)


def test_a_token_from_a_callback_opens_kafka(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of MSK's IAM with a token that this broker takes: AWS itself cannot be had here."""

    def part(value: dict[str, Any]) -> str:
        return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    class Provider:
        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            assert region == "eu-west-1"
            now = int(time.time())
            claims = {"sub": USER, "iat": now, "exp": now + 600}
            return f"{part({'alg': 'none'})}.{part(claims)}.", (now + 600) * 1000

    signer = ModuleType("aws_msk_iam_sasl_signer")
    signer.MSKAuthTokenProvider = Provider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, signer.__name__, signer)
    config = {k: v for k, v in estate.door("oauth").items() if "sasl" not in k}
    kafka = KafkaAdmin({**config, MSK_REGION: "eu-west-1"})
    assert kafka.cluster is not None, kafka.problem


@pytest.mark.parametrize(
    ("wrong", "trouble"),
    [
        ({}, None),
        ({"password": WRONG}, ProblemKind.AUTH),
        ({"username": ""}, ProblemKind.AUTH),
        ({"ca": "theirs"}, ProblemKind.TLS),
        ({"cert": "stranger", "key": "stranger"}, ProblemKind.TLS),
        ({"cert": "", "key": ""}, ProblemKind.TLS),
    ],
)
def test_connect_behind_https(
    estate: Estate, wrong: dict[str, str], trouble: ProblemKind | None
) -> None:
    files = {
        "ca": estate.theirs.pem, "cert": estate.stranger.cert, "key": estate.stranger.key,
    }  # fmt: skip
    given = {k: str(files[k]) if v and k in files else v for k, v in wrong.items()}
    connect = ConnectRest(estate.endpoint(estate.url, **given))
    try:
        if trouble is None:
            assert connect.root()["kafka_cluster_id"] == estate.lab.home.settings.cluster_id
            assert connect.unhealthy() is None
            return
        for ask in (connect.unhealthy, connect.poll):
            with pytest.raises(ConnectError) as caught:
                ask()
            assert caught.value.trouble is trouble, caught.value.message
            assert "hunter2" not in caught.value.message
    finally:
        connect.close()


def test_a_registry_behind_a_gate(estate: Estate) -> None:
    """The lab's registry has no doors of its own, so a small one with TLS stands before it."""
    subject = register(estate, unique("gated"))
    url = estate.gate.url
    for more in ({}, {"username": "", "password": "", "token": TOKEN}):
        registry = SchemaRegistry(estate.endpoint(url, **more))
        found = registry.latest(subject)
        registry.close()
        assert found is not None
        assert found.schema is not None
    for wrong, trouble in (
        ({"password": WRONG}, ProblemKind.AUTH),
        ({"username": "", "token": WRONG}, ProblemKind.AUTH),
        ({"ca": str(estate.theirs.pem)}, ProblemKind.TLS),
        ({"cert": str(estate.stranger.cert), "key": str(estate.stranger.key)}, ProblemKind.TLS),
    ):
        registry = SchemaRegistry(estate.endpoint(url, **wrong))
        with pytest.raises(RegistryError) as caught:
            registry.latest(subject)
        registry.close()
        assert caught.value.trouble is trouble, caught.value.message
        assert "hunter2" not in registry.problem


def register(estate: Estate, topic: str) -> str:
    schema = {
        "type": "record", "name": "Line", "fields": [{"name": "line", "type": "string"}],
    }  # fmt: skip
    answer = httpx.post(
        f"{estate.registry.url}/subjects/{topic}-value/versions",
        json={"schema": json.dumps(schema)},
        trust_env=False,
    )
    assert answer.is_success, answer.text
    return f"{topic}-value"


class Guarded:
    """An agent on the secured estate, by a file of clusters whose keys can be exchanged."""

    def __init__(self, estate: Estate, folder: Path) -> None:
        self.estate, self.file = estate, folder / "clusters.yml"
        self.good = {
            "password": estate.folder / "password", "kafka": estate.folder / "password",
            "registry": estate.folder / "token", "cert": estate.agent.cert,
            "key": estate.agent.key,
        }  # fmt: skip
        self.write()
        self.agent = ClusterAgent(
            folder, "", "--clusters", str(self.file),
            more={
                "CONNECT_CA": str(estate.ours.pem), "CONNECT_CERT": str(estate.agent.cert),
                "CONNECT_KEY": str(estate.agent.key),
            },
        )  # fmt: skip

    def write(self, **wrong: Path) -> None:
        """The file, with other keys than the good ones where they are given."""
        at = {**self.good, **wrong}
        tls = {
            "ca": str(self.estate.ours.pem), "cert": str(at["cert"]), "key": str(at["key"]),
        }  # fmt: skip
        kafka: dict[str, Any] = self.estate.door("tls")
        kafka["sasl.password"] = {"file": str(at["kafka"])}
        document = {
            "poll": 0.3, "heartbeat": 1, "grace": GRACE,
            "clusters": [
                {
                    "name": "guarded",
                    "url": self.estate.url,
                    "namespace": "lab",
                    "auth": {"username": USER, "password": {"file": str(at["password"])}},
                    "tls": tls,
                    "kafka": kafka,
                    "registry": {
                        "url": self.estate.gate.url,
                        "auth": {"token": {"file": str(at["registry"])}},
                        "tls": {**tls, "cert": self.good["cert"].as_posix(),
                                "key": self.good["key"].as_posix()},
                    },
                }
            ],
        }  # fmt: skip
        # JSON is YAML, and a file that is replaced is never read half.
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(document))
        draft.replace(self.file)

    def troubles(self) -> list[dict[str, Any]]:
        said = self.agent.command(
            "status", "--json", "--user", USER,
            "--password-file", str(self.good["password"]),
        )  # fmt: skip
        found: list[dict[str, Any]] = json.loads(said[: said.rindex("}") + 1])["troubles"]
        return found

    def lasting(self, word: str) -> None:
        """Wait until a trouble has been there for longer than a cluster may be silent."""

        def long_enough() -> bool:
            since = [t["since"] for t in self.troubles() if word in t["problem"]]
            return bool(since) and time.time() - since[0] > 2 * GRACE

        wait_until(
            long_enough, seconds=120, what=f"{word} in {self.agent.log[-2000:]}", interval=0.3
        )

    def well(self) -> None:
        wait_until(lambda: self.troubles() == [], seconds=120, what="all to be well", interval=0.3)

    def said(self, word: str) -> int:
        return sum(word in line and " WARNING " in line for line in self.agent.log.splitlines())


def test_wrong_keys_are_said_once_and_end_no_run(estate: Estate, tmp_path: Path) -> None:
    guarded = Guarded(estate, tmp_path)
    agent = guarded.agent
    topic = unique("lines")
    register(estate, topic)
    (tmp_path / "lines.txt").write_text("one\n")
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(tmp_path / "lines.txt"),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    estate.http.put("/connectors/lines/config", json=config).raise_for_status()
    agent.start()
    agent.url = estate.url  # for commands: the agent itself has it from its file

    def last() -> dict[str, Any]:
        found: dict[str, Any] = agent.events("lines")[-1]["outputs"][0]
        return found

    def beats() -> None:
        """Wait for the next word of the run that began."""
        before = len(agent.events("lines"))
        wait_until(
            lambda: len(agent.events("lines")) > before,
            seconds=120,
            what=f"a heartbeat:\n{agent.log[-2000:]}",
        )
        assert agent.types("lines") == ["START"]

    try:
        agent.wait_for("lines", "START")
        wait_until(lambda: columns(last()) == ["line"], seconds=120, what="the topic's column")
        cluster = last()["facets"]["headwater_cluster"]["clusterId"]
        assert cluster == estate.lab.home.settings.cluster_id
        guarded.well()
        broken = tmp_path / "broken.pem"
        broken.write_text("no certificate")
        for word, wrong in (
            ("answered 401", {"password": estate.folder / "wrong"}),
            ("SSL", {"cert": estate.stranger.cert, "key": estate.stranger.key}),
            ("certificates:", {"cert": broken}),
        ):
            told = guarded.said(word)
            guarded.write(**wrong)
            guarded.lasting(word)
            assert guarded.said(word) == told + 1, agent.log
            assert agent.types("lines") == ["START"]
            guarded.write()
            beats()
            guarded.well()
        guarded.write(kafka=estate.folder / "wrong", registry=estate.folder / "wrong")
        guarded.lasting("uthentication")
        guarded.lasting("registry")
        assert guarded.said("uthentication") == 1
        assert guarded.said("schema registry") == 1
        beats()
        assert columns(last()) == ["line"]
        guarded.write()
        beats()
        guarded.well()
        assert len(runs(agent.events("lines"))) == 1
        assert agent.stop() == 0
        for file in tmp_path.iterdir():
            content = file.read_bytes()
            for secret in (*SECRETS, WRONG):
                assert secret.encode() not in content, file
    finally:
        agent.kill()
        estate.http.delete("/connectors/lines")
