"""How services write their log: lines for people, or a JSON object a line; never a credential."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import datetime, timezone
from enum import Enum

from headwater.lineage.secrets import MaskingFormatter, redact

__all__ = ["LogFormat", "formatter", "request_id"]

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""


class LogFormat(str, Enum):
    """What a line of the log looks like."""

    TEXT = "text"
    JSON = "json"


class JsonFormatter(logging.Formatter):
    """One JSON object a line; a record about a run has `extra={"run": …}`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record, masked, in ASCII: nothing in it can end the line."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        found = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if asked := request_id.get():
            found["request_id"] = asked
        if run := getattr(record, "run", ""):
            found["run_id"] = str(run)
        if record.exc_info:
            found["trace"] = redact(self.formatException(record.exc_info))
        return json.dumps(found)


def formatter(kind: LogFormat) -> logging.Formatter:
    """The formatter of a service's log."""
    return JsonFormatter() if kind is LogFormat.JSON else MaskingFormatter()
