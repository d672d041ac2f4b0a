"""How a lab with logins lets its clients in; in a lab without, each of these says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

USER = "lab"
KAFKA_CLIENT = "kafka-client.properties"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def kafka_client(lab: LabContext) -> dict[str, str]:
    """What librdkafka needs for Kafka besides its address."""
    if not lab.home.settings.secure:
        return {}
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": lab.home.settings.logins.kafka,
    }


def kafka_properties(lab: LabContext, prefix: str = "") -> dict[str, str]:
    """The same for Java's client."""
    if not lab.home.settings.secure:
        return {}
    password = lab.home.settings.logins.kafka
    return {
        f"{prefix}security.protocol": "SASL_PLAINTEXT",
        f"{prefix}sasl.mechanism": "PLAIN",
        f"{prefix}sasl.jaas.config": f'{PLAIN} username="{USER}" password="{password}";',
    }


def kafka_env(lab: LabContext) -> dict[str, str]:
    """The same as variables: a file, since a Java client's login is a sentence."""
    return (
        {"KAFKA_PROPERTIES": str(lab.home.conf(KAFKA_CLIENT))} if lab.home.settings.secure else {}
    )


def connect_login(lab: LabContext) -> httpx.BasicAuth | None:
    """The login for Connect's REST interface."""
    settings = lab.home.settings
    return httpx.BasicAuth(USER, settings.logins.connect) if settings.secure else None


def connect_env(lab: LabContext) -> dict[str, str]:
    """The same as variables."""
    if not lab.home.settings.secure:
        return {}
    return {"CONNECT_USER": USER, "CONNECT_PASSWORD": lab.home.settings.logins.connect}


def registry_login(lab: LabContext) -> httpx.BasicAuth | None:
    """The login for the proxy before the registry."""
    settings = lab.home.settings
    return httpx.BasicAuth(USER, settings.logins.registry) if settings.secure else None


def registry_env(lab: LabContext) -> dict[str, str]:
    """The same as variables."""
    if not lab.home.settings.secure:
        return {}
    return {"SCHEMA_REGISTRY_USER_INFO": f"{USER}:{lab.home.settings.logins.registry}"}


def reader_headers(lab: LabContext) -> dict[str, str]:
    """The headers by which the lineage server takes us for the one who runs this lab."""
    settings = lab.home.settings
    return {"authorization": f"Bearer {settings.logins.server}"} if settings.secure else {}


def producer_env(lab: LabContext) -> dict[str, str]:
    """The token of those who report lineage, which opens nothing else."""
    settings = lab.home.settings
    return {"OPENLINEAGE_API_KEY": settings.logins.producer} if settings.secure else {}
