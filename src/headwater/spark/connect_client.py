"""Spark Connect: a client without a JVM."""

from __future__ import annotations

from typing import Any


def attach_remote(spark: Any, namespace: str | None, app_name: str | None) -> None:
    raise NotImplementedError
