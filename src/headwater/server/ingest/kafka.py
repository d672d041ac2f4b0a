"""Events from a Kafka topic: their offsets are committed with them, so none is lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.errors import HeadwaterError
from headwater.server.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headwater.server.app import App
    from headwater.server.store import Receipt, Store
    from headwater.server.store.database import Connection

__all__ = [
    "KafkaBatch",
    "KafkaSettings",
    "KafkaSource",
    "MovedError",
    "UndeliveredError",
    "consume",
]

log = logging.getLogger("headwater.server")
client_log = logging.getLogger("headwater.server.librdkafka")
"""Of the client library, which writes lines of its own to standard error where it is given none."""

BATCH = 500
BATCH_BYTES = 1024 * 1024
"""Bytes of values after which a batch is taken in: other requests wait for that commit."""
LINGER = 0.25
"""Seconds in which messages gather to one batch."""
PREFETCH_KB = 16 * 1024
"""How much the client may prefetch (`queued.max.messages.kbytes`); its default is 64 MB."""
LETTER_BYTES = 64 * 1024
"""What a dead letter holds of a message that is too large for the topic of dead letters."""
PAUSE = 1.0
FLUSH_SECONDS = 30
REASON = 1_000
PREFIX = "headwater."
READ = "SELECT value FROM setting WHERE name = ?"
WRITE = (
    "INSERT INTO setting (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
Place = tuple[str, int]


class KafkaSettings(msgspec.Struct, kw_only=True):
    """Which topic to read, and how to reach it."""

    bootstrap: str
    topic: str = "openlineage.events"
    group: str = "headwater"
    member: str = ""
    dead_letters: str = ""
    config: dict[str, str] = {}

    @property
    def dead(self) -> str:
        """The topic that takes what cannot be read."""
        return self.dead_letters or f"{self.topic}.dead"


def consume(settings: KafkaSettings) -> Callable[[App], Any]:
    """A background task of the server that reads the topic as long as the server runs."""

    async def run(app: App) -> None:
        source = KafkaSource(app, settings, asyncio.get_running_loop())
        source.start()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(source.stop)

    return run


class RefusedRecord(NamedTuple):
    """A message that no event can be made of, and why."""

    message: Any
    reason: str


class _Unreadable(NamedTuple):
    """Stands for all records of a batch that the client cannot unpack, up to its last one."""

    place: Place
    first: int
    last: int
    reason: str

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.last

    def value(self) -> None:
        return None

    def key(self) -> None:
        return None


class UndeliveredError(Exception):
    """Some of a batch must go to the dead letters before its offsets may move on."""

    def __init__(self, refused: list[RefusedRecord]) -> None:
        super().__init__(f"{len(refused)} messages cannot be read")
        self.refused = refused


class MovedError(Exception):
    """Another server has read on from where this one stands."""


class KafkaBatch(NamedTuple):
    """Some messages and where each partition stood before them."""

    messages: list[Any]
    dead: frozenset[int]
    stored: dict[Place, int | None]
    name: Callable[[Place], str]
    limit: int

    def take(self, store: Store) -> dict[Place, int]:
        """Write the events and the offsets in one commit; answers the offsets."""
        refused = [RefusedRecord(m, why) for m in self.messages if (why := self._unfit(m))]
        if refused:
            raise UndeliveredError(refused)
        good = [m for m in self.messages if id(m) not in self.dead]
        ends = {(m.topic(), m.partition()): m.offset() + 1 for m in self.messages}

        def also(connection: Connection, receipts: Sequence[Receipt]) -> None:
            bad = [
                RefusedRecord(message, str(receipt.error))
                for message, receipt in zip(good, receipts, strict=True)
                if receipt.error is not None
            ]
            if bad:
                raise UndeliveredError(bad)
            for place, end in ends.items():
                rows = connection.all(READ, (self.name(place),))
                if (int(rows[0][0]) if rows else None) != self.stored.get(place):
                    raise MovedError(f"{place[0]}/{place[1]} was consumed by another server")
                connection.run(WRITE, (self.name(place), str(end)))

        try:
            store.append([m.value() for m in good], also)
        except (UndeliveredError, MovedError, StoreUnavailableError):
            raise
        except Exception as error:
            # One message that the writer cannot digest must not hold up the others.
            log.exception(
                "a batch of %d messages could not be stored; trying them one by one", len(good)
            )
            store.abandon()
            raise UndeliveredError(self._indigestible(store, good, error)) from error
        return ends

    def _unfit(self, message: Any) -> str:
        if id(message) in self.dead:
            return ""
        if isinstance(message, _Unreadable):
            return f"offsets {message.first} to {message.last}: {message.reason}"
        value = message.value()
        if value is None:
            return "the message has no value"
        return f"larger than {self.limit} bytes" if len(value) > self.limit else ""

    @staticmethod
    def _indigestible(store: Store, good: list[Any], error: Exception) -> list[RefusedRecord]:
        """The messages that fail by themselves; the others are taken in on the way."""
        found = []
        for message in good:
            try:
                store.append([message.value()])
            except StoreUnavailableError:
                raise
            except Exception as own:  # noqa: BLE001
                store.abandon()
                found.append(RefusedRecord(message, f"the server failed on it: {own!r}"))
        if not found:
            raise StoreUnavailableError(f"the batch failed: {error}")
        return found


class _Letter(NamedTuple):
    """A message for the dead letters: as it came, and where it came from and why."""

    value: bytes | None
    key: bytes | None
    headers: dict[str, str]

    def cut(self) -> _Letter:
        """The start of it; the whole is where it came from, as long as that topic keeps it."""
        size = len(self.value or b"")
        value = (self.value or b"")[:LETTER_BYTES]
        key = self.key if len(self.key or b"") <= LETTER_BYTES else None
        return _Letter(value, key, {**self.headers, "cut": f"{len(value)} of {size} bytes"})


def _letter(message: Any, reason: str) -> _Letter:
    # Not `message.headers()`: it ends the process (confluent-kafka 2.16) if the key of one is not
    # UTF-8, which anyone can write. The headers stay with the message in its own topic.
    headers = {
        "error": " ".join(reason.split())[:REASON],
        "topic": message.topic(),
        "partition": str(message.partition()),
        "offset": str(message.offset()),
    }
    return _Letter(message.value(), message.key(), headers)


class DeadLetters:
    """Writes to a topic, made on first use, and waits until the broker has what was written."""

    def __init__(self, bootstrap: str, topic: str, config: Mapping[str, str]) -> None:
        self.topic = topic
        self._config = {**config, "bootstrap.servers": bootstrap}
        self._producer: Any = None

    def send(self, refused: Iterable[tuple[Any, str]]) -> None:
        """Keep messages as they came, where they came from and why; raises if the broker does not."""
        if self._producer is None:
            from confluent_kafka import Producer

            self._producer = Producer(
                {
                    "compression.type": "zstd",
                    # The broker's limit decides, on what is sent; the client's is on what is packed.
                    "message.max.bytes": 1_000_000_000,
                    **self._config,
                    "logger": client_log,
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 5,
                }
            )
        letters = [_letter(message, reason) for message, reason in refused]
        for letter in letters:
            headers = letter.headers
            log.warning(
                "topic %s partition %s offset %s is not an OpenLineage event: %s",
                headers["topic"], headers["partition"], headers["offset"], headers["error"][:200],
            )  # fmt: skip
        # What came packed, or just fitted, may not fit with what is added here.
        if too_large := self._deliver(letters):
            self._deliver([letter.cut() for letter in too_large], last=True)

    def _deliver(self, letters: list[_Letter], *, last: bool = False) -> list[_Letter]:
        """Write letters; answers those that the broker finds too large, unless they are the last try."""
        from confluent_kafka import KafkaError

        failed: list[str] = []
        too_large: list[_Letter] = []

        def done(letter: _Letter, error: Any) -> None:
            if error is None:
                return
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and not last:
                too_large.append(letter)
            else:
                failed.append(str(error))

        for letter in letters:
            self._producer.produce(
                self.topic,
                letter.value,
                letter.key,
                headers=[(PREFIX + k, v.encode()) for k, v in letter.headers.items()],
                on_delivery=lambda error, _, letter=letter: done(letter, error),
            )
        if self._producer.flush(FLUSH_SECONDS) or failed:
            why = failed[0] if failed else "it does not answer"
            raise HeadwaterError(f"the topic {self.topic} takes no dead letters: {why}")
        return too_large


class KafkaSource:
    """One consumer in a thread of its own; writing is left to the server's writer."""

    def __init__(self, app: App, settings: KafkaSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.app = app
        self.settings = settings
        self._loop = loop
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-kafka", daemon=True)
        self._letters = DeadLetters(settings.bootstrap, settings.dead, settings.config)
        self._stored: dict[Place, int | None] = {}
        self._cluster = ""

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the batch at hand."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._session()
            except Exception as error:  # noqa: BLE001  (a source that is away comes back)
                log.warning("reading Kafka failed, trying again: %s", error)
                self.app.warnings["kafka"] = f"Kafka is not being read: {error}"
                self._stop.wait(PAUSE)

    def _session(self) -> None:
        from confluent_kafka import Consumer, KafkaError

        consumer = Consumer(
            {
                "session.timeout.ms": 6_000,
                "queued.max.messages.kbytes": PREFETCH_KB,
                **self.settings.config,
                **self._member(),
                "logger": client_log,
                "bootstrap.servers": self.settings.bootstrap,
                "group.id": self.settings.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        unknown = KafkaError.UNKNOWN_TOPIC_OR_PART
        try:
            consumer.subscribe([self.settings.topic], on_assign=self._assigned)
            while not self._stop.is_set():
                messages = self._gather(consumer)
                fault = messages.pop() if messages and messages[-1].error() else None
                if messages:
                    self._settle(consumer, messages)
                if fault is not None and fault.error().code() == KafkaError._BAD_COMPRESSION:  # noqa: SLF001
                    # A batch of zstd that unpacks to more than `receive.message.max.bytes`.
                    self._settle(consumer, [self._unreadable(fault)])
                    self._rewind(consumer)
                elif fault is not None and fault.error().code() != unknown:
                    raise HeadwaterError(str(fault.error()))
                if messages or consumer.assignment():
                    self.app.warnings.pop("kafka", None)
        finally:
            consumer.close()

    def _gather(self, consumer: Any) -> list[Any]:
        """What comes within a moment, and no more than other requests can wait for.

        If the last of it is an error, nothing was read beyond it.
        """
        messages: list[Any] = []
        size, deadline = 0, time.monotonic() + LINGER
        while len(messages) < BATCH and size < BATCH_BYTES and not self._stop.is_set():
            message = consumer.poll(max(0.0, deadline - time.monotonic()))
            if message is None:
                break
            messages.append(message)
            if message.error():
                break
            size += len(message.value() or b"")
        return messages

    def _unreadable(self, fault: Any) -> _Unreadable:
        """The batch that a fault is about, whose last offset the client does not say."""
        place, first = (fault.topic(), fault.partition()), int(fault.offset())
        with contextlib.closing(self._probe()) as probe:

            def within(offset: int) -> bool:
                return self._first_at(probe, place, offset) == first

            # A fault anywhere in a batch names the first offset of that batch.
            inside, step = first, 1
            while within(inside + step):
                inside, step = inside + step, step * 2
            outside = inside + step
            while outside - inside > 1:
                middle = (inside + outside) // 2
                inside, outside = (middle, outside) if within(middle) else (inside, middle)
        return _Unreadable(place, first, inside, str(fault.error().str()))

    def _probe(self) -> Any:
        """A consumer beside the group that reads single offsets."""
        from confluent_kafka import Consumer

        own = {
            "logger": client_log,
            "bootstrap.servers": self.settings.bootstrap,
            "group.id": self.settings.group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        return Consumer({**self.settings.config, **own})

    @staticmethod
    def _first_at(probe: Any, place: Place, offset: int) -> int | None:
        """The first offset of the batch around an offset if it cannot be unpacked, else None."""
        from confluent_kafka import KafkaError, TopicPartition

        probe.assign([TopicPartition(*place, offset)])
        message = probe.poll(FLUSH_SECONDS)
        if message is None:
            raise HeadwaterError(f"Kafka does not answer about {place[0]}/{place[1]} at {offset}")
        if (error := message.error()) is None:
            return None
        if error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):  # noqa: SLF001
            return None
        if error.code() != KafkaError._BAD_COMPRESSION:  # noqa: SLF001
            raise HeadwaterError(str(error))
        return int(message.offset())

    def _member(self) -> dict[str, str]:
        """A name of its own lets a server that was killed have its partitions back at once."""
        member = self.settings.member
        return {"group.instance.id": member} if member else {}

    def _name(self, place: Place) -> str:
        return f"kafka/{self._cluster}/{place[0]}/{place[1]}"

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        """Continue at the offsets in the store, whatever Kafka has committed for this group."""
        if not self._cluster:
            self._cluster = str(consumer.list_topics(timeout=10).cluster_id)
        for partition in partitions:
            self._look_up(partition)
        consumer.assign(partitions)

    def _look_up(self, partition: Any) -> None:
        from confluent_kafka import OFFSET_BEGINNING

        place = (partition.topic, partition.partition)
        with self.app.store.database.reading() as connection:
            rows = connection.all(READ, (self._name(place),))
        self._stored[place] = int(rows[0][0]) if rows else None
        partition.offset = int(rows[0][0]) if rows else OFFSET_BEGINNING

    def _settle(self, consumer: Any, batch: list[Any]) -> None:
        """Take a batch in; what cannot be read goes to the dead letters first."""
        dead: set[int] = set()
        while not self._stop.is_set():
            work = KafkaBatch(batch, frozenset(dead), dict(self._stored), self._name, self._limit)
            try:
                self._stored |= self._perform(work.take)
                break
            except UndeliveredError as error:
                self._letters.send((r.message, r.reason) for r in error.refused)
                self.app.refusals["kafka: dead letter"] += len(error.refused)
                dead |= {id(r.message) for r in error.refused}
            except (MovedError, StoreUnavailableError) as error:
                log.warning("Kafka consumer rewinds to the last committed offset: %s", error)
                self._stop.wait(PAUSE)
                self._rewind(consumer)
                return
        # The store decides; what is committed to Kafka only lets its tools show the lag.
        if positions := self._positions(batch):
            consumer.commit(offsets=positions, asynchronous=True)

    @property
    def _limit(self) -> int:
        return self.app.settings.body_limit

    def _perform(self, work: Callable[[Store], Any]) -> Any:
        async def run() -> Any:
            return await self.app.ingest.perform(work)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _rewind(self, consumer: Any) -> None:
        for partition in consumer.assignment():
            self._look_up(partition)
            consumer.seek(partition)

    def _positions(self, batch: list[Any]) -> list[Any]:
        from confluent_kafka import TopicPartition

        places = {(m.topic(), m.partition()) for m in batch}
        stored = {place: self._stored.get(place) for place in places}
        return [TopicPartition(*p, offset) for p, offset in stored.items() if offset is not None]
