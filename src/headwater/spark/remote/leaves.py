"""The leaves of a plan's text: which datasets each reads, as far as text and client tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.remote import places
from headwater.spark.remote.layout import Drawn, Unclear, relation_name, split
from headwater.spark.remote.rules import ShownSource
from headwater.spark.remote.tokens import close
from headwater.spark.remote.travel import by_options, by_statements, by_time
from headwater.spark.sources import OpaqueSource, Source
from headwater.spark.stores import files, jdbc, kafka
from headwater.spark.stores.relations import QUIET_SOURCES

if TYPE_CHECKING:
    from headwater.spark.remote.protos import Read
    from headwater.spark.remote.world import World

RECORD = {
    "key": "binary", "value": "binary", "topic": "string", "partition": "integer",
    "offset": "long", "timestamp": "timestamp", "timestampType": "integer", "headers": None,
}  # fmt: skip
METADATA = ("_file", "_pos", "_spec_id", "_partition", "_deleted", "_metadata", "_row_id",
            "_last_updated_sequence_number", "_commit_version", "_commit_timestamp")  # fmt: skip
_STRATEGY = re.compile(r"KafkaRelation\(strategy=(\w+)\[(.*?)\], start=", re.DOTALL)
_SCAN = re.compile(
    r"FileScan (?P<format>\w+) \S*?\[(?P<columns>[^\]]*)\].*?"
    r"Location: \w+\((?P<many>\d+) paths?\)\[(?P<paths>.*?)\], PartitionFilters",
)
_NUMBER = re.compile(r"#(\d+)")
PATTERN = "subscribePattern"


class Leaves:
    """Finds the source of each leaf; `reads` are what the client named, `physical` how it runs."""

    def __init__(
        self, world: World, reads: list[Read], physical: str, statements: list[str]
    ) -> None:
        self.world = world
        self.reads = reads
        self.statements = statements
        self.sources: dict[int, Source] = {}
        self.plan: list[Drawn] = []
        self._physical = physical

    def types(self, drawn: Drawn, names: list[str]) -> dict[str, Any]:
        """Note the source of a leaf; the types of its columns, without facts about rows."""
        source, types = self._read(drawn, names)
        self.sources[id(drawn)] = source
        return {name: types.get(name) for name in names if name not in METADATA or name in types}

    def _read(self, drawn: Drawn, names: list[str]) -> tuple[Source, dict[str, Any]]:
        kind = drawn.kind
        if kind == "RelationV2":
            return self._table(drawn)
        if kind == "Relation":
            return self._relation(drawn)
        if kind == "StreamingRelationV2":
            return self._stream(drawn)
        if kind == "StreamingRelation":
            return self._file_stream(drawn)
        if kind in ("LogicalRDD", "ExternalRDD", "ExistingRDD"):
            self.world.problem(f"{kind}: rows that were kept: where they came from is not known")
        else:
            self.world.problem(f"{kind}: a leaf of the plan whose dataset is not known")
        return OpaqueSource(()), {}

    def _table(self, drawn: Drawn) -> tuple[Source, dict[str, Any]]:
        tail = drawn.rest[close(drawn.rest, drawn.rest.index("[")) + 1 :].strip()
        name, _, travel = tail.partition(" VERSION AS OF ")
        name, _, moment = name.partition(" TIMESTAMP AS OF ")
        shown = relation_name(name)
        twice, name = shown != name, shown
        if moment or by_time(name, self.reads):
            self.world.problem(f"{name}: which snapshot was read at that time is not known")
        if "/" in name:
            return self._by_path(name)
        parts = name.split(".")
        asked = travel.strip("'")
        try:
            asked = asked or by_options(name, self.reads)
            if twice and not asked:
                asked = by_statements(name, self.statements)
        except Unclear as error:
            # The columns are the same, whichever it is.
            self.world.problem(str(error))
        found = places.existing(self.world, parts, asked)
        types = self.world.server.columns(parts) or {}
        if found is None:
            self.world.problem(f"{name}: a table whose place is not known")
            return OpaqueSource(()), types
        return ShownSource((found,)), types

    def _by_path(self, path: str) -> tuple[Source, dict[str, Any]]:
        read = self._one([r for r in self.reads if r.format == "iceberg" and r.paths == (path,)])
        found = places.iceberg_path(self.world, path) if read is not None else None
        if found is None:
            self.world.problem("a table by its path whose kind is not known")
            return OpaqueSource(()), {}
        return ShownSource((found,)), self._types(read)

    def _relation(self, drawn: Drawn) -> tuple[Source, dict[str, Any]]:
        rest = drawn.rest
        at = rest.index("[")
        name, tail = rest[:at].strip(), rest[close(rest, at) + 1 :].strip()
        if name:
            found = places.existing(self.world, name.split("."))
            types = self.world.server.columns(name.split(".")) or {}
            if found is None:
                self.world.problem(f"{name}: a table whose place is not known")
                return OpaqueSource(()), types
            return ShownSource((found,)), types
        if match := _STRATEGY.match(tail):
            return self._topics(match[1], match[2])
        if tail.startswith("JDBCRelation("):
            return self._jdbc(tail[13 : close(tail, 12)])
        return self._files(drawn, tail.lower())

    def _topics(self, strategy: str, told: str) -> tuple[Source, dict[str, Any]]:
        wanted = {part.strip() for part in told.split(",")}
        if strategy == "Assign":
            wanted = {part.rpartition("-")[0] for part in wanted}
        fitting = [r for r in self.reads if r.format == "kafka" and _named(r.options) == wanted]
        brokers = {read.options.get("kafka.bootstrap.servers") for read in fitting}
        if len(brokers) != 1:
            self.world.problem("topics are read of a broker that is not known")
            return OpaqueSource(()), dict(RECORD)
        return self._kafka(fitting[0].options), dict(RECORD)

    def _kafka(self, options: dict[str, str]) -> Source:
        if pattern := options.get("subscribepattern"):
            seen = sorted(topic for topic in self.world.topics if _matches(pattern, topic))
            if not seen:
                self.world.problem(f"{PATTERN}: which topics it stands for is not known")
                return OpaqueSource(())
            options = {**options, "subscribe": ",".join(seen)}
        return Source(kafka.read(self.world, options), topic=True)  # type: ignore[arg-type]

    def _jdbc(self, told: str) -> tuple[Source, dict[str, Any]]:
        fitting = [
            read
            for read in self.reads
            if read.format == "jdbc"
            and (read.options.get("dbtable") == told or _inner(told) == read.options.get("query"))
        ]
        if len({read.options.get("url") for read in fitting}) != 1:
            self.world.problem("a table is read of a database that is not known")
            return OpaqueSource(()), {}
        source = jdbc.read(self.world, fitting[0].options)  # type: ignore[arg-type]
        return source or OpaqueSource(()), self._types(fitting[0])

    def _files(self, drawn: Drawn, word: str) -> tuple[Source, dict[str, Any]]:
        numbers = set(_NUMBER.findall(drawn.rest))
        scans = {
            match["paths"]
            for match in _SCAN.finditer(self._physical)
            if numbers & set(_NUMBER.findall(match["columns"]))
            and int(match["many"]) == len(match["paths"].split(", "))
        }
        named = [read for read in self.reads if read.format == word and read.paths]
        # A leaf without a scan is the client's only read of that format if there is no other leaf.
        fitting = self._one(named) if self.alike(word) == 1 else None
        if len(scans) == 1:
            paths = scans.pop().split(", ")
        elif fitting is not None:
            paths = list(fitting.paths)
        else:
            self.world.problem(f"{word}: files whose place is not known")
            return OpaqueSource(()), {}
        datasets = files.by_paths(paths, word, "file relation")
        return ShownSource(datasets), self._types(self._same(named, paths))

    def alike(self, word: str) -> int:
        """How many leaves of the plan read files of that format by path."""
        bare = [node.rest for node in self.plan if node.kind == "Relation" and not node.below]
        return sum(rest.startswith("[") and rest.lower().endswith(f"] {word}") for rest in bare)

    @staticmethod
    def _same(named: list[Read], paths: list[str]) -> Read | None:
        bare = {re.sub(r"^file:/+", "/", path) for path in paths}
        for read in named:
            if {re.sub(r"^file:/+", "/", path) for path in read.paths} == bare:
                return read
        return None

    def _stream(self, drawn: Drawn) -> tuple[Source, dict[str, Any]]:
        parts = split(drawn.rest)
        if "kafka010.Kafka" in parts[0]:
            at = next(n for n, part in enumerate(parts) if part.startswith("[") and "=" in part)
            options = dict(
                pair.partition("=")[::2] for pair in parts[at][1:-1].split(", ") if "=" in pair
            )
            given = {key.lower(): value for key, value in options.items()}
            return self._kafka(given), dict(RECORD)
        if len(parts) > 1 and parts[1] in QUIET_SOURCES:
            return Source(()), {}
        name = parts[0].split(".")
        found = places.existing(self.world, name)
        if found is None:
            self.world.problem(f"{parts[0][:80]}: a stream whose dataset is not known")
            return OpaqueSource(()), {}
        return ShownSource((found,)), self.world.server.columns(name) or {}

    def _file_stream(self, drawn: Drawn) -> tuple[Source, dict[str, Any]]:
        parts = split(drawn.rest)
        match = re.match(r"^FileSource\[(.*)\]$", parts[1]) if len(parts) > 1 else None
        word = re.match(r"^DataSource\([^,]*,(\w+),", parts[0])
        if match is None or word is None:
            self.world.problem("a streaming source whose dataset is not known")
            return OpaqueSource(()), {}
        datasets = files.by_paths([match[1]], word[1].lower(), "file stream")
        read = self._one([r for r in self.reads if r.paths == (match[1],)])
        return ShownSource(datasets), self._types(read)

    @staticmethod
    def _one(found: list[Read]) -> Read | None:
        return found[0] if len(found) == 1 else None

    def _types(self, read: Read | None) -> dict[str, Any]:
        return self.world.server.relation_columns(read.relation) if read is not None else {}


def _matches(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:
        return False


def _named(options: dict[str, str]) -> set[str]:
    """The topics that a reader's options name, as a plan shows them."""
    if assigned := options.get("assign"):
        try:
            return set(msgspec.json.decode(assigned))
        except msgspec.DecodeError:
            return set()
    told = options.get("subscribe") or options.get("subscribepattern") or ""
    return {part.strip() for part in told.split(",")}


def _inner(told: str) -> str | None:
    """The query in `(query) SPARK_GEN_SUBQ_0`."""
    if not told.startswith("("):
        return None
    return told[1 : told.rfind(")")].strip()
