"""RDDs: which datasets were read before a program took the rows into its own hands."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from headwater.spark.jvm import class_name, hidden, seq
from headwater.spark.stores import files, iceberg, jdbc, kafka
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from headwater.spark.jvm import World
    from headwater.spark.model import Dataset

MOST = 500
_PARTITIONS = 50
_FILES = 20


def datasets_of(world: World, rdd: Any) -> tuple[Dataset, ...]:
    """The datasets at the far end of an RDD's dependencies."""
    found: dict[tuple[str, str], Dataset] = {}
    waiting, seen = [rdd], set[int]()
    while waiting and len(seen) < MOST:
        one = waiting.pop()
        number = one.id()
        if number in seen:
            continue
        seen.add(number)
        try:
            for dataset in _read(world, one):
                found.setdefault(dataset.id, dataset)
        except Exception as error:  # noqa: BLE001
            world.problem(f"an RDD could not be read ({type(error).__name__})")
        waiting += [dependency.rdd() for dependency in seq(one.dependencies())]
    return tuple(found.values())


def _read(world: World, rdd: Any) -> tuple[Dataset, ...]:
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
        return _partitions(world, hidden(rdd, "inputPartitions"))
    if short == "JDBCRDD":
        source = jdbc.read(world, world.mapping(hidden(rdd, "options").parameters()))
        return source.datasets if source is not None else ()
    if short == "KafkaSourceRDD":
        settings = world.mapping(hidden(rdd, "executorKafkaParams"))
        topics = {part.topicPartition().topic() for part in seq(hidden(rdd, "offsetRanges"))}
        options = {f"kafka.{key}": value for key, value in settings.items()}
        return kafka.read(world, {**options, "subscribe": ",".join(sorted(topics))})
    if short in ("HadoopRDD", "NewHadoopRDD"):
        settings = rdd.getConf()
        told = settings.get("mapreduce.input.fileinputformat.inputdir") or ""
        return files.by_paths([path for path in told.split(",") if path], "", "hadoop input")
    return ()


def _path(file: Any) -> str:
    given = file.filePath()
    return str(given if isinstance(given, str) else given.toString())


def _partitions(world: World, groups: Any) -> tuple[Dataset, ...]:
    """Iceberg's partitions carry their table; one of them is enough."""
    for group in seq(groups, 1):
        members = seq(group, 1) if "scala" in class_name(group) else [group]
        for part in members:
            if not iceberg.is_iceberg(class_name(part)):
                return ()
            table = hidden(part, "tableBroadcast").value()
            place = name_of(table.location())
            if place is None:
                return ()
            catalog, _, rest = table.name().partition(".")
            return (iceberg.dataset(world, place, catalog, rest.split(".")),)
    return ()
