"""The transactional producers of a Kafka cluster, as its brokers note them in `__transaction_state`.

No request of the client library lists them. The topic has a record for each step of each transaction;
that of a transaction under way, or about to end, names the topics it writes to. Compaction leaves the last
record of each producer, which names none: so the end of the topic is read, where the present is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.services.consumer_groups import MAX_NAME
from headwater.connect.services.http_client import has_control
from headwater.connect.services.kafka import SECONDS, KafkaError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from headwater.connect.services.kafka import KafkaAdmin

__all__ = ["Transaction", "TransactionLog", "read_transaction"]

TOPIC = "__transaction_state"
TAIL = 1_000
"""How many records of each partition are read at first."""
MAX_RECORDS = 50_000
MAX_BYTES = 32_000_000
MAX_SECONDS = 10.0
"""How much is read at once; where there is more, what lies between that and the end is left out."""
MAX_TOPICS = 1_000
BATCH = 500
POLL_SECONDS = 0.2
_TAIL_BASE = -2000  # librdkafka's RD_KAFKA_OFFSET_TAIL_BASE
_LARGEST = 2**31


class Transaction(msgspec.Struct, frozen=True):
    """A step of a producer's transaction; one that began none yet has no time."""

    id: str
    topics: frozenset[str] = frozenset()
    at: int = 0
    """When the broker noted it, in microseconds."""


class _Bytes:
    """Reads the fields of a record, in the two ways in which Kafka writes them."""

    def __init__(self, body: bytes, *, compact: bool = False) -> None:
        self._body, self._at, self._compact = body, 0, compact

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big", signed=True)

    def text(self) -> str:
        return self._take(self._length(2)).decode()

    def count(self) -> int:
        return self._length(4)

    def skip_tags(self) -> None:
        """Fields that were added later, each with its size."""
        if self._compact:
            for _ in range(self._varint()):
                self._varint()
                self._take(self._varint())

    def _length(self, size: int) -> int:
        """The length of a text or an array; 0 where that is null."""
        length = self._varint() - 1 if self._compact else self.number(size)
        return max(0, length)

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._take(1)[0]
            found |= (byte & 0x7F) << shift
            if found > _LARGEST:
                raise ValueError("a length that is none")
            if byte < 0x80:
                return found
            shift += 7

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._body):
            raise ValueError("the record ends too early")
        part, self._at = self._body[self._at : end], end
        return part


def read_transaction(key: bytes | None, value: bytes | None) -> Transaction | None:
    """A record of `__transaction_state`; None for one of a form that is not known, or damaged.

    The record of a producer that the broker forgot has no value.
    """
    try:
        head = _Bytes(key or b"")
        if head.number(2) != 0:
            return None
        name = head.text()
        if not 0 < len(name) <= MAX_NAME or has_control(name):
            return None
        return _read_value(name, value) if value is not None else Transaction(name)
    except ValueError:  # UnicodeDecodeError, too
        return None


def _read_value(name: str, value: bytes) -> Transaction | None:
    version = int.from_bytes(value[:2], "big")
    if version not in (0, 1):
        return None
    body = _Bytes(value[2:], compact=version == 1)
    body.number(8)  # the producer's id
    body.number(2)  # its epoch
    body.number(4)  # how long a transaction may take
    begun = body.number(1) != 0
    topics: set[str] = set()
    for _ in range(body.count()):
        topic = body.text()
        for _ in range(body.count()):
            body.number(4)
        body.skip_tags()
        if len(topics) < MAX_TOPICS:
            topics.add(topic)
    at = body.number(8) * 1000
    return Transaction(name, frozenset(topics), max(0, at) if begun else 0)


class TransactionLog:
    """What a cluster's `__transaction_state` has since it was last read."""

    def __init__(self, kafka: KafkaAdmin) -> None:
        self._kafka = kafka
        self._next: dict[int, int] = {}
        self.behind = False
        """Whether more was written than is read at once."""
        self.unanswered = False
        """Whether some partitions did not answer in time."""
        self.new = False
        """Whether all that the last call returned was written since the one before."""

    def read(self) -> list[Transaction]:
        """The steps since the last call, at first the last ones; raises KafkaError."""
        consumer = self._kafka.consumer(
            "headwater-transactions",
            **{
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 8_192,
            },
        )
        try:
            return self._read(consumer)
        except KafkaError:
            raise
        except Exception as error:  # noqa: BLE001
            raise self._refused(error) from None
        finally:
            consumer.close()

    def _read(self, consumer: Any) -> list[Transaction]:
        from confluent_kafka import TopicPartition

        self.new = self.behind = self.unanswered = False
        topic = consumer.list_topics(TOPIC, timeout=SECONDS).topics[TOPIC]
        if topic.error is not None:
            if topic.error.name() == "UNKNOWN_TOPIC_OR_PART":
                return []  # there was never a transaction
            raise self._refused(topic.error)
        known = topic.partitions.keys() <= self._next.keys()
        tail = _TAIL_BASE - TAIL
        consumer.assign(
            [
                TopicPartition(TOPIC, number, self._next.get(number, tail))
                for number in topic.partitions
            ]
        )
        found: list[Transaction] = []
        ahead, size, count = set(topic.partitions), 0, 0
        until = time.monotonic() + MAX_SECONDS
        while ahead and count < MAX_RECORDS and size < MAX_BYTES and time.monotonic() < until:
            for message in consumer.consume(BATCH, POLL_SECONDS):
                error, number = message.error(), message.partition()
                if error is None:
                    count += 1
                    size += len(message.key() or b"") + len(message.value() or b"")
                    one = read_transaction(message.key(), message.value())
                    found += [one] if one is not None else []
                    self._next[number] = message.offset() + 1
                elif error.name() == "_PARTITION_EOF":
                    ahead.discard(number)
                    self._next[number] = message.offset()
                # A consumer without a group of its own still asks for the coordinator of one.
                elif error.name() != "GROUP_AUTHORIZATION_FAILED":
                    raise self._refused(error)
        full = count >= MAX_RECORDS or size >= MAX_BYTES
        self.behind, self.unanswered = bool(ahead) and full, bool(ahead) and not full
        self.new = known and not self.behind
        if self.behind:
            self._next = {number: at for number, at in self._next.items() if number not in ahead}
        return found

    def _refused(self, error: Any) -> KafkaError:
        reason = redact(str(error))
        return KafkaError(f"Kafka {self._kafka.bootstrap} did not return {TOPIC}: {reason}")
