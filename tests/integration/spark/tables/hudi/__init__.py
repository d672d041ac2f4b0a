"""Hudi: every way to read and write a table of it, and the truth about each."""

from . import changes, reads, rows, streams, writes  # noqa: F401  (their steps)
from .base import SETTINGS, fill, step

__all__ = ["SETTINGS", "fill", "step"]
