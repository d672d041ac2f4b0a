"""The questions that assistants may ask: a tool is one declaration here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.cli.mcp import pages, shorten
from headwater.cli.mcp.declare import Tool, ToolParameter
from headwater.cli.questions.times import moment, until
from headwater.errors import UsageError
from headwater.insight import CHANGE_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["TOOLS"]

HOW_TO_NAME = "NAMESPACE:NAME, or NAME where it is the only one of that name; leading parts of a name may be left out"
DATASET = ToolParameter(
    "dataset", f"A dataset, not a column: {HOW_TO_NAME}.", required=True, names="dataset"
)
DATASET_OR_COLUMN = ToolParameter(
    "dataset", f"A dataset: {HOW_TO_NAME}. `.COLUMN` behind it asks for a column.",
    required=True, names="column",
)  # fmt: skip
SHORT = {"type": "string", "minLength": 1, "maxLength": 1_000}
TIME = "RFC 3339, such as 2026-01-31T12:00:00Z, a date, how long ago (90m, 2d), or now"


def _depth(about: str, least: int = 1) -> ToolParameter:
    return ToolParameter("depth", about, {"type": "integer", "minimum": least, "maximum": 50})


def _check_impact(given: Mapping[str, Any]) -> None:
    changes = given.get("changes")
    if (changes is None) == ("schema" not in given):
        raise UsageError(
            "say what changes: either changes, or schema with the fields it is to have"
        )
    for one in changes or ():
        kind, more = one["kind"], sorted(one.keys() - {"kind", *CHANGE_MEMBERS[one["kind"]]})
        if more:
            raise UsageError(f"changes of the kind {kind} have no {' and no '.join(more)}")
        if kind == "delete" and len(changes or ()) > 1:
            raise UsageError("with delete nothing else can change")


def _check_diff(given: Mapping[str, Any]) -> None:
    if "depth" in given and "around" not in given:
        raise UsageError("depth says how far around goes: it needs around, a dataset")


_ALL = (
    Tool(
        "find",
        "Find datasets, jobs, columns or tags by a part of their name. Start here when a name is not known.",
        "GET /api/v2/search",
        (
            ToolParameter("text", "A part of the name.", required=True, sent="q"),
            ToolParameter(
                "kind",
                "Only these.",
                {"type": "string", "enum": ["dataset", "job", "column", "tag"]},
            ),
        ),
        shorten.search,
        page="/",
        sought="text",
    ),
    Tool(
        "dataset",
        "What a dataset (topic, table, files) is: columns, who writes and reads it, how fresh it is.",
        "GET /api/v2/datasets/{namespace}/{name}",
        (DATASET,),
        shorten.dataset,
    ),
    Tool(
        "job",
        "What a job (connector, stream, batch) is: the state of its newest run, its error, what it reads"
        " and writes, how much lies downstream.",
        "GET /api/v2/jobs/{namespace}/{name}",
        (ToolParameter("job", "A job: NAMESPACE:NAME, or NAME.", required=True, names="job"),),
        shorten.job,
        page="/jobs/{namespace}/{name}",
    ),
    Tool(
        "trace",
        "Where a dataset or a column comes from (up), or where it goes (down), as a tree: `level` is how far"
        " a line is from the start, and a line belongs to the nearest line above with a lower level.",
        "GET /api/v2/trace?node={node}",
        (
            DATASET_OR_COLUMN,
            ToolParameter(
                "direction", "up if left out.", {"type": "string", "enum": ["up", "down"]}
            ),
            _depth("How many jobs far; 20 if left out."),
            ToolParameter("at", f"As it was then: {TIME}.", read=until),
            ToolParameter(
                "indirect",
                "Of a column, also columns that only decide which rows there are; false if left out.",
                {"type": "boolean"},
            ),
        ),
        shorten.trace,
        page=pages.graph_of_trace,
    ),
    Tool(
        "why",
        "Is a dataset up to date, and if not, why: failed, aborted, late or lagging jobs, broken schemas and"
        " failed checks upstream, with the error, the path and what changed shortly before. Of a column, also"
        " which of the columns it comes from changed last.",
        "GET /api/v2/datasets/{namespace}/{name}/why?column={field}",
        (DATASET_OR_COLUMN,),
        shorten.why,
        page=pages.why,
    ),
    Tool(
        "freshness",
        "Only whether a dataset is live, fresh or stale, since when, and because of which jobs.",
        "GET /api/v2/datasets/{namespace}/{name}/freshness",
        (DATASET,),
        shorten.freshness,
    ),
    Tool(
        "impact",
        "Who is hit if a dataset changes: what breaks, what changes or gets other rows behind it, what hands"
        " the change on, and what nobody can tell (unknown is never unaffected).",
        "POST /api/v2/impact?node={dataset}",
        (
            DATASET,
            ToolParameter(
                "changes",
                "What changes; `to` is the new name or the new type. Either this or `schema`.",
                {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 100,
                    "items": {
                        "type": "object",
                        "properties": {
                            "kind": {
                                "type": "string",
                                "enum": list(CHANGE_MEMBERS),
                            },
                            "column": SHORT,
                            "to": SHORT,
                        },
                        "required": ["kind"],
                        "additionalProperties": False,
                    },
                },
            ),
            ToolParameter(
                "schema",
                "Instead of changes: all fields that the dataset is to have. They are compared with those it has now.",
                {
                    "type": "array",
                    "maxItems": 2_000,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": SHORT,
                            "type": {"type": "string", "maxLength": 1_000},
                            "nullable": {"type": "boolean"},
                        },
                        "required": ["name", "type"],
                        "additionalProperties": False,
                    },
                },
            ),
        ),
        shorten.impact,
        page=pages.impact,
        check=_check_impact,
    ),
    Tool(
        "diff",
        "What changed between two moments, in the whole estate or around a dataset: jobs, datasets, edges,"
        " columns, schemas and states that appeared, went or changed.",
        "GET /api/v2/graph/diff?node={dataset}",
        (
            ToolParameter("from", f"{TIME}.", required=True, read=moment),
            ToolParameter("to", f"{TIME}; now if left out.", read=until),
            ToolParameter("around", f"Only around this dataset: {HOW_TO_NAME}.", names="dataset"),
            _depth(
                "With around, how many jobs beyond its own readers and writers; 3 if left out.", 0
            ),
        ),
        shorten.difference,
        page=pages.difference,
        check=_check_diff,
    ),
    Tool(
        "tags",
        "Which tags (such as pii) the columns of a dataset have: set on them, or brought along from the columns"
        " they are made of, with the path; and where masking stops them.",
        "GET /api/v2/datasets/{namespace}/{name}/tags?column={field}",
        (DATASET_OR_COLUMN,),
        shorten.tags,
    ),
    Tool(
        "tag",
        "Where a tag (such as pii) gets to: the columns on which it was set, those made of them, each with the"
        " path; and where masking stops it.",
        "GET /api/v2/tags/{tag}",
        (ToolParameter("tag", "The tag.", required=True),),
        shorten.tags,
        page="/",
    ),
    Tool(
        "audit",
        "Where a dataset or a column came from in a period, which jobs touched it with how many runs, and who"
        " had it downstream. The page has every run, configuration, schema and code location, to print.",
        "GET /api/v2/datasets/{namespace}/{name}/audit?column={field}",
        (
            DATASET_OR_COLUMN,
            ToolParameter("from", f"{TIME}; the first record kept if left out.", read=moment),
            ToolParameter("to", f"{TIME}; now if left out.", read=until),
        ),
        shorten.audit,
        page="/datasets/{namespace}/{name}/audit?column={field}&from={from}&to={to}",
    ),
    Tool(
        "doctor",
        "Datasets that are almost surely one under two names, with evidence and a score, and what else makes"
        " answers doubtful: producers that disagree, silent producers, clocks that are off, refused events.",
        "GET /api/v2/doctor",
        (),
        shorten.doctor,
        page="/doctor",
    ),
    Tool(
        "alerts",
        "The incidents that alert rules found: what is open, since when, what lies downstream, and what is over.",
        "GET /api/v2/alerts",
        (),
        shorten.alerts,
        page="/",
    ),
    Tool(
        "troubles",
        "What fails or is late now, with the error and how much lies downstream; jobs by state.",
        "GET /api/v2/overview",
        (),
        shorten.troubles,
        page="/",
    ),
    Tool(
        "recent_changes",
        "The newest changes of what jobs read and write, and of schemas.",
        "GET /api/v2/overview",
        (),
        shorten.changes,
        page="/",
    ),
)
TOOLS = {tool.name: tool for tool in _ALL}
