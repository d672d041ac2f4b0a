"""Kafka: one broker that is its own controller (KRaft)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.ports import LOOPBACK, accepts
from headwater.lab.process import Command
from headwater.lab.services.base import PROBE_SECONDS, Service, version_of
from headwater.lab.services.logins import (
    KAFKA_CLIENT,
    PLAIN,
    USER,
    kafka_client,
    kafka_env,
    kafka_properties,
)

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

LOGGING = {
    "appender.out.type": "Console",
    "appender.out.name": "out",
    "appender.out.layout.type": "PatternLayout",
    "appender.out.layout.pattern": "%d{ISO8601} %-5p %c{1.} %m%n",
    "rootLogger.level": "WARN",
    "rootLogger.appenderRef.out.ref": "out",
    "logger.started.name": "kafka.server.KafkaRaftServer",
    "logger.started.level": "INFO",
}


class Kafka(Service):
    name = "kafka"
    title = "Kafka broker"
    ports = ("kafka", "kafka-controller")

    def version(self) -> str:
        return version_of("kafka_2.13")

    def prepare(self, lab: LabContext) -> None:
        listeners = {
            "CLIENT": f"{LOOPBACK}:{lab.port('kafka')}",
            "CONTROLLER": f"{LOOPBACK}:{lab.port('kafka-controller')}",
        }
        protocol = "SASL_PLAINTEXT" if lab.home.settings.secure else "PLAINTEXT"
        storage = lab.home.data("kafka") / "log"
        settings = lab.write(
            "kafka.properties",
            {
                "process.roles": "broker,controller",
                "node.id": 1,
                "listeners": ",".join(f"{k}://{v}" for k, v in listeners.items()),
                "advertised.listeners": f"CLIENT://{listeners['CLIENT']}",
                "listener.security.protocol.map": ",".join(f"{k}:{protocol}" for k in listeners),
                "inter.broker.listener.name": "CLIENT",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": f"1@{listeners['CONTROLLER']}",
                "log.dirs": storage,
                "num.partitions": 1,
                "offsets.topic.num.partitions": 4,
                "offsets.topic.replication.factor": 1,
                "transaction.state.log.num.partitions": 4,
                "transaction.state.log.replication.factor": 1,
                "transaction.state.log.min.isr": 1,
                "share.coordinator.state.topic.num.partitions": 1,
                "share.coordinator.state.topic.replication.factor": 1,
                "share.coordinator.state.topic.min.isr": 1,
                "group.initial.rebalance.delay.ms": 0,
                "log.cleaner.dedupe.buffer.size": 4 << 20,
                "num.network.threads": 2,
                "num.io.threads": 4,
                **(_logins(lab) if lab.home.settings.secure else {}),
            },
        )
        if lab.home.settings.secure:
            lab.write(KAFKA_CLIENT, kafka_properties(lab))
        lab.write("kafka-log4j2.properties", LOGGING)
        if not (storage / "meta.properties").exists():
            argv = self._java(lab, "kafka.tools.StorageTool", "format", "--ignore-formatted")
            argv += ["-t", lab.home.settings.cluster_id, "-c", str(settings)]
            lab.run("kafka", argv)

    def command(self, lab: LabContext) -> Command:
        return Command(self._java(lab, "kafka.Kafka", str(lab.home.conf("kafka.properties"))))

    def ready(self, lab: LabContext) -> bool:
        from confluent_kafka.admin import AdminClient

        port = lab.port("kafka")
        # librdkafka writes a line for each refused connection: knock first.
        if not accepts(port):
            return False
        address: dict[str, str | int | float] = {
            "bootstrap.servers": f"{LOOPBACK}:{port}",
            "log_level": 0,
        }
        admin = AdminClient({**address, **kafka_client(lab)})
        return bool(admin.list_topics(timeout=PROBE_SECONDS).brokers)

    def env(self, lab: LabContext) -> dict[str, str]:
        address = f"{LOOPBACK}:{lab.port('kafka')}"
        return {"BOOTSTRAP": address, "KAFKA_BOOTSTRAP": address, **kafka_env(lab)}

    def _java(self, lab: LabContext, *arguments: str) -> list[str]:
        return lab.run_java(
            "kafka",
            *arguments,
            classpath=lab.jars("kafka"),
            heap=256,
            flags=[f"-Dlog4j2.configurationFile={lab.home.conf('kafka-log4j2.properties')}"],
        )


def _logins(lab: LabContext) -> dict[str, str]:
    """Let in only who knows the password, on the controller's port too."""
    password = lab.home.settings.logins.kafka
    users = f'{PLAIN} username="{USER}" password="{password}" user_{USER}="{password}";'
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": users,
        "listener.name.controller.plain.sasl.jaas.config": users,
    }
