"""The dead letters: messages no event can be made of, kept with the reason beside them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Letters"]

log = logging.getLogger("headwater.server")

SECONDS = 30
REASON = 1_000
PREFIX = "headwater."


class Letters:
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
                {**self._config, "acks": "all", "enable.idempotence": True, "linger.ms": 5}
            )
        failed: list[str] = []

        def done(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(str(error))

        for message, reason in refused:
            log.warning(
                "%s/%d at %d is no event: %s",
                message.topic(), message.partition(), message.offset(), reason[:200],
            )  # fmt: skip
            told = {
                "error": reason[:REASON],
                "topic": message.topic(),
                "partition": str(message.partition()),
                "offset": str(message.offset()),
            }
            # A letter that was sent back and failed again keeps only the newest reason.
            kept = [h for h in message.headers() or () if not h[0].startswith(PREFIX)]
            self._producer.produce(
                self.topic,
                message.value(),
                message.key(),
                headers=[*kept, *((PREFIX + k, v.encode()) for k, v in told.items())],
                on_delivery=done,
            )
        if self._producer.flush(SECONDS) or failed:
            why = failed[0] if failed else "it does not answer"
            raise HeadwaterError(f"the topic {self.topic} takes no dead letters: {why}")
