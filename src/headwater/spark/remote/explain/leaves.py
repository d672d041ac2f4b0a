"""The leaves of a plan's text: the datasets that each reads, by its text and the client's plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.columns.source import MetadataSource, OpaqueSource, Source
from headwater.spark.model import each_once
from headwater.spark.remote import tables
from headwater.spark.remote.explain.layout import (
    PlanTextNode,
    UnclearText,
    close,
    relation_name,
    split,
)
from headwater.spark.remote.explain.rules import UntypedSource
from headwater.spark.stores import files, formats, jdbc, kafka
from headwater.spark.stores.paths import TypedPaths, is_part_file
from headwater.spark.stores.relations import QUIET_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.remote.client_plan import Read
    from headwater.spark.remote.server_client import RemoteSession

RECORD = {
    "key": "binary", "value": "binary", "topic": "string", "partition": "integer",
    "offset": "long", "timestamp": "timestamp", "timestampType": "integer", "headers": None,
}  # fmt: skip
_STRATEGY = re.compile(r"KafkaRelation\(strategy=(\w+)\[(.*?)\], start=", re.DOTALL)
_SCAN = re.compile(
    r"FileScan (?P<format>\w+) \S*?\[(?P<columns>[^\]]*)\].*?"
    r"Location: \w+\((?P<many>\d+) paths?\)\[(?P<paths>.*?)\], PartitionFilters",
)
_NUMBER = re.compile(r"#(\d+)")
PATTERN = "subscribePattern"
# Before Spark 4.1 the text of a plan does not show which snapshot of a table is read.
_AS_OF = re.compile(
    r"(?P<table>[\w.`]+)\s+(?:for\s+)?(?:system_)?(?P<what>version|timestamp|time)\s+as\s+of\s+"
    r"(?P<when>'[^']*'|\d+)?",
    re.IGNORECASE,
)


class LeafReader:
    """Finds the source of each leaf; `reads` are what the client named, `physical` how it runs."""

    def __init__(
        self, session: RemoteSession, reads: list[Read], physical: str, statements: list[str]
    ) -> None:
        self.session = session
        self.reads = reads
        self.statements = statements
        self.sources: dict[int, Source] = {}
        self.plan: list[PlanTextNode] = []
        self._physical = physical

    def types(self, text_node: PlanTextNode, names: list[str]) -> dict[str, Any]:
        """Note the source of a leaf; the types of its columns, without metadata of rows."""
        source, types = self._read(text_node, names)
        self.sources[id(text_node)] = source
        hidden = {"_metadata"}.union(*(f.metadata_columns for f in formats.table_formats()))
        return {name: types.get(name) for name in names if name not in hidden or name in types}

    def _read(self, text_node: PlanTextNode, names: list[str]) -> tuple[Source, dict[str, Any]]:
        kind = text_node.kind
        if kind == "RelationV2":
            return self._table(text_node)
        if kind == "Relation":
            return self._relation(text_node)
        if kind == "StreamingRelationV2":
            return self._stream(text_node)
        if kind == "StreamingRelation":
            return self._file_stream(text_node)
        if kind in ("LogicalRDD", "ExternalRDD", "ExistingRDD"):
            self.session.problem(f"{kind}: rows that were kept: where they came from is not known")
        else:
            self.session.problem(f"{kind}: a leaf of the plan whose dataset is not known")
        return OpaqueSource(()), {}

    def _table(self, text_node: PlanTextNode) -> tuple[Source, dict[str, Any]]:
        tail = text_node.rest[close(text_node.rest, text_node.rest.index("[")) + 1 :].strip()
        name, _, travel = tail.partition(" VERSION AS OF ")
        name, _, moment = name.partition(" TIMESTAMP AS OF ")
        shown = relation_name(name)
        twice, name = shown != name, shown
        if moment or by_time(name, self.reads):
            self.session.problem(f"{name}: which snapshot was read at that time is not known")
        if "/" in name:
            return self._by_path(name)
        parts = name.split(".")
        asked = travel.strip("'")
        try:
            asked = asked or by_options(name, self.reads)
            if twice and not asked:
                asked = by_statements(name, self.statements)
        except UnclearText as error:
            # The columns are the same, whichever it is.
            self.session.problem(str(error))
        about = tables.metadata_of(self.session, parts)
        found = tables.existing(self.session, about or parts, asked)
        types = self.session.server.columns(parts) or {}
        if found is None:
            self.session.problem(f"{name}: a table whose place is not known")
            return OpaqueSource(()), types
        return (MetadataSource((found,)) if about else UntypedSource((found,))), types

    def _by_path(self, path: str) -> tuple[Source, dict[str, Any]]:
        read = self._one([r for r in self.reads if r.paths == (path,)])
        table_format = formats.by_name(read.format) if read is not None else None
        found = None
        metadata = False
        if table_format is not None:
            place, _, kind = path.rpartition("#")
            metadata = bool(place) and kind.lower() in table_format.metadata_tables
            asked = place if metadata else path
            found = table_format.at_path(self.session, asked, "table at a path")
        if found is None:
            self.session.problem("a table by its path whose kind is not known")
            return OpaqueSource(()), {}
        source = MetadataSource((found,)) if metadata else UntypedSource((found,))
        return source, self._types(read)

    def _relation(self, text_node: PlanTextNode) -> tuple[Source, dict[str, Any]]:
        rest = text_node.rest
        at = rest.index("[")
        name, tail = rest[:at].strip(), rest[close(rest, at) + 1 :].strip()
        if name:
            found = tables.existing(self.session, name.split("."))
            types = self.session.server.columns(name.split(".")) or {}
            if found is None:
                self.session.problem(f"{name}: a table whose place is not known")
                return OpaqueSource(()), types
            return UntypedSource((found,)), types
        if match := _STRATEGY.match(tail):
            return self._topics(match[1], match[2])
        if tail.startswith("JDBCRelation("):
            return self._jdbc(tail[13 : close(tail, 12)])
        return self._files(text_node, tail.lower())

    def _topics(self, strategy: str, shown: str) -> tuple[Source, dict[str, Any]]:
        wanted = {part.strip() for part in shown.split(",")}
        if strategy == "Assign":
            wanted = {part.rpartition("-")[0] for part in wanted}
        fitting = [r for r in self.reads if r.format == "kafka" and _named(r.options) == wanted]
        brokers = {read.options.get("kafka.bootstrap.servers") for read in fitting}
        if len(brokers) != 1:
            self.session.problem("topics are read of a broker that is not known")
            return OpaqueSource(()), dict(RECORD)
        # Which of them this leaf is, the text does not show: the groups are those of all.
        sources = [self._kafka(read.options) for read in fitting]
        found = each_once(one for source in sources for one in source.datasets)
        sources[0].datasets = tuple(found.values())
        return sources[0], dict(RECORD)

    def _kafka(self, options: dict[str, str]) -> Source:
        if pattern := options.get("subscribepattern"):
            seen = sorted(topic for topic in self.session.topics if _matches(pattern, topic))
            if not seen:
                self.session.problem(f"{PATTERN}: which topics it stands for is not known")
                return OpaqueSource(())
            options = {**options, "subscribe": ",".join(seen)}
        return Source(kafka.read(self.session, options), topic=True)  # type: ignore[arg-type]

    def _jdbc(self, shown: str) -> tuple[Source, dict[str, Any]]:
        fitting = [
            read
            for read in self.reads
            if read.format == "jdbc"
            and (read.options.get("dbtable") == shown or _inner(shown) == read.options.get("query"))
        ]
        if len({read.options.get("url") for read in fitting}) != 1:
            self.session.problem("a table is read of a database that is not known")
            return OpaqueSource(()), {}
        source = jdbc.read(self.session, fitting[0].options)  # type: ignore[arg-type]
        return source or OpaqueSource(()), self._types(fitting[0])

    def _files(self, text_node: PlanTextNode, format_name: str) -> tuple[Source, dict[str, Any]]:
        numbers = set(_NUMBER.findall(text_node.rest))
        scans = {
            match["paths"]
            for match in _SCAN.finditer(self._physical)
            if numbers & set(_NUMBER.findall(match["columns"]))
            and int(match["many"]) == len(match["paths"].split(", "))
        }
        named = [read for read in self.reads if read.format == format_name and read.paths]
        # A leaf without a scan is the client's only read of that format if there is no other leaf.
        fitting = self._one(named) if self.count_leaves(format_name) == 1 else None
        if len(scans) == 1:
            paths = scans.pop().split(", ")
            typed = TypedPaths(path for read in self.reads for path in read.paths)
            paths = [
                path.rpartition("/")[0] if is_part_file(path) and not typed.has(path) else path
                for path in paths
            ]
        elif fitting is not None:
            paths = list(fitting.paths)
        else:
            self.session.problem(f"{format_name}: files whose place is not known")
            return OpaqueSource(()), {}
        datasets = files.by_paths(paths, format_name, "file relation")
        return UntypedSource(datasets), self._types(self._same(named, paths))

    def count_leaves(self, format_name: str) -> int:
        """How many leaves of the plan read files of that format by path."""
        bare = [node.rest for node in self.plan if node.kind == "Relation" and not node.below]
        return sum(
            rest.startswith("[") and rest.lower().endswith(f"] {format_name}") for rest in bare
        )

    @staticmethod
    def _same(named: list[Read], paths: list[str]) -> Read | None:
        bare = {re.sub(r"^file:/+", "/", path) for path in paths}
        for read in named:
            if {re.sub(r"^file:/+", "/", path) for path in read.paths} == bare:
                return read
        return None

    def _stream(self, text_node: PlanTextNode) -> tuple[Source, dict[str, Any]]:
        parts = split(text_node.rest)
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
        found = tables.existing(self.session, name)
        if found is None:
            self.session.problem(f"{parts[0][:80]}: a stream whose dataset is not known")
            return OpaqueSource(()), {}
        return UntypedSource((found,)), self.session.server.columns(name) or {}

    def _file_stream(self, text_node: PlanTextNode) -> tuple[Source, dict[str, Any]]:
        parts = split(text_node.rest)
        match = re.match(r"^FileSource\[(.*)\]$", parts[1]) if len(parts) > 1 else None
        word = re.match(r"^DataSource\([^,]*,(\w+),", parts[0])
        if match is None or word is None:
            self.session.problem("a streaming source whose dataset is not known")
            return OpaqueSource(()), {}
        datasets = files.by_paths([match[1]], word[1].lower(), "file stream")
        read = self._one([r for r in self.reads if r.paths == (match[1],)])
        return UntypedSource(datasets), self._types(read)

    @staticmethod
    def _one(found: list[Read]) -> Read | None:
        return found[0] if len(found) == 1 else None

    def _types(self, read: Read | None) -> dict[str, Any]:
        return self.session.server.relation_columns(read.relation) if read is not None else {}


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
    topics = options.get("subscribe") or options.get("subscribepattern") or ""
    return {part.strip() for part in topics.split(",")}


def _inner(shown: str) -> str | None:
    """The query in `(query) SPARK_GEN_SUBQ_0`."""
    if not shown.startswith("("):
        return None
    return shown[1 : shown.rfind(")")].strip()


def by_options(name: str, reads: Iterable[Read]) -> str:
    """The snapshot that a reader's options ask for, where all readers of a table agree."""
    snapshots = set()
    for given in _options(name, reads):
        keys = (key for one in formats.table_formats() for key in one.version_options)
        snapshots.add(next((given[key] for key in keys if key in given), ""))
    if len(snapshots) > 1:
        raise UnclearText(f"{name}: which snapshot is read where is not clear")
    return next(iter(snapshots), "")


def by_time(name: str, reads: Iterable[Read]) -> bool:
    """Whether a reader's options ask for what a table was at some time."""
    keys = {key for one in formats.table_formats() for key in one.time_options}
    return any(key in given for given in _options(name, reads) for key in keys)


def _options(name: str, reads: Iterable[Read]) -> list[dict[str, str]]:
    return [
        {key.lower(): value for key, value in read.options.items()}
        for read in reads
        if read.name and name.endswith(read.name.replace("`", ""))
    ]


def by_statements(name: str, statements: Iterable[str]) -> str:
    """The snapshot that the statements of a client ask for, if they name the table once."""
    short = name.rpartition(".")[2]
    found, mentions = [], 0
    for text in statements:
        plain = text.replace("`", "")
        mentions += len(re.findall(rf"(?<!\w){re.escape(short)}(?!\w)", plain))
        found += [one for one in _AS_OF.finditer(plain) if name.endswith(one["table"])]
    if not found:
        return ""
    if len(found) != 1 or mentions != 1 or found[0]["what"].lower() != "version":
        raise UnclearText(f"{name}: which snapshot is read is not clear")
    if found[0]["when"] is None:
        raise UnclearText(f"{name}: which snapshot is read is not shown")
    return found[0]["when"].strip("'")
