"""Keeps errors that lineage itself meets out of PySpark's log: Spark has reported its own once."""

from __future__ import annotations

import logging
import threading

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class OwnErrors(logging.Filter):
    """Drops what PySpark logs on lineage's thread.

    PySpark 4 logs every error of Spark's that reaches Python. Reading the plan of a statement that
    failed meets its error a second time.
    """

    def __init__(self, thread: str) -> None:
        super().__init__()
        self._thread = thread
        self._loggers: list[logging.Logger] = []
        try:
            from pyspark.logger import PySparkLogger
        except ImportError:  # PySpark 3.5 logs none of them
            return
        self._loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
        for logger in self._loggers:
            logger.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged."""
        return threading.current_thread().name != self._thread

    def close(self) -> None:
        """Log everything again."""
        for logger in self._loggers:
            logger.removeFilter(self)
