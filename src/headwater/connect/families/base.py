"""What a family says of its connectors: which classes, which keys, and how to read them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from headwater.connect.record import Half

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.model import Catalog, Role, Symlink
    from headwater.connect.plan import Plan
    from headwater.lineage.naming import DatasetName
    from headwater.lineage.schema import Schema

Shape = Literal["row", "change", "same"]
"""A source's own record: the row itself, Debezium's change event, or the input's record."""

Path = tuple[Half, tuple[str, ...]]


@dataclass(frozen=True)
class Projection:
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


UNKNOWN = Projection(known=False)


@dataclass(frozen=True)
class Place:
    """A dataset outside Kafka, as a family names it."""

    id: DatasetName
    kind: str = "TABLE"
    sub_kind: str = ""
    symlinks: tuple[Symlink, ...] = ()
    catalog: Catalog | None = None
    columns: Projection = field(default_factory=Projection)
    schema: Schema | None = None
    """The columns that the dataset has, where somebody who knows was asked."""
    any_case: bool = False
    observed: str = ""
    paired: bool = True

    def with_columns(self, columns: Projection) -> Place:
        """The same dataset, its columns read in another way."""
        return replace(self, columns=columns)


@dataclass(frozen=True)
class Origin:
    """One dataset that a source reads, and the topic it writes it to before any transform."""

    topic: str
    place: Place | None = None
    shape: Shape | None = None
    columns: dict[str, tuple[tuple[str, ...], bool]] | None = None
    observed: str = ""


@dataclass(frozen=True)
class Reading:
    """All that a source's configuration says.

    `reverse` names the dataset behind a topic that was seen, where the configuration holds
    expressions instead of names; `hidden` tells bookkeeping topics. With `closed`, a topic that was
    seen and that nothing explains is one of an earlier configuration.
    """

    origins: tuple[Origin, ...] = ()
    reverse: Callable[[str], Place | None] | None = None
    candidates: Callable[[str], list[str]] | None = None
    shape: Shape | None = None
    hidden: Callable[[str], bool] = lambda topic: False  # noqa: ARG005
    place: Place | None = None
    sql: str = ""
    closed: bool = False


@dataclass(frozen=True)
class Plugin:
    """One connector class (or several that share everything) and how its keys are read."""

    family: str
    classes: tuple[str, ...]
    role: Role
    keys: tuple[str, ...]
    sink: Callable[[Plan, str], list[Place]] | None = None
    source: Callable[[Plan], Reading] | None = None
    stores: str = ""
    internal: bool = False
