"""Names that formats give to the same logical types."""

from __future__ import annotations

from typing import Any

_CONNECT = "org.apache.kafka.connect.data."
_DEBEZIUM = "io.debezium.time."

NAMES = {
    f"{_CONNECT}Date": "date",
    f"{_CONNECT}Time": "time",
    f"{_CONNECT}Timestamp": "timestamp",
    f"{_DEBEZIUM}Date": "date",
    f"{_DEBEZIUM}Time": "time",
    f"{_DEBEZIUM}MicroTime": "time",
    f"{_DEBEZIUM}NanoTime": "time",
    f"{_DEBEZIUM}ZonedTime": "time",
    f"{_DEBEZIUM}Timestamp": "timestamp",
    f"{_DEBEZIUM}MicroTimestamp": "timestamp",
    f"{_DEBEZIUM}NanoTimestamp": "timestamp",
    f"{_DEBEZIUM}ZonedTimestamp": "timestamp",
    f"{_DEBEZIUM}Year": "int",
    f"{_DEBEZIUM}Interval": "interval",
    f"{_DEBEZIUM}MicroDuration": "interval",
    "io.debezium.data.Json": "json",
    "io.debezium.data.Uuid": "uuid",
    "io.debezium.data.Enum": "enum",
    "io.debezium.data.EnumSet": "string",
    "io.debezium.data.Xml": "xml",
    "io.debezium.data.Bits": "bytes",
}
AVRO = {
    "date": "date",
    "time-millis": "time",
    "time-micros": "time",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "timestamp-nanos": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "local-timestamp-nanos": "timestamp_ntz",
    "uuid": "uuid",
    "duration": "interval",
}
_DECIMAL = f"{_CONNECT}Decimal"


def named(name: object, parameters: object = None) -> str:
    """The type behind a Connect or Debezium schema name, or nothing when it is only a name."""
    if not isinstance(name, str):
        return ""
    if name == _DECIMAL:
        given: dict[str, Any] = parameters if isinstance(parameters, dict) else {}
        return decimal(given.get("connect.decimal.precision"), given.get("scale"))
    return NAMES.get(name, "")


def decimal(precision: object, scale: object) -> str:
    """`decimal(10,2)`; without a known precision the scale alone, without both just `decimal`."""
    digits, places = _number(precision), _number(scale)
    if digits is None:
        return "decimal" if places is None else f"decimal(38,{places})"
    return f"decimal({digits},{places or 0})"


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
