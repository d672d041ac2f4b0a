"""Spark Connect: a client without a JVM, of which nothing can be heard through py4j."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger("headwater")


def is_remote(spark: Any) -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def refuse(spark: Any) -> None:
    """Say once that nothing of this session is told, and how to tell it all the same."""
    log.warning(
        "lineage: %s is a Spark Connect client, which has no JVM to listen to: attach in the "
        "server's own session, or tell lineage with headwater.run(...)",
        type(spark).__name__,
    )
