"""Files read and written by path, and tables that a format keeps beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.spark.jvm import attempt, class_name, kind, seq
from headwater.spark.model import Dataset, Evidence
from headwater.spark.stores import tables
from headwater.spark.stores.paths import name_of, roots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.jvm import World

MOST_PATHS = 200


def by_paths(paths: Iterable[str], file_format: str, evidence: str) -> tuple[Dataset, ...]:
    """The datasets behind paths of one format."""
    layer = file_format if file_format in tables.LAYERS else ""
    return tuple(
        Dataset(
            *name,
            type="TABLE" if layer else "FILE",
            sub_type=file_format,
            storage_layer=layer,
            file_format="parquet" if layer else file_format,
            evidence=(Evidence(evidence, name.name),),
        )
        for name in roots(paths)
    )


def relation(world: World, given: Any) -> tuple[Dataset, ...]:
    """The files of a `HadoopFsRelation`."""
    file_format = format_of(given.fileFormat())
    found = given.location().rootPaths()
    many = found.size()
    paths = [found.apply(place).toString() for place in range(min(many, MOST_PATHS))]
    if many > MOST_PATHS:
        world.problem(f"only {MOST_PATHS} of {many} paths were looked at")
    return by_paths(paths, file_format, "file relation")


def format_of(given: Any) -> str:
    """The word for a file format: what it calls itself, else its class."""
    name = class_name(given)
    if "delta" in name.lower():
        return "delta"
    if "hudi" in name.lower() or "hoodie" in name.lower():
        return "hudi"
    short = attempt(given, "shortName")
    if isinstance(short, str):
        return short.lower()
    return kind(given).removesuffix("FileFormat").removesuffix("DataSource").lower()


def one(path: str, file_format: str, evidence: str) -> Dataset | None:
    """The dataset at exactly this path."""
    name = name_of(path)
    if name is None:
        return None
    found = by_paths([path], file_format, evidence)
    return found[0] if found else None


def table_paths(table: Any) -> list[str]:
    """The paths of a file table of the second data source API."""
    return [str(path) for path in seq(table.paths(), MOST_PATHS)]
