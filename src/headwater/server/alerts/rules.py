"""The file of alert rules: which channels are notified of what; read when a server starts and on each change."""

from __future__ import annotations

import math
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from headwater.errors import UsageError
from headwater.lineage.moments import SECOND, seconds

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["KINDS", "Channel", "Rule", "Rules", "Secret", "read_rules"]

KINDS = {
    "run-failed": "a job's newest run failed or was aborted",
    "stale": "a dataset is not up to date, for at least `for`",
    "schema-breaks": "a schema changed and breaks a job that reads the dataset",
    "new-reader": "a job began to read a column with one of `tags`",
    "producer-silent": "no event of a namespace with open runs came for `for`",
    "check-failed": "a quality check of a dataset did not hold",
}
TEMPLATES = ("json", "slack")
_TOP = {"page", "channels", "rules"}
_CHANNEL = {"url", "headers", "template", "command", "timeout"}
_RULE = {"when", "to", "for", "namespaces", "names", "owners", "tags"}
_SIZE = 1_000_000
_LONGEST = 300.0


class Secret:
    """A text that is sent and never shown."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"


class Channel(msgspec.Struct, frozen=True):
    """Where messages go: a webhook, or a command that gets each on its standard input."""

    name: str
    url: Secret | None = None
    headers: dict[str, Secret] = {}
    template: str = "json"
    command: tuple[str, ...] = ()
    timeout: float = 10.0

    @property
    def hidden(self) -> list[str]:
        """What may stand in no log and no answer."""
        given = [self.url, *self.headers.values()]
        found = {one.reveal() for one in given if one is not None}
        if self.url is not None:
            parts = urlsplit(self.url.reveal())
            found |= {part for part in (parts.path, parts.query, parts.netloc) if len(part) > 1}
        # The longest first: one may stand inside another.
        return sorted((one for one in found if one), key=len, reverse=True)


class Rule(msgspec.Struct, frozen=True):
    """What is reported, and to which channels; without filters, of every job and dataset."""

    name: str
    when: str
    to: tuple[str, ...]
    lasting: int = 0
    """How long it has to last, in microseconds."""
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def named(self, namespace: str, name: str) -> bool:
        """Whether the filters let this name through; patterns are as a shell has them."""
        return _fits(namespace, self.namespaces) and _fits(name, self.names)

    def marked(self, owners: Collection[str], tags: Collection[str]) -> bool:
        """Whether the filters by owner and tag let this through: one of each is enough."""
        owned = not self.owners or any(_fits(one, self.owners) for one in owners)
        return owned and (not self.tags or any(_fits(one, self.tags) for one in tags))


class Rules(msgspec.Struct, frozen=True):
    """The content of a file of rules."""

    channels: dict[str, Channel]
    rules: dict[str, Rule]
    page: str = ""
    """Where people find the page, for links in messages."""
    file: Path | None = None


def _fits(text: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)


def read_rules(path: Path) -> Rules:
    """The rules of a TOML or JSON file; raises UsageError that names the key that is wrong."""
    found = _decoded(path)
    _known(found, _TOP, str(path))
    channels = {
        name: _channel(name, item, f"{path}: channels.{name}", path.parent)
        for name, item in _tables(found, "channels", path).items()
    }
    rules = {
        name: _rule(name, item, f"{path}: rules.{name}", channels)
        for name, item in _tables(found, "rules", path).items()
    }
    page = found.get("page", "")
    if not isinstance(page, str) or (page and urlsplit(page).scheme not in ("http", "https")):
        raise UsageError(f"{path}: page is no http address", hint='page = "https://HOST"')
    return Rules(channels, rules, page.rstrip("/"), path)


def _decoded(path: Path) -> dict[str, Any]:
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the alert rules: {error}") from error
    if len(body) > _SIZE:
        raise UsageError(f"{path} is larger than {_SIZE:,} bytes")
    is_json = path.suffix == ".json"
    try:
        found = msgspec.json.decode(body) if is_json else msgspec.toml.decode(body)
    except ImportError:
        raise UsageError(
            f"{path}: TOML cannot be read by this Python",
            hint="use Python 3.11 or newer, or pip install tomli, or write the file as .json",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        kind = "JSON" if is_json else "TOML"
        raise UsageError(f"{path}: not {kind}: {error}", hint="see docs/operations.md") from None
    if not isinstance(found, dict):
        raise UsageError(f"{path}: not an object", hint="see docs/operations.md")
    return found


def _tables(found: dict[str, Any], key: str, path: Path) -> dict[str, dict[str, Any]]:
    tables = found.get(key)
    if not isinstance(tables, dict) or not tables:
        raise UsageError(f"{path}: has no {key}", hint=f"at least one table [{key}.NAME]")
    for name, item in tables.items():
        if not isinstance(item, dict):
            raise UsageError(f"{path}: {key}.{name} is no table", hint=f"[{key}.{name}]")
    return tables


def _known(item: dict[str, Any], names: set[str], where: str) -> None:
    for key in item:
        if key not in names:
            raise UsageError(
                f"{where}: {key} is not known", hint=f"known: {', '.join(sorted(names))}"
            )


def _channel(name: str, item: dict[str, Any], where: str, folder: Path) -> Channel:
    _known(item, _CHANNEL, where)
    command = item.get("command")
    if (command is None) == ("url" not in item):
        raise UsageError(
            f"{where}: needs either url or command",
            hint='url = "https://…" for a webhook, command = ["PROGRAM", "ARGUMENT"] otherwise',
        )
    timeout = _seconds(item.get("timeout", "30s" if command is not None else "10s"), where)
    if not 0 < timeout <= _LONGEST:
        raise UsageError(f"{where}: timeout must be between 1s and {_LONGEST:.0f}s")
    if command is not None:
        for key in ("headers", "template"):
            if key in item:
                raise UsageError(f"{where}: {key} belongs to a webhook, not to a command")
        words = _texts(command, f"{where}: command")
        if not isinstance(command, list) or not words or not words[0]:
            raise UsageError(
                f"{where}: command must be a list", hint='command = ["PROGRAM", "ARGUMENT"]'
            )
        return Channel(name, command=words, timeout=timeout)
    url = _secret(item["url"], f"{where}: url", folder)
    parts = urlsplit(url.reveal())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{where}: url is no http address", hint='url = "https://HOST/PATH"')
    headers = item.get("headers", {})
    if not isinstance(headers, dict):
        raise UsageError(f"{where}: headers is no table", hint="headers.NAME = { env = NAME }")
    template = item.get("template", "json")
    if template not in TEMPLATES:
        raise UsageError(f"{where}: template is not one of {', '.join(TEMPLATES)}")
    sent = {
        key: _secret(value, f"{where}: headers.{key}", folder) for key, value in headers.items()
    }
    return Channel(name, url, sent, template, timeout=timeout)


def _secret(value: Any, where: str, folder: Path) -> Secret:
    """A text as it stands, from an environment variable, or from a file."""
    hint = 'a text, { env = "VARIABLE" } or { file = "PATH" }'
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("env"), str):
        text = os.environ.get(value["env"], "")
        hint = f"set the environment variable {value['env']} where the server runs"
    elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("file"), str):
        hint = f"write it into {value['file']}"
        try:
            text = (folder / value["file"]).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise UsageError(f"{where}: cannot read {value['file']}: {reason}", hint=hint) from None
    else:
        raise UsageError(f"{where}: is no text", hint=hint)
    text = text.strip()
    if not text or not text.isprintable():
        raise UsageError(f"{where}: is empty or more than one line", hint=hint)
    return Secret(text)


def _rule(name: str, item: dict[str, Any], where: str, channels: dict[str, Channel]) -> Rule:
    _known(item, _RULE, where)
    when = item.get("when")
    if when not in KINDS:
        raise UsageError(f"{where}: when is not known", hint=f"one of {', '.join(KINDS)}")
    to = _texts(item.get("to", []), f"{where}: to")
    for one in to or ("",):
        if one not in channels:
            problem = f"to names {one}, which is no channel" if one else "to names no channel"
            raise UsageError(f"{where}: {problem}", hint=f"known: {', '.join(channels)}")
    lasting = _seconds(item.get("for", "0s"), f"{where}: for")
    if when == "producer-silent" and not lasting:
        raise UsageError(
            f"{where}: needs for", hint='for = "15m": how long no event may come from a namespace'
        )
    if when == "new-reader":
        if not item.get("tags"):
            raise UsageError(f"{where}: needs tags", hint='tags = ["pii"]: the tags of columns')
        if lasting:
            raise UsageError(f"{where}: for has no meaning here", hint="leave it out")
    if when == "producer-silent" and any(item.get(key) for key in ("names", "owners", "tags")):
        raise UsageError(f"{where}: a namespace has no names, owners or tags", hint="namespaces")
    filters = {
        key: _texts(item.get(key, []), f"{where}: {key}")
        for key in ("namespaces", "names", "owners", "tags")
    }
    return Rule(name, str(when), to, int(lasting * SECOND), **filters)


def _texts(value: Any, where: str) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
        raise UsageError(f"{where}: is no text and no list of texts")
    return tuple(items)


def _seconds(value: Any, where: str) -> float:
    try:
        found = seconds(value) if isinstance(value, str) else math.nan
    except ValueError:
        found = math.nan
    if not 0 <= found <= 366 * 86_400:
        raise UsageError(f"{where}: is no duration", hint='such as "45s", "30m", "12h" or "2d"')
    return found
