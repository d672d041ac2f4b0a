"""Headwater's own server and Connect agent, as services of the lab."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import headwater
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers
from headwater.lab.services.registry import CONFLUENT_API

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

HEARTBEAT_SECONDS = 30


class Server(Service):
    name = "server"
    title = "lineage server (Headwater)"
    optional = True

    def version(self) -> str:
        return headwater.__version__

    def command(self, lab: LabContext) -> Command:
        store = f"sqlite:///{lab.home.data('server') / 'lineage.db'}"
        at = ["--host", LOOPBACK, "--port", str(lab.port("server"))]
        return Command([sys.executable, "-m", "headwater", "server", *at, "--store", store])

    def ready(self, lab: LabContext) -> bool:
        return answers(lab.url("server", "/api/v2/health")).status_code == 200

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "OPENLINEAGE_URL": lab.url("server"),
            "OPENLINEAGE_NAMESPACE": lab.home.settings.namespace,
        }


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
        argv += ["--state", str(lab.home.data("agent") / "state.db")]
        argv += ["--namespace", lab.home.settings.namespace]
        argv += ["--poll", "2", "--heartbeat", str(HEARTBEAT_SECONDS)]
        return Command(argv, {"OPENLINEAGE_URL": lab.url("server")})

    def ready(self, lab: LabContext) -> bool:
        """It keeps its state from its first poll of the cluster on."""
        return (lab.home.data("agent") / "state.db").is_file()

    def env(self, lab: LabContext) -> dict[str, str]:
        return {}
