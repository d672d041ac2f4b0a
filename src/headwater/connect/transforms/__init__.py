"""The chain of single message transforms: what becomes of topic names and of columns."""

from __future__ import annotations

from .base import TopicName, TransformStep, UnknownColumnsError
from .chain import STEPS, Chain, lineage_options

__all__ = ["STEPS", "Chain", "TopicName", "TransformStep", "UnknownColumnsError", "lineage_options"]
