"""Kafka Connect: one distributed worker with the lab's plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.files.plugins import plugin_path
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers, version_of
from headwater.lab.services.hive import FOR_SINK, client_jars
from headwater.lab.services.kafka import LOGGING
from headwater.lab.services.logins import USER, connect_env, connect_login, kafka_properties

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.services.base import LabContext

# Connector configurations name a secret as ${file:<this file>:<key>}, so that REST never shows it.
SECRETS = "connect-secrets.properties"
WORKER = "connect.properties"
BASIC_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension"
JAAS, USERS = "connect-jaas.conf", "connect-users.properties"


def secrets_file(lab: LabContext) -> Path:
    return lab.home.conf(SECRETS)


class Connect(Service):
    name = "connect"
    title = "Kafka Connect worker"
    needs = ("kafka",)

    def version(self) -> str:
        return version_of("connect-runtime")

    def prepare(self, lab: LabContext) -> None:
        providers = "org.apache.kafka.common.config.provider"
        lab.write(
            WORKER,
            {
                "bootstrap.servers": f"{LOOPBACK}:{lab.port('kafka')}",
                "group.id": "headwater-lab",
                "listeners": lab.url("connect"),
                "rest.advertised.host.name": LOOPBACK,
                "rest.advertised.port": lab.port("connect"),
                "plugin.path": plugin_path(lab.cache, more=_more(lab)),
                # Scanning every class instead takes five times as long and three times the memory.
                "plugin.discovery": "service_load",
                "key.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "config.storage.topic": "connect-configs",
                "config.storage.replication.factor": 1,
                "offset.storage.topic": "connect-offsets",
                "offset.storage.replication.factor": 1,
                "offset.storage.partitions": 4,
                "status.storage.topic": "connect-status",
                "status.storage.replication.factor": 1,
                "status.storage.partitions": 1,
                "offset.flush.interval.ms": 5000,
                # One worker: when it was killed, its successor need not wait for it.
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 2000,
                "scheduled.rebalance.max.delay.ms": 5000,
                "config.providers": "file,env",
                "config.providers.file.class": f"{providers}.FileConfigProvider",
                "config.providers.file.param.allowed.paths": lab.home.root / "conf",
                "config.providers.env.class": f"{providers}.EnvVarConfigProvider",
                **kafka_properties(lab),
                **kafka_properties(lab, "producer."),
                **kafka_properties(lab, "consumer."),
                **kafka_properties(lab, "admin."),
                **(_basic_auth(lab) if self.asks_login(lab) else {}),
            },
        )
        settings = lab.home.settings
        lab.write(
            SECRETS,
            {
                "s3.access.key": settings.s3_access_key,
                "s3.secret.key": settings.s3_secret_key,
                "postgres.password": settings.postgres_password,
                **({"registry.password": settings.logins.registry} if settings.secure else {}),
            },
        )
        lab.write(
            "connect-log4j2.properties",
            {
                **LOGGING,
                # Without these the log repeats every connector's whole configuration.
                "logger.config.name": "org.apache.kafka.common.config",
                "logger.config.level": "ERROR",
                "logger.admin.name": "org.apache.kafka.clients",
                "logger.admin.level": "ERROR",
            },
        )

    def asks_login(self, lab: LabContext) -> bool:
        """Whether its REST interface asks for a login."""
        return lab.home.settings.secure

    def command(self, lab: LabContext) -> Command:
        flags = [f"-Dlog4j2.configurationFile={lab.home.conf('connect-log4j2.properties')}"]
        if self.asks_login(lab):
            flags.append(f"-Djava.security.auth.login.config={lab.home.conf(JAAS)}")
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return Command(
            lab.run_java(
                "connect",
                main,
                str(lab.home.conf(WORKER)),
                classpath=lab.jars("connect"),
                heap=512,
                flags=flags,
            ),
            # The AWS client inside the Iceberg sink looks for a region even when one is set.
            {"AWS_REGION": "us-east-1"},
        )

    def ready(self, lab: LabContext) -> bool:
        answer = answers(lab.url("connect", "/health"), connect_login(lab))
        return answer.status_code == 200 and answer.json().get("status") == "healthy"

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "CONNECT_URL": lab.url("connect"),
            "CONNECT_SECRETS_FILE": str(secrets_file(lab)),
            **connect_env(lab),
            **_kafka_login(lab),
        }


def _basic_auth(lab: LabContext) -> dict[str, str]:
    """Let in only who knows the password."""
    users = lab.write(USERS, {USER: lab.home.settings.logins.connect})
    module = f"{BASIC_AUTH}.PropertyFileLoginModule"
    lab.write(JAAS, [f'KafkaConnect {{ {module} required file="{users}"; }};'])
    return {"rest.extension.classes": f"{BASIC_AUTH}.BasicAuthSecurityRestExtension"}


def _kafka_login(lab: LabContext) -> dict[str, str]:
    """Where commands that ask about connectors find the login for Kafka: it is the worker's."""
    if not lab.home.settings.secure:
        return {}
    return {"HEADWATER_CONNECT_WORKER_PROPERTIES": str(lab.home.conf(WORKER))}


def _more(lab: LabContext) -> dict[str, list[Path]]:
    """What plug-ins need besides their own files."""
    if not lab.home.settings.hive:
        return {}
    return {"iceberg": [*lab.jars(FOR_SINK), *client_jars()]}
