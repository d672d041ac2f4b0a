"""A connector as Connect's answers show it: Apache's shape and Confluent Cloud's."""

from __future__ import annotations

import msgspec

from headwater.connect.access import ConnectError, Trouble
from headwater.connect.model import Status, Task


class Info(msgspec.Struct, frozen=True):
    """What is known of a connector beside its state."""

    name: str
    type: str
    config: dict[str, str]


class Entry(msgspec.Struct, frozen=True):
    """One connector as a poll shows it."""

    info: Info
    status: Status


class _Part(msgspec.Struct):
    id: int = 0
    state: str = ""
    worker_id: str | None = None
    version: str | None = None
    trace: str | None = None
    msg: str | None = None


class _Status(msgspec.Struct):
    connector: _Part
    tasks: list[_Part] = []
    name: str = ""
    type: str | None = None


class _Setting(msgspec.Struct):
    config: str
    value: str | None = None


class _Info(msgspec.Struct):
    config: dict[str, str | None] | list[_Setting]
    name: str = ""
    type: str | None = None


class _Entry(msgspec.Struct):
    status: _Status
    info: _Info


_entry = msgspec.json.Decoder(_Entry)


def read_entry(name: str, raw: bytes | msgspec.Raw) -> Entry:
    """One connector out of a poll's answer; raises ConnectError when it is not one."""
    try:
        found = _entry.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConnectError(Trouble.GARBAGE, f"{name}: {error}") from None
    settings = found.info.config
    if isinstance(settings, list):
        config = {item.config: item.value or "" for item in settings}
    else:
        config = {key: value or "" for key, value in settings.items()}
    kind = (found.info.type or found.status.type or "").lower()
    connector, tasks = found.status.connector, found.status.tasks
    return Entry(
        Info(name, kind if kind in ("source", "sink") else "", config),
        Status(
            connector.state.upper(),
            connector.worker_id or "",
            connector.version or "",
            connector.trace or connector.msg or "",
            tuple(
                Task(
                    t.id,
                    t.state.upper(),
                    t.worker_id or "",
                    t.version or "",
                    t.trace or t.msg or "",
                )
                for t in sorted(tasks, key=lambda t: t.id)
            ),
        ),
    )
