"""The Kafka cluster behind a Connect cluster: topics, addresses, offsets, groups."""

from __future__ import annotations

import importlib
import logging
import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import HeadwaterError, UsageError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

log = logging.getLogger(__name__)

# Topics are listed again about once a poll: `topics.regex` takes in those that are created.
FRESH = 5.0
# Each question to a cluster that is away takes seconds, which connectors' lives need.
LONGEST_WAIT = 120.0
SECONDS = 10.0
# Errors of the client that name the cause, where its calls only time out.
CAUSES = ("_AUTHENTICATION", "_SSL", "_RESOLVE", "SASL_AUTHENTICATION_FAILED")
_MOMENT = re.compile(r" \(after \d+ms in state \w+[^)]*\)")
MSK_REGION = "headwater.msk.iam.region"


class KafkaError(HeadwaterError):
    """Kafka cannot be asked now."""


class KafkaCluster(msgspec.Struct, frozen=True):
    """A cluster's metadata, as a broker returns it."""

    id: str
    brokers: tuple[str, ...]
    topics: frozenset[str]


class EndOffsets(msgspec.Struct, frozen=True):
    """The end offset of each partition of a topic, and the time of its newest record (microseconds)."""

    offsets: dict[int, int]
    last: int | None = None


class KafkaAdmin:
    """A cluster's admin client; every call is bounded in time."""

    def __init__(self, config: Mapping[str, str]) -> None:
        if not config.get("bootstrap.servers"):
            raise UsageError("Kafka needs bootstrap.servers", hint="--kafka-bootstrap HOST:PORT")
        self.bootstrap = ",".join(_plain(server) for server in servers(config["bootstrap.servers"]))
        import confluent_kafka  # noqa: F401  (where it is missing, say so now and not at each poll)

        self._config = {**client_config(config), "error_cb": self._on_error}
        self._admin: Any = None
        self._lock = threading.Lock()
        self._cluster: KafkaCluster | None = None
        self._wait, self._until = FRESH / 2, float("-inf")
        self._cause = ""
        self.problem = ""
        """Why the last question was not answered; empty when it was."""
        self.groups_problem = ""
        """Why not every consumer group is known, where they are asked for."""
        self.producers_problem = ""
        """Why not every transactional producer is known, where they are asked for."""

    @property
    def cluster(self) -> KafkaCluster | None:
        """The cluster as last seen; asked now and then, ever less often while it is away."""
        if time.monotonic() < self._until:
            return self._cluster
        with self._lock:
            if time.monotonic() >= self._until:
                self._wait = min(self._wait * 2, LONGEST_WAIT)
                with suppress(KafkaError):  # `problem` has the reason; the last metadata is kept
                    self._cluster = self._read_cluster()
                    self._wait = FRESH
                self._until = time.monotonic() + self._wait
        return self._cluster

    @property
    def bootstraps(self) -> tuple[str, ...]:
        """Every address the cluster is known by."""
        brokers = self._cluster.brokers if self._cluster else ()
        return tuple(dict.fromkeys([*self.bootstrap.split(","), *brokers]))

    def _read_cluster(self) -> KafkaCluster:
        found = self._ask("the cluster", lambda: self.admin.list_topics(timeout=SECONDS / 2))
        brokers = sorted(f"{b.host}:{b.port}" for b in found.brokers.values())
        return KafkaCluster(found.cluster_id or "", tuple(brokers), frozenset(found.topics))

    def ends(self, topics: Iterable[str], *, newest: bool = False) -> dict[str, EndOffsets]:
        """The end offsets of topics and, if asked, the time of each one's newest record."""
        from confluent_kafka import TopicPartition, admin

        spec: Any = admin.OffsetSpec  # type: ignore[attr-defined]
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        metadata = self._ask("topics", lambda: self.admin.list_topics(timeout=SECONDS / 2)).topics
        parts = [
            TopicPartition(topic, number)
            for topic in wanted
            if topic in metadata and metadata[topic].error is None
            for number in metadata[topic].partitions
        ]
        ends = self._offsets(parts, spec.latest())
        offsets: dict[str, dict[int, int]] = {}
        for (topic, number), result in ends.items():
            offsets.setdefault(topic, {})[number] = result.offset
        last: dict[str, int] = {}
        if newest:
            busy = [p for p in parts if offsets.get(p.topic, {}).get(p.partition)]
            for (topic, _), result in self._offsets(busy, spec.max_timestamp()).items():
                if result.timestamp > 0:
                    last[topic] = max(last.get(topic, 0), result.timestamp * 1000)
        return {topic: EndOffsets(found, last.get(topic)) for topic, found in offsets.items()}

    def _offsets(self, parts: Sequence[Any], spec: Any) -> dict[tuple[str, int], Any]:
        if not parts:
            return {}
        futures = self.admin.list_offsets(dict.fromkeys(parts, spec), request_timeout=SECONDS)
        found = {}
        for part, future in futures.items():
            try:
                found[part.topic, part.partition] = future.result(SECONDS)
            except Exception as error:  # noqa: BLE001
                log.debug("offsets of %s were not listed: %s", part, error)
        return found

    def committed(self, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int]]:
        """How far consumer groups have come, by topic and partition; all are asked at once."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        asked = {
            group: self.admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=SECONDS
            )
            for group in sorted(set(groups))
        }
        found: dict[str, dict[tuple[str, int], int]] = {}
        for group, futures in asked.items():
            try:
                parts = next(iter(futures.values())).result(SECONDS).topic_partitions
            except Exception as error:  # noqa: BLE001
                log.debug("offsets of consumer group %s were not listed: %s", group, error)
                continue
            found[group] = {
                (part.topic, part.partition): part.offset
                for part in parts
                if part.offset >= 0 and part.error is None
            }
        return found

    def newest_record(self, topic: str) -> tuple[bytes | None, bytes | None] | None:
        """Key and value of one of a topic's newest records; None when it has none."""
        from confluent_kafka import TopicPartition

        ends = self.ends([topic]).get(topic)
        filled = [
            (number, end) for number, end in (ends.offsets if ends else {}).items() if end > 0
        ]
        if not filled:
            return None
        number, end = max(filled, key=lambda pair: pair[1])
        consumer = self.consumer("headwater-sample")
        try:
            consumer.assign([TopicPartition(topic, number, max(0, end - 1))])
            message = consumer.poll(5.0)
            if message is None or message.error() is not None:
                return None
            return message.key(), message.value()
        finally:
            consumer.close()

    def consumer(self, group: str, **settings: Any) -> Any:
        """A consumer that commits nothing, for partitions that are assigned to it."""
        from confluent_kafka import Consumer

        own = {"group.id": group, "enable.auto.commit": False}
        return Consumer({**self._config, **own, **settings})

    @property
    def admin(self) -> Any:
        """The client, made when it is first needed."""
        if self._admin is None:
            from confluent_kafka.admin import AdminClient

            self._admin = AdminClient(self._config)
        return self._admin

    def _ask(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            # Serve the callbacks of the client: OAuth tokens and errors.
            self.admin.poll(0)
            found = call()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001
            if self._admin is not None:
                self._admin.poll(0)
            reason = redact(self._cause or str(error))
            self.problem = f"Kafka {self.bootstrap} did not return {what}: {reason}"
            raise KafkaError(self.problem) from None
        self.problem = self._cause = ""
        return found

    def _on_error(self, error: Any) -> None:
        """Keep the cause that the client reports; the errors of its calls lack it."""
        if error.name() in CAUSES or "SSL" in error.str():
            self._cause = _MOMENT.sub("", error.str())


def servers(listed: str) -> list[str]:
    """The addresses in a list of bootstrap servers."""
    return [server.strip() for server in listed.split(",") if server.strip()]


def _plain(server: str) -> str:
    return server.rpartition("://")[2]


def client_config(config: Mapping[str, str]) -> dict[str, Any]:
    """Settings as confluent-kafka takes them, with a token from MSK where a region is named."""
    found: dict[str, Any] = {
        "socket.timeout.ms": 10_000,
        "log.connection.close": False,
        **{key: value for key, value in config.items() if key != MSK_REGION},
        "bootstrap.servers": ",".join(_plain(s) for s in servers(config["bootstrap.servers"])),
    }
    # librdkafka writes to standard error by itself, addresses and settings included.
    found["logger"] = logging.getLogger("headwater.connect.librdkafka")
    region = config.get(MSK_REGION)
    if region:
        found |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
        found["oauth_cb"] = lambda _: _msk_token(region)
    return found


def _msk_token(region: str) -> tuple[str, float]:
    try:
        signer = importlib.import_module("aws_msk_iam_sasl_signer")
    except ModuleNotFoundError as error:
        raise UsageError(
            "MSK IAM needs aws-msk-iam-sasl-signer-python, which is not installed",
            hint="pip install aws-msk-iam-sasl-signer-python",
        ) from error
    token, expires = signer.MSKAuthTokenProvider.generate_auth_token(region)
    return str(token), float(expires) / 1000
