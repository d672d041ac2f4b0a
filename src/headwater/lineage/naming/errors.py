"""The one error that naming raises."""

from __future__ import annotations


class NamingError(ValueError):
    """An address from which no dataset name can be made; the message never holds credentials."""
