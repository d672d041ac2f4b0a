"""What each route is for, what it takes and what it answers: the matter of the OpenAPI page."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ROUTES", "Route"]

Parameter = tuple[str, dict[str, Any]]


class Route(NamedTuple):
    """One call: a line of text, its query, the schema of its body and of its answer."""

    summary: str
    query: tuple[Parameter, ...] = ()
    body: str = ""
    answer: str = "Any"
    status: tuple[int, ...] = (200,)
    media: str = "application/json"
    required: tuple[str, ...] = ()


def text(name: str, *options: str, example: str = "") -> Parameter:
    """A parameter that is text, or one of some words."""
    schema: dict[str, Any] = {"type": "string"}
    if options:
        schema["enum"] = list(options)
    if example:
        schema["example"] = example
    return name, schema


def number(name: str, default: int, low: int = 0) -> Parameter:
    """A parameter that is a whole number."""
    return name, {"type": "integer", "minimum": low, "default": default}


def moment(name: str) -> Parameter:
    """A parameter that is a time."""
    return name, {"type": "string", "format": "date-time"}


PAGE = (number("limit", 100), number("offset", 0))
NODE = text("node", example="job:shop:load")
NODE_ID = text("nodeId", example="job:shop:load")
NAMESPACE = "/api/v1/namespaces/{namespace}"
DATASET = NAMESPACE + "/datasets/{dataset}"
JOB = NAMESPACE + "/jobs/{job}"
RUN = "/api/v1/jobs/runs/{id}"
DATASET2 = "/api/v2/datasets/{namespace}/{dataset}"
JOB2 = "/api/v2/jobs/{namespace}/{job}"
PERIOD = (text("period", "DAY", "WEEK"), text("timezone", example="UTC"))
STATES = text("lastRunStates", example="RUNNING,FAILED")
AT = (moment("at"),)

ROUTES: dict[str, Route] = {
    "POST /api/v1/lineage": Route("Send one OpenLineage event", body="Event", status=(201,)),
    "GET /api/v1/lineage": Route(
        "Jobs and datasets around a node", (NODE_ID, number("depth", 20)), answer="Graph",
        required=("nodeId",),
    ),
    "GET /api/v1/column-lineage": Route(
        "Columns upstream of a node, and downstream if asked",
        (NODE_ID, number("depth", 20), ("withDownstream", {"type": "boolean", "default": False})),
        answer="Graph", required=("nodeId",),
    ),
    "GET /api/v1/runlineage/upstream": Route(
        "The runs that made what a run read",
        (text("runId", example="00000000-0000-4000-8000-000000000001"), number("depth", 10)),
        answer="Runs", required=("runId",),
    ),
    "GET /api/v1/events/lineage": Route(
        "Events as they were sent",
        (moment("before"), moment("after"), text("sortDirection", "asc", "desc"), *PAGE),
        answer="Events",
    ),
    "GET /api/v1/events": Route("The same as /events/lineage", PAGE, answer="Events"),
    "GET /api/v1/search": Route(
        "Jobs and datasets by name",
        (text("q", example="load"), text("filter", "DATASET", "JOB"),
         text("sort", "NAME", "UPDATE_AT"), number("limit", 10), text("namespace"),
         moment("before"), moment("after")),
        answer="Results", required=("q",),
    ),
    "GET /api/v1/namespaces": Route("Every namespace", PAGE, answer="Namespaces"),
    f"GET {NAMESPACE}": Route("One namespace", answer="Namespace"),
    f"PUT {NAMESPACE}": Route("Set owner and description", body="PutNamespace", answer="Namespace"),
    f"DELETE {NAMESPACE}": Route("Hide a namespace and what is in it", answer="Namespace"),
    "GET /api/v1/sources": Route("Every source", PAGE, answer="Sources"),
    "GET /api/v1/sources/{source}": Route("One source", answer="Source"),
    "PUT /api/v1/sources/{source}": Route("Describe a source", body="PutSource", answer="Source"),
    f"GET {NAMESPACE}/datasets": Route("The datasets of a namespace", PAGE, answer="Datasets"),
    f"GET {DATASET}": Route("One dataset", answer="Dataset"),
    f"PUT {DATASET}": Route("Describe a dataset", body="PutDataset", answer="Dataset"),
    f"DELETE {DATASET}": Route("Hide a dataset", answer="Dataset"),
    f"GET {DATASET}/versions": Route("A dataset's versions", PAGE, answer="Versions"),
    f"GET {DATASET}/versions/{{version}}": Route("One version of a dataset"),
    f"POST {DATASET}/tags/{{tag}}": Route("Tag a dataset", answer="Dataset", status=(201,)),
    f"DELETE {DATASET}/tags/{{tag}}": Route("Take a tag off a dataset", answer="Dataset"),
    f"POST {DATASET}/fields/{{field}}/tags/{{tag}}": Route(
        "Tag a column", answer="Dataset", status=(201,)
    ),
    f"DELETE {DATASET}/fields/{{field}}/tags/{{tag}}": Route(
        "Take a tag off a column", answer="Dataset"
    ),
    "GET /api/v1/jobs": Route("Every job, the latest first", (STATES, *PAGE), answer="Jobs"),
    f"GET {NAMESPACE}/jobs": Route("The jobs of a namespace", (STATES, *PAGE), answer="Jobs"),
    f"GET {JOB}": Route("One job", answer="Job"),
    f"PUT {JOB}": Route("Describe a job", body="PutJob", answer="Job"),
    f"DELETE {JOB}": Route("Hide a job", answer="Job"),
    f"GET {JOB}/versions": Route("A job's versions", PAGE, answer="Versions"),
    f"GET {JOB}/versions/{{version}}": Route("One version of a job"),
    f"GET {JOB}/runs": Route("A job's runs", PAGE, answer="Runs"),
    f"POST {JOB}/runs": Route("Announce a run", body="PostRun", answer="Run", status=(201,)),
    f"POST {JOB}/tags/{{tag}}": Route("Tag a job", answer="Job", status=(201,)),
    f"DELETE {JOB}/tags/{{tag}}": Route("Take a tag off a job", answer="Job"),
    f"GET {RUN}": Route("One run", answer="Run"),
    f"GET {RUN}/facets": Route("A run's facets", (text("type", "run", "job"),)),
    **{
        f"POST {RUN}/{verb}": Route(f"Mark a run: {verb}", AT, answer="Run")
        for verb in ("start", "complete", "fail", "abort")
    },
    "GET /api/v1/tags": Route("Every tag", PAGE, answer="Tags"),
    "PUT /api/v1/tags/{name}": Route("Describe a tag", body="PutTag", answer="Tag"),
    **{
        f"GET /api/v1/stats/{what}": Route(f"{what} over time", PERIOD, answer="Intervals")
        for what in ("lineage-events", "jobs", "datasets", "sources")
    },
    **{
        f"GET /api/v2beta/search/{what}": Route(
            f"Search {what}", (text("q", example="load"),), answer="Hits", required=("q",)
        )
        for what in ("jobs", "datasets")
    },
    "GET /api/v2/health": Route("Is the server up?", answer="Health", status=(200,)),
    "GET /api/v2/metrics": Route("Figures for Prometheus", media="text/plain"),
    "GET /api/v2/openapi.json": Route("This description"),
    "GET /api/docs": Route("This description, to be read", media="text/html"),
    "POST /api/v2/events": Route(
        "Send many events: a JSON array, or one a line", body="EventList", answer="Batch",
        status=(201, 207, 422),
    ),
    "GET /api/v2/events": Route(
        "The log by cursor",
        (number("after", 0), number("before", 0), number("limit", 100, 1), text("job"),
         text("run"), text("type", example="START,FAIL"), moment("since"), moment("until")),
        answer="Log",
    ),
    "POST /api/v2/flow": Route("Send samples of what flows", body="Samples", status=(202, 422)),
    "GET /api/v2/flow": Route("What flows now, or in one run", (text("run"), moment("since"))),
    "GET /api/v2/live": Route(
        "Server-sent events: what changes", (number("after", 0),), media="text/event-stream"
    ),
    "GET /api/v2/graph": Route(
        "The graph around a node, now or at a moment",
        (NODE, number("depth", 3), number("limit", 300, 1), *AT), answer="Around",
        required=("node",),
    ),
    "GET /api/v2/graph/diff": Route(
        "What changed around a node between two moments",
        (NODE, moment("from"), moment("to"), number("depth", 3), number("limit", 300, 1)),
        answer="Changed", required=("node", "from"),
    ),
    "GET /api/v2/evidence": Route(
        "Why an edge is drawn",
        (text("origin", example="job:shop:load"),
         text("destination", example="dataset:s3://lake:orders")),
        answer="Evidence", required=("origin", "destination"),
    ),
    f"GET {DATASET2}/history": Route(
        "Each schema a dataset has had",
        (number("limit", 30, 1), moment("before")), answer="VersionPage",
    ),
    f"GET {DATASET2}/schema/diff": Route(
        "The schema at two moments", (moment("from"), moment("to")), required=("from",)
    ),
    f"GET {DATASET2}/freshness": Route(
        "Is it up to date, and if not, why?", (number("depth", 20, 1),), answer="Freshness"
    ),
    f"GET {DATASET2}/runs": Route(
        "The runs that read or wrote a dataset",
        (text("direction", "input", "output"), number("limit", 50, 1), text("before")),
        answer="RunPage",
    ),
    f"GET {JOB2}/runs": Route(
        "A job's runs on a time line", (number("limit", 50, 1), text("before")), answer="RunPage"
    ),
    "GET /api/v2/runs/{id}": Route("One run with its family", answer="Run"),
    "POST /api/v2/runs/{id}/abort": Route("Close a run by hand", answer="Run"),
    "GET /api/v2/aliases": Route(
        "Names that stand for datasets",
        (number("limit", 100, 1), text("afterNamespace"), text("afterName")), answer="Aliases",
    ),
    "POST /api/v2/aliases": Route("Declare an alias", body="PostAlias", status=(201,)),
    "POST /api/v2/purge": Route(
        "Delete for good: a job, a dataset or a namespace, and every event that names it",
        body="PostPurge", answer="Purged",
    ),
    "GET /api/v2/overview": Route("Counts, troubles and changes"),
    "GET /api/v2/map": Route(
        "The graph as the page draws it",
        (NODE, text("namespace"), number("depth", 2), number("limit", 300, 1), *AT,
         moment("from"), moment("to")),
    ),
    "GET /api/v2/columns": Route(
        "Columns and how they come about",
        (text("node", example="dataset:s3://lake:orders"), number("depth", 20, 1), *AT),
        required=("node",),
    ),
    f"GET {DATASET2}": Route("One dataset as its page shows it", answer="Dataset"),
    f"GET {JOB2}": Route("One job as its page shows it"),
    "GET /api/v2/connectors": Route("Every connector", (number("limit", 500, 1),)),
    "GET /api/v2/search": Route(
        "Names, columns and tags",
        (text("q", example="load"), text("kind"), number("limit", 30, 1)), required=("q",),
    ),
}  # fmt: skip
