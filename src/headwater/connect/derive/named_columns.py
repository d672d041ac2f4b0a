"""Which columns a connector's configuration names; all others pass by the schema of the records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["named_columns"]

# Keys whose values name columns: `pk.fields`, `incrementing.column.name`, `iceberg.tables.default-
# id-columns`, `query`. Of a transform also its lists and renames.
_KEY = re.compile(r"(?:^|[.\-])(?:fields?|columns?|partition-by|projection|query|kcql)(?:[.\-]|$)")
_OF_TRANSFORM = re.compile(
    r"^transforms\.[^.]+\.(?:(?:.*\.)?(?:fields?|columns?|include|exclude|whitelist|blacklist|renames|spec)"
    r"(?:\..*)?|.*\.by\..*)$"
)
# Keys of the same words that say how fields are written, or which fields are added.
_OTHER = re.compile(
    r"(?:syntax\.version|sanitize|(?:static|topic|partition|offset|timestamp|headers?)\.field$|"
    r"field\.(?:style|type|delimiter|format)|schemas?\.|route-field|prefix)"
)
_WORD = re.compile(r"[^\s,;:|()\[\]{}<>=\"'`+*/]+")


def named_columns(config: Mapping[str, str], pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The input columns that the configuration names: as a key, in a list, a transform or a query.

    Each comes with the output column that it enters: a transform may name it as it is by then.
    """
    words: set[str] = set()
    for key, value in config.items():
        if (_KEY.search(key) or _OF_TRANSFORM.match(key)) and not _OTHER.search(key):
            for word in _WORD.findall(value):
                words |= {word, word.rpartition(".")[2]}
    found = {column for column, output in pairs if words & (_names(column) | _names(output))}
    return tuple(sorted(found))


def _names(column: str) -> set[str]:
    """A column as a configuration may write it: its name, the path to it, the column of the row."""
    bare = column
    for record in ("key.", "value.", "after.", "before."):
        bare = bare.removeprefix(record)
    parts = bare.split(".")
    return {column, *(".".join(parts[:end]) for end in range(1, len(parts) + 1))}
