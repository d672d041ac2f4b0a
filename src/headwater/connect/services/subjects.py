"""Which subjects of which registry hold the schemas of a topic, by a connector's own settings."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from headwater.connect.services.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from headwater.connect.model import Connector

TOPIC, RECORD, TOPIC_RECORD = "TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"
CCOMPAT = "/apis/ccompat/v7"
APICURIO_AUTH = ("apicurio.registry.auth.", "apicurio.auth.")
"""How the keys of a login begin in Apicurio's converters, of version 3 and of those before."""


def strategy(config: Mapping[str, str], side: str) -> str:
    """The short name of the naming strategy of the key's or the value's subjects."""
    key = f"{side}.converter.{side}.subject.name.strategy"
    apicurio = f"{side}.converter.apicurio.registry.artifact-resolver-strategy"
    named = (config.get(key) or config.get(apicurio) or "").rsplit(".", 1)[-1]
    known = {"RecordIdStrategy": RECORD, "TopicRecordIdStrategy": TOPIC_RECORD}
    return known.get(named, named) or TOPIC


def candidates(
    connector: Connector, topic: str, side: str, listed: Callable[[], Collection[str]]
) -> list[str]:
    """The subjects that may hold a topic's schemas, those that count together."""
    named = strategy(connector.config, side)
    if named == "SimpleTopicIdStrategy":
        return [topic]
    if named == TOPIC_RECORD:
        return _of_topic(topic, listed())
    if named == RECORD:
        # Debezium names its records after the topic; other producers' record names do not follow from the topic.
        ends = (".Envelope", ".Value") if side == "value" else (".Key",)
        return [name for end in ends if (name := f"{topic}{end}") in listed()][:1]
    return [f"{topic}-{side}"]


def _of_topic(topic: str, subjects: Collection[str]) -> list[str]:
    """Subjects `topic-Record`; `orders-eu-acme.Order` belongs to `orders-eu`, not to `orders`."""
    found = []
    for subject in subjects:
        head, _, record = subject.rpartition("-")
        if head == topic and record not in ("key", "value"):
            found.append(subject)
    return sorted(found)


def registry_of(connector: Connector, side: str) -> Endpoint | None:
    """The registry in the settings of a connector's converter; None where a placeholder hides it."""
    config = connector.config
    for prefix in (f"{side}.converter.", *_transform_prefixes(config, side)):
        url = config.get(f"{prefix}schema.registry.url") or config.get(
            f"{prefix}apicurio.registry.url"
        )
        if not url or "${" in url:
            continue
        first = url.split(",")[0].strip()
        for native in ("/apis/registry/v2", "/apis/registry/v3"):
            first = first.replace(native, CCOMPAT)
        first, in_url = _without_user(first)
        name, password = _login(config, prefix, in_url)
        token = config.get(f"{prefix}bearer.auth.token", "")
        return Endpoint(
            (first,), username=name, password=password, token="" if "${" in token else token,
            timeout=5.0,
        )  # fmt: skip
    return None


def _login(config: Mapping[str, str], prefix: str, in_url: str) -> tuple[str, str]:
    """The user and the password of a converter: with Confluent's keys, in the address, or Apicurio's."""
    source = config.get(f"{prefix}basic.auth.credentials.source", "")
    user = config.get(f"{prefix}basic.auth.user.info", "") if source == "USER_INFO" else in_url
    logins = [user.partition(":")[::2]]
    for auth in APICURIO_AUTH:
        name, password = f"{prefix}{auth}username", f"{prefix}{auth}password"
        logins.append((config.get(name, ""), config.get(password, "")))
    name, password = next((login for login in logins if login[0]), ("", ""))
    return ("", "") if "${" in f"{name}{password}" else (name, password)


def _without_user(url: str) -> tuple[str, str]:
    """An address without the `user:password` in it, and these."""
    head, slashes, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    return f"{head}{slashes}{host}{slash}{path}", unquote(user)


def _transform_prefixes(config: Mapping[str, str], side: str) -> list[str]:
    names = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    return [f"transforms.{name}.{side}.converter." for name in names]
