"""Headwater's own server and Connect agent, as services of the lab."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import headwater
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers
from headwater.lab.services.connect import WORKER
from headwater.lab.services.logins import connect_env, kafka_client, producer_env, registry_env
from headwater.lab.services.registry import CONFLUENT_API

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.services.base import LabContext

HEARTBEAT_SECONDS = 30
TOKENS = "server.tokens"
FORWARD = "server-kafka.properties"
# The settings that somebody has for a server or an agent of their own are not this one's.
NO_SETTINGS = {"HEADWATER_CONFIG": os.devnull}


def token_file(lab: LabContext) -> Path:
    """Where the token lies that opens the lineage server of a lab with logins."""
    return lab.home.conf(TOKENS)


def _store(lab: LabContext) -> str:
    return f"sqlite:///{lab.home.data('server') / 'lineage.db'}"


class Server(Service):
    name = "server"
    title = "lineage server (Headwater)"
    optional = True

    def version(self) -> str:
        return headwater.__version__

    def prepare(self, lab: LabContext) -> None:
        settings = lab.home.settings
        if not settings.secure:
            return
        lab.write(FORWARD, [f"{key}={value}" for key, value in kafka_client(lab).items()])
        lab.write(TOKENS, [settings.logins.server])
        if not settings.logins.producer:
            from headwater.server.http.auth import create_token
            from headwater.server.store import open_store

            store = open_store(_store(lab))
            try:
                settings.logins.producer = create_token(store, "the lab's pipeline", "write")
            finally:
                store.close()
            lab.home.save()

    def command(self, lab: LabContext) -> Command:
        argv = [sys.executable, "-m", "headwater", "server", "--store", _store(lab)]
        argv += ["--host", LOOPBACK, "--port", str(lab.port("server"))]
        if lab.home.settings.secure:
            argv += ["--token-file", str(token_file(lab))]
        if lab.home.settings.lake:
            argv += ["--forward-kafka", f"{LOOPBACK}:{lab.port('kafka')}"]
            if lab.home.settings.secure:
                argv += ["--kafka-config", str(lab.home.conf(FORWARD))]
        return Command([*argv, *lab.server_more.argv], {**NO_SETTINGS, **lab.server_more.env})

    def ready(self, lab: LabContext) -> bool:
        return answers(lab.url("server", "/api/v2/health")).status_code == 200

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "OPENLINEAGE_URL": lab.url("server"),
            "OPENLINEAGE_NAMESPACE": lab.home.settings.namespace,
            **producer_env(lab),
            **(
                {"HEADWATER_TOKEN": lab.home.settings.logins.server}
                if lab.home.settings.secure
                else {}
            ),
        }


class PageRedirect(Service):
    """The page of the lineage server where tutorials have it: on a port of its own."""

    name = "page"
    title = "second port of the lineage server's page"
    needs = ("server",)
    optional = True

    def version(self) -> str:
        return headwater.__version__

    def command(self, lab: LabContext) -> Command:
        argv = [sys.executable, "-m", "headwater.lab.http_redirect"]
        return Command([*argv, str(lab.port(self.name)), lab.url("server")])

    def ready(self, lab: LabContext) -> bool:
        return answers(lab.url(self.name)).is_redirect

    def env(self, lab: LabContext) -> dict[str, str]:
        return {"HEADWATER_PAGE": lab.url(self.name)}


class Agent(Service):
    name = "agent"
    title = "Connect agent (Headwater)"
    needs = ("server", "connect", "registry")
    optional = True

    def version(self) -> str:
        return headwater.__version__

    def port_names(self) -> tuple[str, ...]:
        return ()

    def command(self, lab: LabContext) -> Command:
        argv = [sys.executable, "-m", "headwater", "connect", "watch"]
        argv += ["--url", lab.url("connect")]
        argv += ["--kafka-bootstrap", f"{LOOPBACK}:{lab.port('kafka')}"]
        argv += ["--registry-url", lab.url("registry", CONFLUENT_API)]
        argv += ["--state", str(self._state(lab))]
        argv += ["--namespace", lab.home.settings.namespace]
        argv += ["--poll", "2", "--heartbeat", str(HEARTBEAT_SECONDS)]
        if lab.home.settings.secure:
            # Its login for Kafka is the worker's.
            argv += ["--worker-properties", str(lab.home.conf(WORKER))]
        logins = {**connect_env(lab), **registry_env(lab), **producer_env(lab)}
        return Command(argv, {**NO_SETTINGS, "OPENLINEAGE_URL": lab.url("server"), **logins})

    def ready(self, lab: LabContext) -> bool:
        """It keeps its state from its first poll of the cluster on."""
        return self._state(lab).is_file()

    def env(self, lab: LabContext) -> dict[str, str]:
        """Where `headwater connect` leaves its notes for the agent, and finds its problems."""
        return {"HEADWATER_CONNECT_STATE": str(self._state(lab))}

    def _state(self, lab: LabContext) -> Path:
        return lab.home.data("agent") / "state.db"
