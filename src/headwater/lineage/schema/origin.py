"""Which subjects of a registry, or which table of a catalog, a schema was answered from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .claims import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .model import Field

MOST = 100
LONGEST = 1_000
_HIGHEST = 2**53


class SchemaOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """One subject or table that was asked directly.

    `kind` is `registry` or `catalog`. `version` orders the answers of a subject, where it has one;
    where versions may return, `sequence` does. `fields` are the names of the fields it answered,
    `part` is `key` or `value` of a topic; with neither it answered all of them. `others` are further
    subjects of the same dataset.
    """

    kind: str = ""
    subject: str = ""
    version: str | int = ""
    part: str = ""
    fields: tuple[str, ...] = ()
    others: tuple[SchemaOrigin, ...] = ()
    sequence: int = 0

    def beside(self, others: tuple[SchemaOrigin, ...]) -> SchemaOrigin:
        """This subject with others of the same dataset."""
        return msgspec.structs.replace(self, others=others)

    @property
    def order(self) -> int:
        """The version as a number; 0 where it is none, so that time decides."""
        text = str(self.sequence or self.version)
        found = int(text) if text.isascii() and text.isdigit() and len(text) < 17 else 0
        return found if found < _HIGHEST else 0

    def covers(self, name: str) -> bool:
        """Whether this subject answered a field."""
        if self.fields:
            return name in self.fields
        return not self.part or (name == KEY) == (self.part == KEY)


def iceberg_table(uuid: str, schema_id: int, highest: int) -> SchemaOrigin | None:
    """What an Iceberg catalog answered: a table, its current schema, and the highest it ever had.

    The table's uuid is the same in every catalog, and another one when the table is created again. A
    table that loses a column that it was given returns to the id of the schema before, so the id
    alone orders nothing. What is not distinguished is a second return to the same highest schema, as
    when a column is renamed back and forth twice: the schema before it is shown until the table gets
    a new one. The metadata's `last-updated-ms` would distinguish them, but it changes with every
    commit, so that each write would be stored as a claim of its own.
    """
    if not uuid:
        return None
    sequence = 2 * highest + (1 if schema_id == highest else 2)
    return SchemaOrigin("catalog", uuid, str(schema_id), sequence=sequence)


Answer = tuple[str, int, tuple["Field", ...]]


def attributed(
    origin: SchemaOrigin, fields: tuple[Field, ...]
) -> tuple[list[Answer], tuple[Field, ...]]:
    """What each subject answered of these fields, and the fields that none of them did."""
    answers: list[Answer] = []
    answered: set[str] = set()
    for one in _each(origin):
        covered = tuple(field for field in fields if one.covers(field.name))
        if covered:
            answers.append((f"{one.kind} {one.subject}"[:LONGEST], one.order, covered))
            answered.update(field.name for field in covered)
    return answers, tuple(field for field in fields if field.name not in answered)


def _each(origin: SchemaOrigin) -> Iterator[SchemaOrigin]:
    yield from (one for one in (origin, *origin.others[:MOST]) if one.subject)
