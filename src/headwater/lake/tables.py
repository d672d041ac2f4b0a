"""The lake's tables: their columns, how they are partitioned, and what each column means."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "ALIASES",
    "ANALYSED_COLUMNS",
    "ANALYSED_COMPONENTS",
    "ANALYSED_DATASETS",
    "ANALYSIS",
    "COLUMN_EDGES",
    "DATASETS",
    "DERIVED",
    "EDGES",
    "EVENTS",
    "OWNERS",
    "REFUSED",
    "RUNS",
    "SCHEMAS",
    "TABLES",
    "UNIQUE",
    "LakeColumn",
    "LakeTable",
    "unique_sql",
]

BUCKETS = 16
"""Parts of each day, and of each derived table, by node: what is asked of few nodes reads few files."""


class LakeColumn(NamedTuple):
    """A column: its name, its type in Spark's words, and what it holds."""

    name: str
    type: str
    about: str


class LakeTable(NamedTuple):
    """A table: what it holds, its columns and its partitions."""

    name: str
    about: str
    columns: tuple[LakeColumn, ...]
    partitions: tuple[str, ...]
    key: tuple[str, ...] = ()
    """Of a derived table: what identifies a row within one node."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    @property
    def partitioned(self) -> str:
        """How it is partitioned, as the end of Spark's statement that makes it."""
        return f" PARTITIONED BY ({', '.join(self.partitions)})" if self.partitions else ""

    @property
    def ddl(self) -> str:
        """Its columns as Spark reads them."""
        return ", ".join(f"{column.name} {column.type}" for column in self.columns)


_PLACE = (
    LakeColumn("topic", "string", "the topic it came from"),
    LakeColumn("kafka_partition", "int", "its partition there"),
    LakeColumn("kafka_offset", "bigint", "its offset there"),
)
_NODE = LakeColumn("node", "string", "the job, as `job:NAMESPACE:NAME`")
_JOB = (
    _NODE,
    LakeColumn("job_namespace", "string", "the job's namespace"),
    LakeColumn("job_name", "string", "the job's name"),
)
_DATASET = (
    LakeColumn("dataset_namespace", "string", "the dataset's namespace, as it was reported"),
    LakeColumn("dataset_name", "string", "the dataset's name, as it was reported"),
)
_VALID = (
    LakeColumn("valid_from", "timestamp", "since when it holds"),
    LakeColumn("valid_to", "timestamp", "until when it held; null while it does"),
)

EVENTS = LakeTable(
    "events",
    "Every event and command as it arrived, credentials masked; what was delivered twice stands twice.",
    (
        LakeColumn("arrived", "timestamp", "when the server, else the broker, received it"),
        LakeColumn("time", "timestamp", "its own time"),
        LakeColumn("kind", "string", "`run`, `job`, `dataset` or `command`"),
        LakeColumn("type", "string", "of a run's event its type, such as `START`; of a command its name"),
        LakeColumn(
            "node", "string",
            "what it is about, as `job:NAMESPACE:NAME` or `dataset:NAMESPACE:NAME`; of a command, null"
            " unless it is about one job",
        ),
        LakeColumn("run", "string", "the UUID of its run"),
        LakeColumn("hash", "binary", "its SHA-256, the same as on the server: equal events have one"),
        LakeColumn("log", "string", "the id of the server's log that it came from, if it came from one"),
        LakeColumn("seq", "bigint", "its place in that log"),
        *_PLACE,
        LakeColumn("body", "string", "the JSON"),
    ),
    ("days(arrived)", f"bucket({BUCKETS}, node)"),
)  # fmt: skip

REFUSED = LakeTable(
    "refused",
    "Records that are no events, and events that no row could be derived from, with the reason; the stream"
    " goes on behind them.",
    (
        LakeColumn("arrived", "timestamp", "when the broker received it"),
        LakeColumn("reason", "string", "why it is no event, or what went wrong"),
        *_PLACE,
        LakeColumn("size", "bigint", "its bytes"),
        LakeColumn("body", "string", "the JSON with credentials masked; null for what is no JSON"),
    ),
    ("days(arrived)",),
)

RUNS = LakeTable(
    "runs",
    "The runs of jobs, by the server's rules.",
    (
        *_JOB,
        LakeColumn("run", "string", "its UUID"),
        LakeColumn("state", "string", "`NEW`, `RUNNING`, `COMPLETED`, `FAILED` or `ABORTED`"),
        LakeColumn("first", "timestamp", "the time of its first event"),
        LakeColumn("started", "timestamp", "when it started"),
        LakeColumn("ended", "timestamp", "when it ended"),
        LakeColumn("inferred", "boolean", "whether the server inferred the end of a silent run"),
        LakeColumn("last", "timestamp", "the time of its last event"),
        LakeColumn("parent", "string", "the run that started it"),
    ),
    (f"bucket({BUCKETS}, node)",),
    ("run",),
)

SCHEMAS = LakeTable(
    "schemas",
    "What each job, or a dataset's own events, reported of the schemas of datasets, and when.",
    (
        _NODE._replace(about="who reported it: a job, or the dataset of a dataset event"),
        *_DATASET,
        *_VALID,
        LakeColumn("fields", "string", "the fields of the schema facet, as JSON"),
    ),
    (f"bucket({BUCKETS}, node)",),
    (*(column.name for column in _DATASET), "valid_from"),
)

EDGES = LakeTable(
    "edges",
    "Which job read or wrote which dataset, and when; an edge that went and came back is two rows.",
    (
        *_JOB,
        *_DATASET,
        LakeColumn("direction", "string", "`input` or `output`"),
        *_VALID,
        LakeColumn(
            "stated",
            "string",
            "the datasets that a `lineage` facet says it is made of, as JSON; null where none says so now",
        ),
    ),
    (f"bucket({BUCKETS}, node)",),
    (*(column.name for column in _DATASET), "direction", "valid_from"),
)

COLUMN_EDGES = LakeTable(
    "column_edges",
    "Which column a job made of which, and when; `field` is `*` where a column decides about whole rows.",
    (
        *_JOB,
        LakeColumn("source_namespace", "string", "the namespace of the dataset it comes from"),
        LakeColumn("source_name", "string", "the name of that dataset"),
        LakeColumn("source_field", "string", "the column there"),
        *_DATASET,
        LakeColumn("field", "string", "the column it leads into"),
        *_VALID,
        LakeColumn("transformations", "string", "what becomes of it, as JSON"),
    ),
    (f"bucket({BUCKETS}, node)",),
    (
        "source_namespace", "source_name", "source_field",
        *(column.name for column in _DATASET), "field", "valid_from",
    ),
)  # fmt: skip

ALIASES = LakeTable(
    "aliases",
    "Which names stand for one thing: symlinks and spellings of a dataset, addresses of a cluster, and a"
    " task job with its parent job.",
    (
        _NODE._replace(about="who reported it: a job, or the dataset of a dataset event"),
        LakeColumn(
            "kind", "string", "`dataset`, `job`, or `namespace` for the address of a cluster"
        ),
        LakeColumn("namespace", "string", "the namespace of the name"),
        LakeColumn("name", "string", "the name; empty for a cluster"),
        LakeColumn("other_namespace", "string", "the other namespace; of a cluster its id"),
        LakeColumn("other_name", "string", "the other name; empty for a cluster"),
    ),
    (f"bucket({BUCKETS}, node)",),
    ("kind", "namespace", "name", "other_namespace", "other_name"),
)

DATASETS = LakeTable(
    "datasets",
    "Every dataset that a job, or a dataset's own events, ever named.",
    (
        _NODE._replace(about="who named it: a job, or the dataset of a dataset event"),
        *_DATASET,
        LakeColumn("first", "timestamp", "the time of the first event that did"),
    ),
    (f"bucket({BUCKETS}, node)",),
    tuple(column.name for column in _DATASET),
)

OWNERS = LakeTable(
    "owners",
    "Who owns a job or a dataset, by what was reported last.",
    (
        _NODE._replace(about="who reported it: a job, or the dataset of a dataset event"),
        LakeColumn("kind", "string", "`job` or `dataset`"),
        LakeColumn("namespace", "string", "its namespace, as it was reported"),
        LakeColumn("name", "string", "its name, as it was reported"),
        LakeColumn("owner", "string", "the owner's name"),
        LakeColumn("edited", "boolean", "whether a person set it on the page, which counts first"),
        LakeColumn("since", "timestamp", "since when it is reported"),
    ),
    (f"bucket({BUCKETS}, node)",),
    ("kind", "namespace", "name", "owner"),
)

_ANALYSED = (
    LakeColumn("analysed", "timestamp", "the moment that it holds for"),
    LakeColumn("since", "timestamp", "the beginning of the period in which use is looked for"),
)

ANALYSED_DATASETS = LakeTable(
    "analysis_datasets",
    "What lies behind each dataset, and whether anybody reads it; written by `lake analyse`, as a whole.",
    (
        *_DATASET,
        LakeColumn("component", "bigint", "the component it belongs to"),
        LakeColumn("jobs", "bigint", "jobs that read it, or something made of it"),
        LakeColumn("datasets", "bigint", "other datasets made of it, directly or behind others"),
        LakeColumn("owners", "bigint", "different owners of those jobs and datasets"),
        LakeColumn("readers", "bigint", "jobs that read it themselves"),
        LakeColumn("unused", "boolean", "whether a job wrote it in the period and none read it"),
        LakeColumn("columns", "bigint", "its columns, as far as they are known"),
        LakeColumn("unused_columns", "bigint", "those of them that no job used in the period"),
        *_ANALYSED,
    ),
    (),
)

ANALYSED_COLUMNS = LakeTable(
    "analysis_columns",
    "What lies behind each column, and whether any job uses it; written by `lake analyse`, as a whole.",
    (
        *_DATASET,
        LakeColumn("field", "string", "the column; one inside another by its path, with dots"),
        LakeColumn("columns", "bigint", "other columns made of it, directly or behind others"),
        LakeColumn("datasets", "bigint", "other datasets with such columns, or whose rows it decides"),
        LakeColumn("jobs", "bigint", "jobs that use it, or something made of it"),
        LakeColumn(
            "unused", "boolean",
            "whether its table was written or read in the period and no job used it; null where a job"
            " that reads the table does not report columns",
        ),
        *_ANALYSED,
    ),
    (f"bucket({BUCKETS}, dataset_name)",),
)  # fmt: skip

ANALYSED_COMPONENTS = LakeTable(
    "analysis_components",
    "The parts of the estate that no edge joins, the largest first; written by `lake analyse`, as a whole.",
    (
        LakeColumn("component", "bigint", "its number; 1 has the most jobs and datasets"),
        LakeColumn("datasets", "bigint", "its datasets"),
        LakeColumn("jobs", "bigint", "its jobs"),
        LakeColumn("columns", "bigint", "their columns, as far as they are known"),
        *_ANALYSED,
    ),
    (),
)

DERIVED = (DATASETS, RUNS, SCHEMAS, EDGES, COLUMN_EDGES, ALIASES, OWNERS)
ANALYSIS = (ANALYSED_DATASETS, ANALYSED_COLUMNS, ANALYSED_COMPONENTS)
TABLES = (EVENTS, REFUSED, *DERIVED, *ANALYSIS)
UNIQUE = "events_unique"
"""The view of `events` with each one once: as it arrived first."""


def unique_sql(events: str) -> str:
    """The query behind `events_unique`, for Spark and for DuckDB."""
    names = ", ".join(EVENTS.names)
    return (
        f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY hash"  # noqa: S608
        " ORDER BY arrived, seq, topic, kafka_partition, kafka_offset) AS copy"
        f" FROM {events}) AS numbered WHERE copy = 1"
    )
