"""Files read and written by path, and tables that a format keeps at a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.lineage.model import Dataset
from headwater.spark.columns.source import OpaqueSource, Source
from headwater.spark.jvm import attempt, class_name, kind, seq
from headwater.spark.model import observed
from headwater.spark.stores import formats
from headwater.spark.stores.paths import TYPED, in_partition, is_part_file, name_of, root

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.naming import DatasetName
    from headwater.spark.jvm import JvmSession
    from headwater.spark.stores.paths import TypedPaths

MAX_PATHS = 200
MAX_ROOTS = 10_000
MAX_FOLDERS = 100


def by_paths(paths: Iterable[str], file_format: str, evidence: str) -> tuple[Dataset, ...]:
    """The datasets behind paths of one format."""
    table_format = formats.by_name(file_format)
    if table_format is not None:
        return tuple(table_format.located(name, evidence) for name in roots(paths))
    return tuple(
        Dataset(
            *name,
            type="FILE",
            sub_type=file_format,
            file_format=file_format,
            evidence=observed(evidence, name.name),
        )
        for name in roots(paths)
    )


def roots(paths: Iterable[str]) -> list[DatasetName]:
    """The datasets behind paths: partitions and patterns cut off.

    The log in which a table format keeps account of a table is no dataset.
    """
    found: dict[DatasetName, None] = {}
    for path in paths:
        if not formats.is_log(path) and (name := name_of(root(path))) is not None:
            found[name] = None
    return list(found)


def indexed(session: JvmSession, index: Any, file_format: str, evidence: str) -> Source:
    """What a `FileIndex` reads: folders, since a glob over files is the folder they lie in."""
    listed = index.rootPaths()
    count = listed.size()
    if count > MAX_ROOTS:
        listed = listed.take(MAX_ROOTS)
    paths = str(listed.mkString("\n")).split("\n") if count else []
    if not all(TYPED.has(path) for path in paths):
        paths = without_files(paths, _folders(index), TYPED)
    names = roots(paths)
    if len(names) > MAX_FOLDERS or count > MAX_ROOTS:
        many = f"{len(names)} folders" if count <= MAX_ROOTS else f"{count} paths"
        session.problem(f"{many} are read at once: more than {MAX_FOLDERS} are not listed")
        return OpaqueSource(())
    return Source(by_paths(paths, file_format, evidence))


def _folders(index: Any) -> list[str]:
    """The folders that the files of an index lie in."""
    found = attempt(index, "leafDirToChildrenFiles")
    if found is None or found.size() > MAX_ROOTS:
        return []
    return str(found.keys().mkString("\n")).split("\n")


def without_files(paths: list[str], folders: list[str], typed: TypedPaths) -> list[str]:
    """Paths with the folder in place of each file, unless the program gave that very file."""
    inside = "\n" + "\n".join(f"{folder}/" for folder in folders)

    def shown(path: str) -> str:
        # A folder has files in it or below it; without a list of folders nothing is known to be a file.
        if not folders or f"\n{path.rstrip('/')}/" in inside or typed.has(path):
            return path
        globbed = len(paths) > 1 or is_part_file(path) or typed.has_glob_of(path)
        return path.rpartition("/")[0] if globbed else path

    return [shown(path) for path in paths]


def relation(session: JvmSession, given: Any) -> Source:
    """The files of a `HadoopFsRelation`."""
    return indexed(session, given.location(), format_of(given.fileFormat()), "file relation")


def format_of(given: Any) -> str:
    """The name of a file format: of the table format it belongs to, its own, or its class's."""
    table_format = formats.owner(class_name(given))
    if table_format is not None:
        return table_format.name
    short = attempt(given, "shortName")
    if isinstance(short, str):
        return short.lower()
    return kind(given).removesuffix("FileFormat").removesuffix("DataSource").lower()


class Output(NamedTuple):
    """What is written at a path: its dataset, if it has a name, and whether it is a part of that."""

    datasets: tuple[Dataset, ...] = ()
    partial: bool = False


def output(path: str, file_format: str) -> Output:
    """What a writer that is given a path writes: in the folder of one partition, a part of its dataset."""
    found = one(path, file_format, "output path")
    return Output((found,) if found is not None else (), in_partition(path))


def one(path: str, file_format: str, evidence: str) -> Dataset | None:
    """The dataset at exactly this path."""
    if name_of(path) is None:
        return None
    found = by_paths([path], file_format, evidence)
    return found[0] if found else None


def table_paths(table: Any) -> list[str]:
    """The paths of a file table of the data source V2 API."""
    return [str(path) for path in seq(table.paths(), MAX_PATHS)]
