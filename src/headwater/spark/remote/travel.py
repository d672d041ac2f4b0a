"""Which snapshot of a table is read, where the plan's text does not say it: before Spark 4.1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.spark.remote.layout import Unclear

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.remote.protos import Read

_TIMES = ("timestampasof", "as-of-timestamp")
_OPTIONS = ("versionasof", "snapshot-id", "branch", "tag")
_AS_OF = re.compile(
    r"(?P<table>[\w.`]+)\s+(?:for\s+)?(?:system_)?(?P<what>version|timestamp|time)\s+as\s+of\s+"
    r"(?P<when>'[^']*'|\d+)?",
    re.IGNORECASE,
)


def by_options(name: str, reads: Iterable[Read]) -> str:
    """The snapshot that a reader's options ask for, where all readers of a table agree."""
    told = set()
    for given in _options(name, reads):
        told.add(next((given[key] for key in _OPTIONS if key in given), ""))
    if len(told) > 1:
        raise Unclear(f"{name}: which snapshot is read where is not clear")
    return next(iter(told), "")


def by_time(name: str, reads: Iterable[Read]) -> bool:
    """Whether a reader's options ask for what a table was at some time."""
    return any(key in given for given in _options(name, reads) for key in _TIMES)


def _options(name: str, reads: Iterable[Read]) -> list[dict[str, str]]:
    return [
        {key.lower(): value for key, value in read.options.items()}
        for read in reads
        if read.name and name.endswith(read.name.replace("`", ""))
    ]


def by_statements(name: str, statements: Iterable[str]) -> str:
    """The snapshot that the statements of a client ask for, if they name the table once."""
    short = name.rpartition(".")[2]
    found, mentions = [], 0
    for text in statements:
        plain = text.replace("`", "")
        mentions += len(re.findall(rf"(?<!\w){re.escape(short)}(?!\w)", plain))
        found += [one for one in _AS_OF.finditer(plain) if name.endswith(one["table"])]
    if not found:
        return ""
    if len(found) != 1 or mentions != 1 or found[0]["what"].lower() != "version":
        raise Unclear(f"{name}: which snapshot is read is not clear")
    if found[0]["when"] is None:
        raise Unclear(f"{name}: which snapshot is read is not shown")
    return found[0]["when"].strip("'")
