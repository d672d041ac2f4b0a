"""Who is hit when a dataset changes: what breaks, what changes downstream, and what is unknown."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec

from headwater import insight
from headwater.insight import CHANGE_MEMBERS, Effect, PlannedChange, planned_change
from headwater.lineage.conversion import converter
from headwater.lineage.schema import Field, Schema, diff, normal, topic_schema
from headwater.server.api import describe
from headwater.server.api.lookup import dataset_node, has_column, kind_of
from headwater.server.api.missing_columns import check_column
from headwater.server.api.types import Object
from headwater.server.http import bad_member
from headwater.server.routing import Routes
from headwater.server.store.read.column_readers import StoredColumnReaders
from headwater.server.store.read.evidence import ReportedItems
from headwater.server.store.read.observed import read_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.insight import Impact, Leg, Struck
    from headwater.server.http import Request
    from headwater.server.store.entities import Dataset, Job, Node
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

JOBS = 500
COLUMNS = 2_000
CHANGES = 500
STOPPED = 50
EVIDENCE = 3
_field_list = converter(tuple[Field, ...])
EffectName = Literal["breaks", "changes", "rows", "unknown", "carries", "unaffected"]


class _To(TypedDict, total=False):
    column: str
    to: str


class PostChange(_To):
    """One change; `to` is the new name, or the new type. Beside `delete` there is no other."""

    kind: Literal["drop", "rename", "type", "delete"]


class _Changes(TypedDict, total=False):
    changes: list[PostChange]
    schema: list[Object]
    before: list[Object]
    part: Literal["value", "key"]


class PostImpact(_Changes):
    """A dataset, and either changes of it or the fields that its schema is to have.

    The schema is compared with the dataset's own, or with `before`. A field has a name and a type, and if need be `fields`, `nullable`, `default` and `aliases`.
    `part` says which half of a topic's records the schema is of.
    """

    node: str


class JudgedChange(TypedDict):
    """A change as it was judged.

    One that nobody can be hit by, such as a new column or the type that a column has, is not.
    """

    kind: str
    column: str
    to: str | None
    text: str
    judged: bool


class ImpactStep(TypedDict):
    """One step of a path: a column that a job reads, and the dataset it writes then."""

    dataset: str
    column: str | None
    job: str
    target: str | None
    transformations: list[Object]
    evidence: list[Object]


class HitJob(TypedDict):
    """A job that a change reaches: how, why, and on which path."""

    id: str
    namespace: str
    name: str
    integration: str
    type: str
    effect: EffectName
    change: str
    why: str
    owners: list[Object]
    stops: list[str]
    path: list[ImpactStep]


class HitColumn(TypedDict):
    """A column that a change reaches; none for the dataset as a whole, or its rows."""

    dataset: str
    column: str | None
    effect: EffectName
    change: str


class Coverage(TypedDict):
    """How much of the answer is known.

    Of `jobs` that read a dataset on the way, the columns of `columnsKnown` are known, and those of
    `columnsUnknown` are not. What is not `complete` was cut, or partly `hidden` from a limited token: there is more behind.
    """

    jobs: int
    columnsKnown: int
    columnsUnknown: list[str]
    complete: bool
    hidden: int
    """Jobs and datasets behind it that a limited token cannot see: each counts as unknown."""


class ImpactAnswer(TypedDict):
    """Who is hit, the worst first; `verdict` is the worst of it."""

    dataset: str
    changes: list[JudgedChange]
    verdict: EffectName
    counts: dict[str, int]
    jobs: list[HitJob]
    columns: list[HitColumn]
    unaffected: list[str]
    coverage: Coverage
    truncated: bool


@api.route("POST", "/api/v2/impact", role="read", body=PostImpact, answer=ImpactAnswer)
def impact(view: View, request: Request) -> dict[str, Any]:
    """Who is hit when columns of a dataset are dropped, renamed or retyped, or when it is deleted.

    Jobs and columns that nobody can judge are `unknown`, never `unaffected`.
    """
    body = request.json()
    dataset = _dataset(view, body)
    readers = StoredColumnReaders(view)
    _check_members(body)
    if "schema" in body:
        judged, others = _of_schema(view, dataset, body)
    else:
        judged, others = _listed(view, dataset, body, readers.types([dataset.node]))
    more = len(judged) > CHANGES or len(others) > CHANGES
    judged, others = judged[:CHANGES], others[:CHANGES]
    found = insight.impact(readers, dataset.node, judged, more=more)
    return {
        "dataset": describe.dataset_id(dataset),
        "changes": [*map(_change, judged), *others],
        **_answer(view, dataset, found),
    }


def _check_members(body: dict[str, Any]) -> None:
    """Refuse members of which one would be passed over."""
    if "schema" in body and "changes" in body:
        raise bad_member("schema", "cannot be given beside changes: it stands for all of them")
    for member in ("before", "part"):
        if member in body and "schema" not in body:
            raise bad_member(member, "is of a schema, and none is given")
    if body.get("part", "value") not in ("value", "key"):
        raise bad_member("part", "must be value or key")


def _dataset(view: View, body: dict[str, Any]) -> Dataset:
    node = body.get("node")
    if not isinstance(node, str):
        raise bad_member("node", "must be the id of a dataset, such as dataset:s3://lake:orders")
    kind, rest = kind_of(node)
    if kind != "dataset":
        raise bad_member("node", "must be a dataset")
    found = dataset_node(view, rest)
    return view.datasets([found.root])[found.root]


def _listed(
    view: View, dataset: Dataset, body: dict[str, Any], types: Mapping[Node, Mapping[str, str]]
) -> tuple[list[PlannedChange], list[JudgedChange]]:
    """The changes that are listed: those that somebody can be hit by, and the rest."""
    given = body.get("changes")
    if not isinstance(given, list) or not given:
        raise bad_member("changes", "must be a list of changes, or schema the fields it is to have")
    if len(given) > CHANGES:
        raise bad_member("changes", f"must be at most {CHANGES}")
    gone = {
        item["column"]
        for item in given
        if isinstance(item, dict)
        and item.get("kind") in ("drop", "rename")
        and isinstance(item.get("column"), str)
    }
    listed = _consistent([_one(view, dataset, item, gone) for item in given])
    held = types.get(dataset.node, {})
    same = [one for one in listed if _changes_nothing(one, held)]
    return [one for one in listed if one not in same], [_unchanged(one) for one in same]


def _one(view: View, dataset: Dataset, item: Any, gone: set[str]) -> PlannedChange:
    named = item.get("kind") if isinstance(item, dict) else None
    kind = next((one for one in CHANGE_MEMBERS if one == named), None)
    if kind is None:
        raise bad_member("changes", f"must each be of a kind: {', '.join(CHANGE_MEMBERS)}")
    others = sorted(item.keys() - {"kind", *CHANGE_MEMBERS[kind]})
    more = [name for name in others if item[name] != ""]  # as the page's form leaves them
    if more:
        raise bad_member("changes", f"of the kind {kind} have no {' and no '.join(more)}")
    if kind == "delete":
        return PlannedChange("delete")
    column, to = item.get("column"), item.get("to", "")
    if not isinstance(column, str) or not column:
        raise bad_member("changes", "must each name a column")
    if not isinstance(to, str) or (kind != "drop" and not to):
        raise bad_member("changes", "must say what it becomes (to)")
    check_column(view, dataset, column)
    if kind == "rename" and to not in gone and has_column(view, dataset, to):
        raise bad_member("changes", f"would rename {column} to {to}, which is there already")
    return PlannedChange(kind, column, to)


def _consistent(given: list[PlannedChange]) -> list[PlannedChange]:
    """Each change once; 422 where two of them cannot both be made."""
    listed = list({(one.kind, one.column, _target(one)): one for one in reversed(given)}.values())
    columns: dict[str, list[PlannedChange]] = defaultdict(list)
    inside: dict[str, list[PlannedChange]] = defaultdict(list)
    names: dict[str, PlannedChange] = {}
    for one in reversed(listed):
        if one.kind == "delete" and len(listed) > 1:
            raise bad_member(
                "changes", "can hold nothing beside delete: the dataset goes as a whole"
            )
        against = [other for other in columns[one.column] if _contradicts(one, other)]
        around = [one.column[:end] for end, sign in enumerate(one.column) if sign == "."]
        against += [other for name in around for other in columns[name] if _takes_away(other, one)]
        against += [other for other in inside[one.column] if _takes_away(one, other)]
        if one.kind == "rename" and one.to in names:
            against.append(names[one.to])
        if against:
            raise bad_member(
                "changes", f"contradict each other: {_text(against[0])}, and {_text(one)}"
            )
        columns[one.column].append(one)
        for name in around:
            inside[name].append(one)
        if one.kind == "rename":
            names[one.to] = one
    return listed[::-1]


def _target(one: PlannedChange) -> str:
    return normal(one.to) if one.kind == "type" else one.to


def _contradicts(one: PlannedChange, other: PlannedChange) -> bool:
    """Whether one column cannot take both changes: it may get a new name and a new type."""
    return one.kind == other.kind or "drop" in (one.kind, other.kind)


def _takes_away(outer: PlannedChange, inner: PlannedChange) -> bool:
    """Whether a column that changes with all that is in it leaves nothing to change there."""
    return outer.kind in ("drop", "type") and inner.kind in ("rename", "type")


def _changes_nothing(one: PlannedChange, types: Mapping[str, str]) -> bool:
    """Whether a column is to have the name or the type that it has."""
    if one.kind == "type":
        held = types.get(one.column, "")
        return bool(held) and normal(held) == normal(one.to)
    return one.kind == "rename" and one.column == one.to


def _unchanged(one: PlannedChange) -> JudgedChange:
    word = "called" if one.kind == "rename" else "of type"
    text = f"{one.column} is {word} {one.to} already"
    return {"kind": one.kind, "column": one.column, "to": one.to, "text": text, "judged": False}


def _of_schema(
    view: View, dataset: Dataset, body: dict[str, Any]
) -> tuple[list[PlannedChange], list[JudgedChange]]:
    """What a new schema changes: what somebody can be hit by, and the rest."""
    held = dataset.state.facets.get("schema")
    bodies = view.bodies([held[0]] if held else [])
    known = _fields(body, "before") if "before" in body else None
    current = known or read_schema(bodies.get(held[0]) if held else None)
    if known is None and not current.fields:
        raise bad_member("schema", "cannot be compared: no schema of the dataset is known")
    new = _fields(body, "schema")
    facets = describe.Facets(view, [dataset.state.facets], "catalog", "storage")
    if describe.store_of(dataset, facets) == "kafka":
        half = "key" if body.get("part") == "key" else "value"
        current = _topic_half(current, half) if known is None else _of_half(current, half)
        new = _of_half(new, half)
    judged: list[PlannedChange] = []
    others: list[JudgedChange] = []
    for one in diff(current, new):
        change = planned_change(one)
        if change is not None:
            judged.append(change)
            continue
        about: JudgedChange = {
            "kind": one.kind,
            "column": one.path,
            "to": one.new or None,
            "text": str(one),
            "judged": False,
        }
        others.append(about)
    return judged, others


def _fields(body: dict[str, Any], member: str) -> Schema:
    try:
        return Schema(_field_list(body[member]))
    except (msgspec.ValidationError, RecursionError) as error:
        raise bad_member(member, f"cannot be read: {error}") from None


def _of_half(schema: Schema, half: str) -> Schema:
    """The columns that a topic has by the schema of its values or of its keys."""
    return topic_schema(None, schema) if half == "key" else topic_schema(schema)


def _topic_half(topic: Schema, half: str) -> Schema:
    """Those columns of a topic that come from its values, or from its keys."""
    return Schema(tuple(one for one in topic.fields if (one.name == "key") == (half == "key")))


def _text(change: PlannedChange) -> str:
    return {
        "drop": f"{change.column} is dropped",
        "rename": f"{change.column} is renamed to {change.to}",
        "type": f"{change.column} becomes {change.to}",
        "nullable": f"{change.column} may be missing",
        "delete": "the dataset is deleted",
    }[change.kind]


def _change(change: PlannedChange) -> JudgedChange:
    return {
        "kind": change.kind,
        "column": change.column,
        "to": change.to or None,
        "text": _text(change),
        "judged": True,
    }


def _answer(view: View, dataset: Dataset, found: Impact[Node]) -> dict[str, Any]:
    shown = found.struck[:JOBS]
    columns = found.columns[:COLUMNS]
    legs = [leg for one in shown for leg in one.path]
    numbers = {leg.dataset[1] for leg in legs} | {leg.target[1] for leg in legs if leg.target}
    datasets = view.datasets(numbers | {one.dataset[1] for one in columns})
    jobs = view.jobs({one.job[1] for one in shown} | {leg.job[1] for leg in legs})
    rest = view.jobs(number for _, number in found.unaffected[:JOBS])
    blind = view.jobs(number for _, number in found.blind[:JOBS])
    counts = Counter(one.effect.value for one in found.struck)
    counts[Effect.UNAFFECTED.value] = len(found.unaffected)
    worst = found.struck[0].effect if found.struck else Effect.UNAFFECTED
    reached = {dataset.node, *(one.job for one in found.struck)}
    reached |= {one.dataset for one in found.columns}
    if unseen := view.hidden_behind(*reached):
        counts[Effect.UNKNOWN.value] += unseen
        worst = min(worst, Effect.UNKNOWN, key=list(Effect).index)
    steps = _Steps(view, jobs, datasets)
    listed = describe.jobs(view, list(jobs.values()))
    facets = describe.Facets(view, (job.state.facets for job in jobs.values()), *describe.OWNED)
    stopped = [one.job for one in found.of(Effect.BREAKS)[:STOPPED]]
    behind = insight.behind_each(view.graph(), stopped)
    stops = {job: [number for _, number in written] for job, written in behind.items()}
    known = view.datasets({n for some in stops.values() for n in some})

    def hit(one: Struck[Node]) -> dict[str, Any]:
        job = jobs[one.job[1]]
        about = listed[job.id]
        return {
            **{key: about[key] for key in ("id", "namespace", "name", "integration", "type")},
            "effect": one.effect.value,
            "change": _text(one.change),
            "why": one.why,
            "owners": describe.owners(facets, job.state.facets),
            "stops": sorted(
                describe.dataset_id(known[n]) for n in stops.get(one.job, ()) if n in known
            ),
            "path": [steps.shown(leg) for leg in one.path],
        }

    return {
        "verdict": worst.value,
        "counts": {effect.value: counts[effect.value] for effect in Effect},
        "jobs": [hit(one) for one in shown if one.job[1] in jobs],
        "columns": sorted(
            (
                {
                    "dataset": describe.dataset_id(datasets[one.dataset[1]]),
                    "column": one.column or None,
                    "effect": one.effect.value,
                    "change": _text(one.change),
                }
                for one in columns
                if one.dataset[1] in datasets
            ),
            key=lambda one: (one["dataset"], one["column"] or "", one["effect"]),
        ),
        "unaffected": sorted(describe.job_id(job) for job in rest.values()),
        "coverage": {
            "jobs": found.jobs,
            "columnsKnown": found.known,
            "columnsUnknown": sorted(describe.job_id(job) for job in blind.values()),
            "complete": not found.cut and not unseen,
            "hidden": unseen,
        },
        "truncated": found.cut
        or len(found.struck) > JOBS
        or len(found.columns) > COLUMNS
        or len(found.unaffected) > JOBS,
    }


class _Steps:
    """Steps of paths as the answer shows them, with what their producers know them from."""

    def __init__(self, view: View, jobs: dict[int, Job], datasets: dict[int, Dataset]) -> None:
        self._jobs, self._datasets = jobs, datasets
        self._reported = ReportedItems(view, jobs.values(), datasets.values())

    def shown(self, leg: Leg[Node]) -> dict[str, Any]:
        """One step."""
        origin, job = self._datasets[leg.dataset[1]], self._jobs[leg.job[1]]
        target = self._datasets.get(leg.target[1]) if leg.target else None
        proof = self._reported.between([job.id], origin.root, target.root) if target else []
        return {
            "dataset": describe.dataset_id(origin),
            "column": leg.column or None,
            "job": describe.job_id(job),
            "target": describe.dataset_id(target) if target else None,
            "transformations": [
                {"type": step.type, "subtype": step.subtype, "masking": bool(step.masking)}
                for step in leg.transformations
            ],
            "evidence": proof[:EVIDENCE],
        }
