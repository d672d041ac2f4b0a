"""What a connector family provides: classes, keys, and how datasets are read from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from headwater.connect.transforms.record import Half
from headwater.lineage.model import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.derive.context import Context
    from headwater.connect.model import Role
    from headwater.lineage.model import DatasetType, Symlink
    from headwater.lineage.naming import DatasetName

Shape = Literal["row", "change", "same"]
"""A source's own record: the row itself, Debezium's change event, or the input's record."""

Path = tuple[Half, tuple[str, ...]]


@dataclass(frozen=True)
class ColumnProjection:
    """Which fields of a final record become which columns of the target."""

    known: bool = True
    only: frozenset[str] | None = None
    drop: frozenset[str] = frozenset()
    explicit: tuple[tuple[str, Path], ...] | None = None
    keys: tuple[str, ...] | None = None
    nested_key: str = ""
    """The column that holds the whole key, if one does."""
    rename: Callable[[str], str] | None = None
    unwrap: bool = False


UNKNOWN = ColumnProjection(known=False)


@dataclass(frozen=True)
class ExternalDataset:
    """A dataset outside Kafka, as a family names it."""

    dataset: Dataset
    """With a schema only where a catalog was asked for the columns it really has."""
    columns: ColumnProjection = field(default_factory=ColumnProjection)
    any_case: bool = False
    observed: str = ""
    paired: bool = True

    @classmethod
    def of(cls, name: DatasetName, kind: DatasetType = "TABLE", **fields: Any) -> ExternalDataset:
        """A dataset by its name; `fields` are further fields of it."""
        return cls(Dataset(*name, type=kind, **fields))

    @property
    def id(self) -> DatasetName:
        """Namespace and name of the dataset."""
        return self.dataset.id

    def updated(self, **fields: Any) -> ExternalDataset:
        """The same with some fields of its dataset replaced."""
        return replace(self, dataset=msgspec.structs.replace(self.dataset, **fields))

    def linked(self, *links: Symlink) -> ExternalDataset:
        """The same with more names of its dataset, none of them its own."""
        extra = [link for link in links if (link.namespace, link.name) != self.id]
        return self.updated(symlinks=(*self.dataset.symlinks, *extra))

    def with_columns(self, columns: ColumnProjection) -> ExternalDataset:
        """The same dataset, its columns read in another way."""
        return replace(self, columns=columns)


@dataclass(frozen=True)
class SourceTopic:
    """One dataset that a source reads, and the topic it writes it to before any transform."""

    topic: str
    place: ExternalDataset | None = None
    shape: Shape | None = None
    columns: dict[str, tuple[tuple[str, ...], bool]] | None = None
    observed: str = ""


@dataclass(frozen=True)
class SourceLineage:
    """What a source reads and writes by its configuration.

    `reverse` names the dataset behind a topic that was seen, where the configuration holds
    expressions instead of names; `hidden` recognises bookkeeping topics. With `closed`, a topic that was
    seen and that nothing explains is one of an earlier configuration; with `partial`, keys that are not
    known here may name more topics.
    """

    origins: tuple[SourceTopic, ...] = ()
    reverse: Callable[[str], ExternalDataset | None] | None = None
    candidates: Callable[[str], list[str]] | None = None
    shape: Shape | None = None
    hidden: Callable[[str], bool] = lambda topic: False  # noqa: ARG005
    place: ExternalDataset | None = None
    sql: str = ""
    closed: bool = False
    partial: bool = False


@dataclass(frozen=True)
class Plugin:
    """One connector class (or several that share everything) and how its keys are read."""

    family: str
    classes: tuple[str, ...]
    role: Role
    keys: tuple[str, ...]
    sink: Callable[[Context, str], list[ExternalDataset]] | None = None
    source: Callable[[Context], SourceLineage] | None = None
    stores: str = ""
    internal: bool = False
