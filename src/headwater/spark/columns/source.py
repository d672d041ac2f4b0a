"""What a leaf of a plan reads: its datasets, and which of their columns each attribute is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.spark.columns.value import IDENTITY, Value

if TYPE_CHECKING:
    from headwater.lineage.model import Dataset

RECORD_SIDES = ("value", "key")


class Source:
    """The datasets behind one leaf; `target` when the leaf is the table that a command changes."""

    __slots__ = ("datasets", "decoded", "target", "topic")

    def __init__(
        self, datasets: tuple[Dataset, ...], *, topic: bool = False, target: bool = False
    ) -> None:
        self.datasets = datasets
        self.topic = topic
        self.target = target
        self.decoded: dict[str, Any] = {}
        """What a topic's value and key were read as."""

    @classmethod
    def of(cls, dataset: Dataset | None) -> Source | None:
        """The source of one dataset, or None when that is not known."""
        return cls((dataset,)) if dataset is not None else None

    def column(self, name: str, data_type: Any) -> Value:
        """The attribute of that name as a column of the datasets."""
        if not self.topic:
            return Value.column(self, (name,), data_type)
        if name in RECORD_SIDES:
            return Value({(self, (name,)): IDENTITY}, wire=(self, name))
        # Topic, partition, offset, timestamp: facts about the record, not its columns.
        return Value()


class MappedSource(Source):
    """A leaf whose attributes are expressions over tables: a query sent to a database."""

    __slots__ = ("columns",)

    def __init__(self, datasets: tuple[Dataset, ...], columns: dict[str, Value] | None) -> None:
        super().__init__(datasets)
        self.columns = columns

    def column(self, name: str, data_type: Any) -> Value:
        if self.columns is None:
            return Value.unknown()
        return self.columns.get(name) or self.columns.get(name.lower()) or Value.unknown()


class MetadataSource(Source):
    """A leaf that reads what a table says of itself, such as its snapshots or its files.

    It is a read of the table, but its columns are none of the table's.
    """

    __slots__ = ()

    def column(self, name: str, data_type: Any) -> Value:
        return Value()


class OpaqueSource(Source):
    """A leaf whose datasets may be known while its columns are not."""

    __slots__ = ()

    def column(self, name: str, data_type: Any) -> Value:
        return Value.unknown()
