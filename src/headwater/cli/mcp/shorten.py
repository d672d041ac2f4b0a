"""What an assistant needs of each answer of the server: the path, not the facets.

Names and messages were sent by the systems that are watched. They stay members of their own, never
part of a sentence of ours.
"""

from __future__ import annotations

from typing import Any

from headwater.cli.questions.shown_names import column_ends

__all__ = [
    "alerts",
    "audit",
    "changes",
    "dataset",
    "difference",
    "doctor",
    "freshness",
    "impact",
    "job",
    "search",
    "tags",
    "trace",
    "troubles",
    "why",
]

Answer = dict[str, Any]
BLIND = 20
"""Jobs named of those whose columns are not known."""


def search(found: Answer) -> Answer:
    """What fits a text."""
    return {
        "matches": [_kept(one, "kind", "namespace", "name", "field", "tag") for one in found["results"]],
        "complete": not found["truncated"],
    }  # fmt: skip


def trace(found: Answer) -> Answer:
    """The tree, line by line, each with how far it is and how its job stands."""
    nodes = {node["id"]: node for node in found["nodes"]}
    edges = {(e["origin"], e["destination"]): e for e in found["edges"]}
    down = found["direction"] == "down"
    rows = []
    for row in found["rows"]:
        node = nodes[row["node"]]
        line: Answer = {"level": row["level"], "kind": node["kind"], "name": _full(node)}
        if node["kind"] == "job":
            line |= _status(node)
        elif node["kind"] == "column" and row["parent"] is not None:
            ends = found["rows"][row["parent"]]["node"], row["node"]
            over = ends if down else ends[::-1]
            line |= _carried(edges.get(over, {}), nodes)
        rows.append(line | ({"shownElsewhere": True} if row["repeated"] else {}))
    short = {"direction": found["direction"], "rows": rows, "complete": _complete(found)}
    short |= _given(hidden=found.get("hidden")) | _unknown_columns(found)
    return short | ({"columnsKnown": False} if found["columnsKnown"] is False else {})


def why(found: Answer) -> Answer:
    """The verdict and the causes, those that nothing further up explains first."""
    short = _verdict(found)
    short["causes"] = [
        {
            "cause": cause["kind"],
            "kind": _kind(cause["node"]),
            "name": _named(cause["named"]),
            **_given(since=cause["since"], detail=cause["detail"], by=cause.get("by")),
            "explainedByAnotherCause": not cause["root"],
            **({"planned": True} if cause["planned"] else {}),
            "path": [_bare(node) for node in cause["path"]],
            **_given(
                changedShortlyBefore=[
                    {"time": one["time"], "name": _bare(one["node"]), "change": one["text"]}
                    for one in cause["changes"]
                ]
            ),
        }
        for cause in found["causes"]
    ]
    if recent := found.get("recent"):
        short["changedRecently"] = [
            {"time": one["time"], "name": _bare(one["node"]), "change": one["text"]}
            for one in recent
        ]
    if found["inputs"] is not None:
        short["comesFromColumns"] = [
            {
                "name": f"{_named(one)}.{one['field']}",
                **_given(changedAt=one["changedAt"], change=one["change"]),
            }
            for one in found["inputs"]
        ]
    return short | _unknown_columns(found)


def _unknown_columns(found: Answer) -> Answer:
    """Jobs that write the dataset of a column and report no columns: what they bring is not known."""
    jobs = sorted({_bare(one["job"]) for one in found.get("unknown") or ()})
    return {"reportNoColumns": jobs, "complete": False} if jobs else {}


def freshness(found: Answer) -> Answer:
    """The verdict and the jobs that deliver nothing."""
    causes = [
        {
            "job": _named(one["job"]),
            "trouble": one["trouble"],
            **_given(since=one["since"]),
            "explainedByAnotherCause": not one["root"],
        }
        for one in found["causes"]
    ]
    return {**_verdict(found), "causes": causes}


def impact(found: Answer) -> Answer:
    """Who is hit, the worst first, each with the path on which the change comes to it."""
    columns: dict[str, list[str]] = {}
    for one in found["columns"]:
        columns.setdefault(one["effect"], []).append(_column(one))
    jobs = [
        {
            "job": _named(one),
            "effect": one["effect"],
            "why": one["why"],
            **_given(
                owners=[owner["name"] for owner in one["owners"]],
                stops=[_bare(node) for node in one["stops"]],
            ),
            "path": [step for part in one["path"] for step in _step(part)],
        }
        for one in found["jobs"]
    ]
    return {
        "dataset": _bare(found["dataset"]),
        "changes": [_kept(one, "text", "judged") for one in found["changes"]],
        "verdict": found["verdict"],
        "counts": found["counts"],
        "jobs": jobs,
        "columns": columns,
        "coverage": found["coverage"]
        | {"columnsUnknown": found["coverage"].get("columnsUnknown", [])[:BLIND]},
        "complete": not found["truncated"] and found["coverage"]["complete"],
    }


def difference(found: Answer) -> Answer:
    """What appeared, went and changed; kinds of change that there are none of are left out."""
    edges = {
        name: [[_bare(one["origin"]), _bare(one["destination"])] for one in found[member]]
        for name, member in (
            ("edgesAdded", "added"),
            ("edgesRemoved", "removed"),
        )
    }
    edges |= {
        name: [[*column_ends(one)] for one in found[member]]
        for name, member in (
            ("columnEdgesAdded", "columnsAdded"),
            ("columnEdgesRemoved", "columnsRemoved"),
        )
    }
    changed = _given(
        states=found["states"],
        schemas=found["schemas"],
        appeared=found["appeared"],
        vanished=found["vanished"],
        **edges,
    )
    return {
        "from": found["from"],
        "to": found["to"],
        "nothingChanged": not changed,
        **changed,
        **_given(hidden=found["hidden"]),
        "complete": _complete(found),
    }


def dataset(found: Answer) -> Answer:
    """What a dataset is: its columns, who writes and reads it, how fresh it is."""
    columns = [
        f"{one['name']} {one['type'] or ''}".rstrip()
        + (f" [{', '.join(one['tags'])}]" if one.get("tags") else "")
        for one in found["columns"]
    ]
    return {
        "name": _named(found),
        "store": found["store"],
        **_given(description=found.get("description")),
        "freshness": _verdict(found["freshness"]),
        "writtenBy": [{"job": _named(one), **_status(one)} for one in found["producers"]],
        "readBy": [{"job": _named(one), **_status(one)} for one in found["consumers"]],
        "columns": columns,
        **_given(
            alsoCalled=[_named(one) for one in found["aliases"]],
            schemaDisagreements=len(found["findings"]),
        ),
        "complete": not found["truncated"],
    }


def job(found: Answer) -> Answer:
    """What a job is: how its newest run stands, what it reads and writes."""
    return {
        "name": _named(found),
        **_status(found),
        **_given(
            integration=found["integration"],
            processing=found["processing"],
            location=found["location"],
            parent=_named(found["parent"]) if found["parent"] else None,
        ),
        "reads": [_named(one) for one in found["inputs"]],
        "writes": [_named(one) for one in found["outputs"]],
        **_given(parts=[{"job": _named(one), **_status(one)} for one in found["children"]]),
        "downstream": found["affected"],
    }


def troubles(found: Answer) -> Answer:
    """What needs a look now, the newest first, with how much hangs on it."""

    def one(job: Answer, **more: Any) -> Answer:
        return {"job": _named(job), **_status(job), "downstream": job["affected"], **more}

    return {
        "now": found["now"],
        "jobs": found["jobs"],
        "datasets": found["datasets"],
        "failed": [one(job) for job in found["troubles"]["jobs"]],
        "late": [one(job, **_kept(job, "usualSeconds", "silentSeconds")) for job in found["stale"]],
        "fallsBehind": [
            one(job, reads=_named(job["dataset"]), **_kept(job, "lag", "lagBefore", "since"))
            for job in found.get("lagging", ())
        ],
        "complete": not found["troubles"]["truncated"],
    }


def changes(found: Answer) -> Answer:
    """The newest changes of what jobs read and write, and of schemas."""
    return {
        "now": found["now"],
        "changes": [
            {
                "time": one["time"],
                "change": one["change"],
                "name": _named(one.get("job") or one["dataset"]),
                **_given(
                    added=[_end(end) for end in one["added"]],
                    removed=[_end(end) for end in one["removed"]],
                ),
            }
            for one in found["changes"]
        ],
    }


def tags(found: Answer) -> Answer:
    """The tags of columns, each with the way it took, and where masking stops them."""

    def column(one: Answer) -> str:
        return _named(one) + (f".{one['field']}" if one["field"] else "")

    return {
        "columns": [
            {
                "tag": one["tag"],
                "column": column(one),
                "setHere": one["set"],
                # Of a tag that was set here, the path is the column itself.
                **_given(path=[] if one["set"] else [column(step) for step in one["path"]]),
            }
            for one in found["columns"]
        ],
        "stoppedByMasking": [
            {
                "tag": one["tag"],
                "from": column(one["source"]),
                "into": column(one["target"]),
                "by": [_bare(job) for job in one["jobs"]],
            }
            for one in found["stopped"]
        ],
        **_given(
            reportNoColumns=[
                {
                    "job": _bare(one["job"]),
                    "from": _bare(one["origin"]),
                    "into": _bare(one["destination"]),
                }
                for one in found["unknown"]
            ]
        ),
        "complete": not found["truncated"] and not found["unknown"],
    }


def doctor(found: Answer) -> Answer:
    """Datasets that are almost surely one under two names, with the evidence, and what else is doubtful."""
    return {
        "pairs": [
            {
                "alias": _named(one["alias"]),
                "dataset": _named(one["dataset"]),
                "score": one["score"],
                "why": [reason["text"] for reason in one["evidence"]],
            }
            for one in found["pairs"]
        ],
        "findings": [
            {
                "kind": one["kind"],
                **_given(of=one["named"] and _named(one["named"]), since=one["since"]),
                "detail": one["text"],
                "count": one["count"],
            }
            for one in found["findings"]
        ],
        "counts": found["counts"],
        **_given(hidden=found["hidden"]),
        "complete": _complete(found),
    }


def audit(found: Answer) -> Answer:
    """Where data came from, which jobs and how many of their runs touched it, and who had it."""

    def job(one: Answer) -> Answer:
        newest = one["runs"][0] if one["runs"] else {}
        return {
            "job": _named(one),
            "distance": one["distance"],
            "runs": one["runCount"],
            **_given(lastState=newest.get("state"), lastRun=newest.get("id")),
            **_given(owners=[owner.get("name") for owner in one["owners"]]),
        }

    return {
        "from": found["since"],
        "to": found["until"],
        "sources": [_bare(one) for one in found["sources"] if one != found["node"]],
        "upstream": [
            {"dataset": _named(one), "distance": one["distance"], "schemas": len(one["schemas"])}
            for one in found["upstream"]
        ],
        "writtenBy": [job(one) for one in found["writers"]],
        "downstream": [_named(one) for one in found["downstream"]],
        "readBy": [job(one) for one in found["readers"]],
        **_given(hidden=found["hidden"]),
        "complete": _complete(found),
    }


def alerts(found: Answer) -> Answer:
    """What is open and what was over last, with the rules that say so."""

    def incident(one: Answer) -> Answer:
        return {
            "title": one["title"],
            "of": _named(one["subject"]),
            "since": one["since"],
            **_given(over=one["resolvedAt"], detail=one["detail"], owners=one["owners"]),
            "downstream": one["affected"],
            "rules": one["rules"],
        }

    return {
        "rules": [f"{rule['name']}: {rule['when']}" for rule in found["rules"]],
        "open": [incident(one) for one in found["open"]],
        "resolved": [incident(one) for one in found["resolved"]],
        "complete": not found["truncated"],
    }


def _given(**members: Any) -> Answer:
    """Those members that say something."""
    return {name: value for name, value in members.items() if value not in (None, "", [], 0)}


def _kept(found: Answer, *names: str) -> Answer:
    return {name: found[name] for name in names if found.get(name) not in (None, "")}


def _verdict(found: Answer) -> Answer:
    short = {"verdict": found["verdict"]}
    short |= _given(since=found["since"], lastWrittenAt=found["lastWrittenAt"])
    short |= _given(lastWrittenFrom=found.get("lastWrittenFrom"))
    short |= _given(hidden=found.get("hidden"))
    return short | {"complete": _complete(found)}


def _complete(found: Answer) -> bool:
    """Whether nothing was cut off, and nothing hidden from the token."""
    return not found["truncated"] and not found.get("hidden")


def _status(job: Answer) -> Answer:
    state = (job.get("planned") or job["state"]).upper()
    deleted = job.get("deleted")
    return {"state": state, **_given(since=job["since"], deleted=deleted, error=job["error"])}


def _named(one: Answer) -> str:
    return f"{one['namespace']}:{one['name']}"


def _full(node: Answer) -> str:
    return _named(node) + (f".{node['field']}" if node["kind"] == "column" else "")


def _kind(node: str) -> str:
    return node.partition(":")[0]


def _bare(node: str) -> str:
    """A node's id without its kind: what a person would type."""
    return node.partition(":")[2]


def _how(transformations: list[Answer]) -> list[str]:
    return sorted({str(one["subtype"] or one["type"] or "").lower() for one in transformations})


def _carried(edge: Answer, nodes: dict[str, Answer]) -> Answer:
    """How a column comes into the one above it in the tree, and by which jobs."""
    jobs = [nodes[job] for job in edge.get("jobs", ()) if job in nodes]
    return _given(
        how=[one for one in _how(edge.get("how", [])) if one],
        by=[{"job": _named(one), **_status(one)} for one in jobs],
        maskedBy=[_named(nodes[one]) for one in edge.get("maskedBy", ()) if one in nodes],
    )


def _column(one: Answer) -> str:
    return _bare(one["dataset"]) + (f".{one['column']}" if one["column"] else "")


def _step(part: Answer) -> list[str]:
    how = ", ".join(_how(part["transformations"]))
    return [_column(part), _bare(part["job"]) + (f" ({how})" if how else "")]


def _end(end: Any) -> str:
    """A dataset that a job began or ceased to use, or a column."""
    return end if isinstance(end, str) else f"{end['direction']} {_named(end)}"
