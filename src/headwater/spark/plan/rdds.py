"""RDDs: which datasets their rows were read from."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from headwater.spark.jvm import class_name, hidden, seq
from headwater.spark.model import PlanLineage
from headwater.spark.stores import files, formats, jdbc, kafka

if TYPE_CHECKING:
    from headwater.lineage.model import Dataset
    from headwater.spark.jvm import JvmSession

MAX_RDDS = 500
_PARTITIONS = 50
_FILES = 20
_FORMATS = {"save_as_text_file": "text", "save_as_sequence_file": "sequence"}


def saved(session: JvmSession, rdd: Any, path: str, operation: str) -> PlanLineage:
    """The lineage of an RDD of Python's that is written to a path: datasets alone, rows are opaque."""
    # A pipeline of functions in Python has no RDD in the JVM yet, but it knows the one it reads.
    java = getattr(rdd, "_prev_jrdd", None) or rdd._jrdd  # noqa: SLF001
    written = files.one(path, _FORMATS.get(operation, ""), "output path") if path else None
    return PlanLineage(
        inputs=datasets_of(session, java.rdd()),
        outputs=(written,) if written is not None else (),
        operation=operation,
        problems=tuple(session.problems),
    )


def datasets_of(session: JvmSession, rdd: Any) -> tuple[Dataset, ...]:
    """The datasets at the far end of an RDD's dependencies."""
    found: dict[tuple[str, str], Dataset] = {}
    waiting, seen = [rdd], set[int]()
    while waiting and len(seen) < MAX_RDDS:
        one = waiting.pop()
        number = one.id()
        if number in seen:
            continue
        seen.add(number)
        try:
            for dataset in _read(session, one):
                found.setdefault(dataset.id, dataset)
        except Exception as error:  # noqa: BLE001
            session.problem(f"an RDD could not be read ({type(error).__name__})")
        waiting += [dependency.rdd() for dependency in seq(one.dependencies())]
    return tuple(found.values())


def _read(session: JvmSession, rdd: Any) -> tuple[Dataset, ...]:
    name = class_name(rdd)
    short = name[name.rfind(".") + 1 :]
    if short == "FileScanRDD":
        paths = [
            _path(file)
            for part in seq(rdd.filePartitions(), _PARTITIONS)
            for file in islice(part.files(), _FILES)
        ]
        return files.by_paths({path.rpartition("/")[0] for path in paths}, "", "file scan")
    if short == "DataSourceRDD":
        return _partitions(session, hidden(rdd, "inputPartitions"))
    if short == "JDBCRDD":
        source = jdbc.read(session, session.mapping(hidden(rdd, "options").parameters()))
        return source.datasets if source is not None else ()
    if short == "KafkaSourceRDD":
        settings = session.mapping(hidden(rdd, "executorKafkaParams"))
        topics = {part.topicPartition().topic() for part in seq(hidden(rdd, "offsetRanges"))}
        options = {f"kafka.{key}": value for key, value in settings.items()}
        return kafka.read(session, {**options, "subscribe": ",".join(sorted(topics))})
    if short in ("HadoopRDD", "NewHadoopRDD"):
        settings = rdd.getConf()
        folders = settings.get("mapreduce.input.fileinputformat.inputdir") or ""
        return files.by_paths([path for path in folders.split(",") if path], "", "hadoop input")
    return ()


def _path(file: Any) -> str:
    given = file.filePath()
    return str(given if isinstance(given, str) else given.toString())


def _partitions(session: JvmSession, groups: Any) -> tuple[Dataset, ...]:
    """The table that partitions of a V2 scan belong to; one of them is enough."""
    for group in seq(groups, 1):
        members = seq(group, 1) if "scala" in class_name(group) else [group]
        for part in members:
            table_format = formats.owner(class_name(part))
            found = table_format.partition(session, part) if table_format is not None else None
            return (found,) if found is not None else ()
    return ()
