"""The health of what is known: datasets under two names, and what else makes answers doubtful."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from headwater.insight import (
    DEFAULT_SCORE,
    SHOWN_SCORE,
    DoubtKind,
    NameRuleError,
    name_rules,
)
from headwater.insight import doctor as examine
from headwater.server.api.parameters import integer, text
from headwater.server.api.present import when
from headwater.server.api.types import Named, Object, Time
from headwater.server.http import Response, bad_member
from headwater.server.routing import Routes
from headwater.server.store.database import within
from headwater.server.store.read.estate import StoredEstate
from headwater.server.store.view import View
from headwater.server.store.write.commands import DOCTOR, NoSuchError

if TYPE_CHECKING:
    from headwater.insight import Diagnosis, Doubt, NameRules, Pair
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.entities import Node
    from headwater.server.store.store import Store

__all__ = ["api"]

api = Routes()

LISTED = 100
MOST = 1_000
RECORDED = 1_000
CHOSEN = 1_000


class Proof(TypedDict):
    """Something that speaks for a pair, or against it."""

    kind: str
    text: str


class ProposedPair(TypedDict):
    """Two datasets that may be one; applied, `alias` stands for `dataset`."""

    alias: Named
    dataset: Named
    score: float
    rule: str
    evidence: list[Proof]


class DoctorFinding(TypedDict):
    """What makes answers doubtful; `count` of what is not about one job or dataset."""

    kind: Literal[
        "schema",
        "external file",
        "orphan",
        "no outputs",
        "inferred",
        "silent",
        "reported twice",
        "clock",
        "refused",
        "assumed",
    ]
    node: str | None
    named: Named | None
    text: str
    since: Time | None
    count: int


class RecordedAlias(TypedDict):
    """An alias that doctor recorded."""

    alias: Named
    dataset: Named
    at: Time


class DoctorAnswer(TypedDict):
    """Pairs from the surest on, findings by kind, and the aliases that doctor recorded."""

    defaultScore: float
    pairs: list[ProposedPair]
    findings: list[DoctorFinding]
    counts: dict[str, int]
    recorded: list[RecordedAlias]
    hidden: int
    truncated: bool


class _Question(TypedDict, total=False):
    minScore: float
    limit: int
    rules: Object


class PostFindings(_Question):
    """The same question with rules of your own: `read` some names as others, `never` join others."""


class _Pairs(TypedDict, total=False):
    pairs: list[Object]


class PostDoctor(_Question, _Pairs):
    """What to do: record the pairs of `minScore` and more, or those in `pairs`; or take all back."""

    action: Literal["apply", "undo"]


class Done(TypedDict):
    """The aliases that this call recorded or took back."""

    action: str
    aliases: list[Object]


@api.get("/api/v2/doctor", answer=DoctorAnswer)
def doctor(
    app: App,
    view: View,
    score: str = text(name="minScore"),
    limit: int = integer(LISTED, 1, MOST),
) -> dict[str, Any]:
    """Datasets that are almost surely one under two names, and what else makes answers doubtful.

    `minScore` says which pairs are listed (0.5 if left out); `limit` how many findings of a kind.
    """
    return _answer(app, view, _score(score or None, SHOWN_SCORE), limit, None)


@api.route("POST", "/api/v2/doctor/findings", role="read", body=PostFindings, answer=DoctorAnswer)
def findings(app: App, view: View, request: Request) -> dict[str, Any]:
    """The findings of doctor with rules of your own; nothing is changed."""
    body = request.json()
    limit = body.get("limit", LISTED)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise bad_member("limit", "must be a whole number from 1 on")
    shown = _score(body.get("minScore"), SHOWN_SCORE)
    return _answer(app, view, shown, min(limit, MOST), _rules(body))


@api.route("POST", "/api/v2/doctor", body=PostDoctor, answer=Done)
async def act(app: App, request: Request) -> Response:
    """Record aliases for pairs, of the default score and more unless `minScore` is given; or undo it."""
    body = request.json()
    action = body.get("action")
    if action == "undo":
        done = await _undo(app)
    elif action == "apply":
        done = await _apply(app, body)
    else:
        raise bad_member("action", "must be apply or undo")
    return Response({"action": action, "aliases": done})


def _score(given: Any, default: float) -> float:
    if given is None:
        return default
    try:
        found = float(given) if not isinstance(given, bool) else math.nan
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found <= 1:
        raise bad_member("minScore", "must be a number from 0 to 1")
    return found


def _rules(body: dict[str, Any]) -> NameRules | None:
    if "rules" not in body:
        return None
    try:
        return name_rules(body["rules"])
    except NameRuleError as error:
        raise bad_member("rules", str(error)) from None


def _examined(app: App, view: View, rules: NameRules | None) -> Diagnosis[Node]:
    now = time.time_ns() // 1000
    # Counters are of the whole server: not for a reader that is limited to namespaces.
    counted = {} if view.limit is not None else {
        # Codes alone are of questions, too.
        DoubtKind.REFUSED: {k: n for k, n in app.refusals.items() if not k.isdigit()},
        DoubtKind.ASSUMED: dict(app.store.assumed),
    }  # fmt: skip
    return examine(StoredEstate(view, now, counted), now, rules)


def _answer(
    app: App, view: View, lowest: float, limit: int, rules: NameRules | None
) -> dict[str, Any]:
    found = _examined(app, view, rules)
    found = replace(found, doubts=_certain(view, found.doubts))
    pairs = [pair for pair in found.pairs if pair.score >= lowest]
    counts = Counter(doubt.kind.value for doubt in found.doubts)
    listed: list[Doubt[Node]] = []
    for kind in DoubtKind:
        listed += [doubt for doubt in found.doubts if doubt.kind is kind][:limit]
    recorded = _recorded(view)
    return {
        "defaultScore": DEFAULT_SCORE,
        "pairs": [_pair(pair) for pair in pairs[:limit]],
        "findings": _findings(view, listed),
        "counts": {
            "pairs": len(pairs),
            "sure": sum(pair.score >= DEFAULT_SCORE for pair in pairs),
            **{kind.value: counts[kind.value] for kind in DoubtKind},
        },
        "recorded": recorded,
        "hidden": view.hidden_anywhere(),
        "truncated": len(pairs) > limit or len(listed) < len(found.doubts),
    }


def _certain(view: View, doubts: tuple[Doubt[Node], ...]) -> tuple[Doubt[Node], ...]:
    """The doubts without those that only say that a limited reader cannot see the other ends."""
    unused = (DoubtKind.ORPHAN, DoubtKind.NO_OUTPUTS)
    nodes = [doubt.node for doubt in doubts if doubt.kind in unused and doubt.node is not None]
    partly = view.partly_hidden(nodes)
    return tuple(one for one in doubts if one.kind not in unused or one.node not in partly)


def _pair(pair: Pair[Node]) -> dict[str, Any]:
    return {
        "alias": {"namespace": pair.alias.namespace, "name": pair.alias.name},
        "dataset": {"namespace": pair.dataset.namespace, "name": pair.dataset.name},
        "score": pair.score,
        "rule": pair.rule,
        "evidence": [proof._asdict() for proof in pair.proofs],
    }


def _findings(view: View, doubts: list[Doubt[Node]]) -> list[dict[str, Any]]:
    nodes = [doubt.node for doubt in doubts if doubt.node is not None]
    jobs = view.jobs(number for kind, number in nodes if kind == "job")
    datasets = view.datasets(number for kind, number in nodes if kind == "dataset")
    found = []
    for doubt in doubts:
        node = named = None
        if doubt.node is not None:
            kind, number = doubt.node
            one = (jobs if kind == "job" else datasets).get(number)
            if one is None:
                continue
            node = f"{kind}:{one.space}:{one.name}"
            named = {"namespace": one.space, "name": one.name}
        found.append(
            {
                "kind": doubt.kind.value,
                "node": node,
                "named": named,
                "text": doubt.text,
                "since": when(doubt.since),
                "count": doubt.count,
            }
        )
    return found


def _recorded(view: View, limit: int = RECORDED) -> list[dict[str, Any]]:
    """The aliases that doctor recorded, the newest first."""
    sql = (
        "SELECT a.namespace, a.name, n.name, d.name, a.time FROM joined a"
        " JOIN dataset d ON d.id = a.dataset JOIN namespace n ON n.id = d.namespace"
        " ORDER BY a.time DESC, a.namespace, a.name LIMIT ?"
    )
    return [
        {
            "alias": {"namespace": space, "name": alias},
            "dataset": {"namespace": owner, "name": dataset},
            "at": when(at),
        }
        for space, alias, owner, dataset, at in view.all(sql, (limit,))
    ]


async def _apply(app: App, body: dict[str, Any]) -> list[dict[str, Any]]:
    rules = _rules(body)
    chosen = _chosen(body)
    lowest = _score(body.get("minScore"), 0.0 if chosen is not None else DEFAULT_SCORE)

    def wanted() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        with app.store.database.reading() as connection:
            view = View(connection, app.bodies)
            pairs = _examined(app, view, rules).pairs
            return [_pair(pair) for pair in pairs if pair.score >= lowest], _recorded(view)

    found, recorded = await asyncio.to_thread(wanted)
    if chosen is not None:
        known = {(*_key(one["alias"]), *_key(one["dataset"])) for one in (*found, *recorded)}
        if missing := next((one for one in chosen if one not in known), None):
            problem = f"holds {missing[1]}, which doctor does not propose (any more)"
            raise bad_member("pairs", problem)
        found = [p for p in found if (*_key(p["alias"]), *_key(p["dataset"])) in set(chosen)]
    return [pair for pair in found if await app.ingest.perform(partial(_record, pair=pair))]


def _record(store: Store, pair: dict[str, Any]) -> bool:
    """Record an alias on the writer's thread, unless another call or a person was faster."""
    alias, dataset = _key(pair["alias"]), _key(pair["dataset"])
    sql = (
        "WITH k (space, name) AS ({in}) SELECT d.root FROM k JOIN namespace n ON n.name = k.space"
        " JOIN dataset d ON d.namespace = n.id AND d.name = k.name"
    )
    if len({row[0] for row in within(store.connection, sql, [alias, dataset])}) < 2:
        return False
    command = {"command": "alias", "by": DOCTOR, **pair["dataset"], "alias": list(alias)}
    return _carried_out(store, command)


def _carried_out(store: Store, command: dict[str, Any]) -> bool:
    """Carry out a command; False if what it is about is gone."""
    try:
        store.perform(command)
    except NoSuchError:
        return False
    return True


def _key(named: Any) -> tuple[str, str]:
    return str(named["namespace"]), str(named["name"])


def _chosen(body: dict[str, Any]) -> list[tuple[str, ...]] | None:
    given = body.get("pairs")
    if given is None:
        return None
    if not isinstance(given, list) or len(given) > CHOSEN:
        raise bad_member("pairs", f"must be a list of at most {CHOSEN} pairs")
    try:
        return [(*_key(one["alias"]), *_key(one["dataset"])) for one in given]
    except (KeyError, TypeError):
        raise bad_member(
            "pairs", "must each have alias and dataset, with namespace and name"
        ) from None


async def _undo(app: App) -> list[dict[str, Any]]:
    def recorded() -> list[dict[str, Any]]:
        with app.store.database.reading() as connection:
            return _recorded(View(connection, app.bodies))

    done: list[dict[str, Any]] = []
    # The newest first: an older one may hang on it.
    while found := await asyncio.to_thread(recorded):
        for one in found:
            alias = [one["alias"]["namespace"], one["alias"]["name"]]
            command = {"command": "unalias", **one["dataset"], "alias": alias}
            # Another call may have taken it back since.
            if await app.ingest.perform(partial(_carried_out, command=command)):
                done.append(one)
    return done
