"""KCQL, the little language of the Lenses connectors: which field goes where."""

from __future__ import annotations

import re
from typing import NamedTuple

_LONGEST = 20_000
_INSERT = re.compile(
    r"^\s*(?:INSERT|UPSERT(?:\s+PK\s+\S+)?)\s+INTO\s+(?P<target>`[^`]+`|'[^']+'|\S+)"
    r"\s+SELECT\s+(?P<fields>.+?)\s+FROM\s+(?P<source>`[^`]+`|'[^']+'|\S+)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_IGNORE = re.compile(
    r"\bIGNORE\s+([\w.,\s`]+?)(?=\s+(?:PK|AUTO\w+|BATCH|CAPITALIZE|INITIALIZE|PARTITIONBY|STOREAS"
    r"|WITH\w*|TTL|TIMESTAMP|TAG|LIMIT|PROPERTIES|DISTRIBUTEBY|CLUSTERBY)\b|\s*$)",
    re.IGNORECASE,
)
_TYPE = re.compile(r"(?:\bWITHTYPE\s+|'servicebus\.type'\s*=\s*')(\w+)", re.IGNORECASE)
_SUFFIX = re.compile(r"\bWITHINDEXSUFFIX\b", re.IGNORECASE)
_PARTS = re.compile(r"(?:'[^']*'|`[^`]*`|[^;'`]|['`])+")
_AS = re.compile(r"\s+AS\s+", re.IGNORECASE)


class Statement(NamedTuple):
    """One `INSERT INTO target SELECT fields FROM source`; no fields means all.

    With `known` false, functions or wildcards stand among the fields; with `dated`, the target's
    name goes on with the time.
    """

    target: str
    source: str
    fields: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()
    kind: str = ""
    known: bool = True
    dated: bool = False


def parse(text: str) -> list[Statement]:
    """The statements of a KCQL text; what is no statement is left out."""
    found = []
    for part in _PARTS.findall(text[:_LONGEST]):
        match = _INSERT.match(part)
        if not match:
            continue
        ignored = _IGNORE.search(match["rest"])
        names = _names(ignored[1]) if ignored else ()
        known = "(" not in match["fields"] and ".*" not in match["fields"]
        fields = _fields(match["fields"]) if known else ()
        kind = _TYPE.search(match["rest"])
        ends = _bare(match["target"]), _bare(match["source"])
        dated = _SUFFIX.search(match["rest"]) is not None
        named = kind[1].lower() if kind else ""
        found.append(Statement(*ends, fields, names, named, known, dated))
    return found


def _fields(text: str) -> tuple[tuple[str, str], ...]:
    if text.strip() == "*":
        return ()
    found = []
    for item in text.split(","):
        path, *alias = _AS.split(item.strip(), maxsplit=1)
        path = path.strip().replace("`", "")
        name = alias[0].strip().strip("`") if alias else path.rpartition(".")[2]
        if path and name:
            found.append((name, path))
    return () if any(path == "*" for _, path in found) else tuple(found)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("`") for name in text.split(",") if name.strip())


def _bare(name: str) -> str:
    return name.strip().strip("`'").rstrip(",")
