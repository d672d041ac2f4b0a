"""Keeps errors of Headwater's own calls to Spark out of PySpark's log: the program made none of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class OwnErrorsFilter(logging.Filter):
    """Drops what PySpark logs while `own` is true of the calling thread, until it is closed.

    PySpark 4 logs every error of Spark's that reaches Python. Reading the plan of a statement that
    failed meets its error a second time.
    """

    def __init__(self, own: Callable[[], bool]) -> None:
        super().__init__()
        self._own = own
        self._loggers: list[logging.Logger] = []
        try:
            from pyspark.logger import PySparkLogger
        except ImportError:  # PySpark 3.5 logs none of them
            return
        # PySpark expects these loggers to be of its own class, so they must be made by it.
        self._loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
        for logger in self._loggers:
            logger.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged."""
        return not self._own()

    def close(self) -> None:
        """Log everything again."""
        for logger in self._loggers:
            logger.removeFilter(self)
