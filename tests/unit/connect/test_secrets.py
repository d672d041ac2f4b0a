"""No secret of any configuration survives: not in events, state, explanations or logs."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.families import BUILT_IN
from headwater.connect.model import Connector, ConnectorStatus, Task
from headwater.connect.run_event import failure_of, run_event
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.secrets import MASK, is_secret, safe_config, scrub, secret_values
from tests.properties import examples

from . import cases as golden

NOW = datetime(2026, 8, 1, tzinfo=timezone.utc)
PLANTED = re.compile(
    r"[\w\-=]*(?:s3cr3t|-secret|secret-|-pass\b|-pass-|pw-in|-token|api-key|-key-|cosmos-master)[\w\-=]*"
)


def everything(connector: Connector, metadata: Any, given: DeriveSettings) -> str:
    """All that leaves: the event of a failure, the state (which holds all that is explained), the shown config."""
    derived = derive(connector, metadata, given)
    config = connector.config
    trace = "java.lang.X: " + "; ".join(f"{k}={v}" for k, v in config.items() if is_secret(k))
    failure = failure_of(
        ConnectorStatus("FAILED", tasks=(Task(0, "FAILED", trace=trace),)), connector
    )
    body = run_event(derived, connector, run_id="0" * 8 + "-0000-7000-8000-" + "0" * 12,
                     state=EventType.FAIL, time=NOW, failure=failure)  # fmt: skip
    state = msgspec.json.encode(derived).decode()
    return "\n".join((json.dumps(body), state, json.dumps(safe_config(config))))


@pytest.mark.parametrize("case", golden.cases(), ids=lambda c: f"{c['file']}: {c['case']}")
def test_nothing_planted_survives(case: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    connector = golden.connector(case)
    text = everything(connector, golden.CaseMetadata(case), golden.settings(case)) + caplog.text
    planted = {m for value in connector.config.values() for m in PLANTED.findall(value)}
    planted |= set(secret_values(connector.config))
    assert [value for value in planted if value in text] == []
    assert "${file:" not in text
    assert "${env:" not in text


def test_the_golden_cases_plant_many() -> None:
    values = [v for c in golden.cases() for v in golden.connector(c).config.values()]
    assert len({m for value in values for m in PLANTED.findall(value)}) > 60


SECRET_KEYS = st.sampled_from([
    "connection.password", "database.password", "aws.secret.access.key", "sasl.jaas.config",
    "basic.auth.user.info", "azblob.account.key", "api.token", "snowflake.private.key",
    "snowflake.private.key.passphrase", "kafka.api.secret", "connect.cosmos.master.key",
    "oauth.client.secret", "ssl.keystore.password", "http.headers.authorization",
    "value.converter.basic.auth.user.info", "gcp.credentials.json", "keyfile",
    "azure.storage.connection.string", "camel.kamelet.x-sink.secretKey", "redis.auth.pass",
])  # fmt: skip
# A prefix of its own: words out of our sources are tried too, and are no secrets.
SECRETS = st.text("abcdefghijkmnpqrstuvwxyz23456789", min_size=9, max_size=17).map("zq9".__add__)
URLS = st.sampled_from([
    "https://user:{}@api.example.com/x", "mongodb://app:{}@m1:27017,m2/?w=1",
    "jdbc:postgresql://db/shop?user=a&password={}", "jdbc:postgresql://u:{}@db/shop",
    "jdbc:sqlserver://sql;databaseName=x;password={}", "redis://:{}@r:6379/1",
    "jdbc:oracle:thin:scott/{}@//ora:1521/X", "SASL_SSL://k:{}@b:9093",
    "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKey={}", "https://h/x?sig={}",
    "aws2-s3://lab?accessKey=a&secretKey={}&region=eu",
    'PlainLoginModule required username="u" password="{}";',
])  # fmt: skip


@examples(150)
@given(
    plugin=st.sampled_from(BUILT_IN),
    secret=SECRETS,
    key=SECRET_KEYS,
    url=URLS,
    numbers=st.lists(st.integers(0, 30), max_size=3),
)
def test_made_up_configurations(
    plugin: Any, secret: str, key: str, url: str, numbers: list[int]
) -> None:
    keys = [name.replace("*", "orders") for name in plugin.keys]
    config = dict.fromkeys(keys, "orders")
    config |= {"connector.class": plugin.classes[0].replace("*", "X"), "topics": "orders"}
    config[key] = secret
    for number in numbers:
        if keys:
            config[keys[number % len(keys)]] = url.format(secret)
    connector = Connector("c", plugin.role, config, ("orders",))
    assert secret not in everything(connector, golden.CaseMetadata({}), DeriveSettings())


WEBHOOKS = (
    "https://hooks.slack.com/services/T00000000/B00000000/{}",
    "https://discord.com/api/webhooks/1234567890/{}",
    "https://acme.webhook.office.com/webhookb2/1b9d6bcd-bbfd@9b5d/IncomingWebhook/{}/x",
    "https://api.example.com/hooks/{}-0123456789",
    "https://api.telegram.org/bot1234567:{0}{0}{0}/sendMessage",
    "https://prod-1.logic.azure.com/workflows/x/triggers/manual?sig={}",
)


@pytest.mark.parametrize("url", WEBHOOKS)
@pytest.mark.parametrize(
    ("plugin", "key"),
    [
        ("io.confluent.connect.http.HttpSinkConnector", "http.api.url"),
        ("io.aiven.kafka.connect.http.HttpSinkConnector", "http.url"),
        ("org.apache.camel.kafkaconnector.CamelSinkConnector", "camel.sink.url"),
        ("com.acme.UnknownSink", "endpoint"),
    ],
)
def test_the_path_of_a_webhook_is_a_secret(plugin: str, key: str, url: str) -> None:
    config = {"connector.class": plugin, key: url.format("xQ7vT2mK9wLp4"), "topics": "orders"}
    connector = Connector("c", "sink", config, ("orders",))
    assert "xQ7vT2mK9wLp4" not in everything(connector, golden.CaseMetadata({}), DeriveSettings())


def test_what_counts_as_a_secret() -> None:
    assert is_secret("connection.password")
    assert is_secret("aws.secret.access.key")
    assert is_secret("anything.at.all", declared={"anything.at.all"})
    assert not is_secret("value.converter.basic.auth.credentials.source")
    assert not is_secret("topics")
    assert not is_secret("pk.fields")
    assert not is_secret("key.converter")
    shown = safe_config({"database.password": "x", "topics": "a", "url": "http://u:p@h/"})
    assert shown == {"database.password": MASK, "topics": "a", "url": f"http://{MASK}@h/"}
    assert scrub("user ${file:/x:pw} of hunter22", ["hunter22"]) == f"user {MASK} of {MASK}"


def test_a_password_that_is_also_a_name_hides_nothing() -> None:
    config = {"database.hostname": "postgres", "database.user": "postgres",
              "database.password": "postgres", "database.dbname": "inventory"}  # fmt: skip
    assert secret_values(config) == ()
    assert secret_values({**config, "database.password": "inventory"}) == ()
    assert secret_values({**config, "database.password": "inventor"}) == ("inventor",)
    assert secret_values({**config, "database.password": "mysql"}) == ()


def test_a_password_that_stands_in_an_address_stays_hidden() -> None:
    password = {"connection.password": "hunter22"}
    for url in ("jdbc:postgresql://u:hunter22@db/shop", "jdbc:postgresql://db/s?password=hunter22",
                "https://api.example.com/hooks/hunter22", "mongodb://app:hunter22@m1/"):  # fmt: skip
        assert "hunter22" in secret_values({**password, "connection.url": url}), url
    assert "hunter22" in secret_values(
        {**password, "query": "SELECT * FROM t WHERE k = 'hunter22'"}
    )


def test_what_is_shown_of_a_configuration_holds_no_secret_twice() -> None:
    shown = safe_config({
        "connection.password": "Xq7-pA55", "connection.url": "https://api/hooks/Xq7-pA55",
        "cypher": "CALL login('Xq7-pA55')", "query.masked": "SELECT 1",
    })  # fmt: skip
    assert "Xq7-pA55" not in json.dumps(shown)
    assert shown["query.masked"] == MASK


def test_a_topic_that_is_seen_is_named_whatever_the_password() -> None:
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "connection.url": "jdbc:mysql://db/shop", "connection.password": "orders",
        "topics.regex": "ord.*",
    }  # fmt: skip
    for metadata, seen in ((golden.CaseMetadata({"broker": ["orders"]}), ()),
                        (golden.CaseMetadata({}), ("orders",))):  # fmt: skip
        derived = derive(Connector("c", "sink", config, seen), metadata, DeriveSettings())
        assert [d.name for d in derived.lineage.inputs] == ["orders"]
        assert [d.name for d in derived.lineage.outputs] == ["shop.orders"]
