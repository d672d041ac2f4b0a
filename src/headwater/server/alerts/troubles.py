"""Jobs that failed, with what is stale behind them, and namespaces that fell silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.insight import JobProblem, families, root_causes
from headwater.lineage.lifecycle import State
from headwater.lineage.wording import counted
from headwater.server.alerts.evaluation import BEHIND, DATASET, DAY, TEXT
from headwater.server.alerts.incidents import EntityRef, Finding, IncidentBody, reported

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.insight import RootCause
    from headwater.server.alerts.evaluation import Evaluation
    from headwater.server.alerts.jobs import FailedRun, MonitoredJob, MonitoredJobs, Trouble
    from headwater.server.store.entities import Node
    from headwater.server.store.view import View

__all__ = ["passed", "silent", "troubles"]

MEMORY = 14 * DAY
"""How long a namespace may be silent before nobody waits for it any more."""
BROKEN = (JobProblem.FAILED, JobProblem.ABORTED)
WORDS = {
    JobProblem.FAILED: "failed",
    JobProblem.ABORTED: "was aborted",
    JobProblem.ENDED: "ended, and nothing writes any more",
    JobProblem.LATE: "has not run when it was due",
}
Wrong = tuple["MonitoredJob", "Trouble"]


def troubles(
    evaluation: Evaluation, jobs: MonitoredJobs, suppressed: Collection[EntityRef]
) -> list[Finding]:
    """Jobs in trouble, each once with all that it explains; `suppressed` jobs are reported elsewhere."""
    found = {job.node: (job, trouble) for job, trouble in jobs.in_trouble(evaluation.now)}
    if all(trouble[0].planned for _, trouble in found.values()):
        return []
    broken = {
        node: (job.run, job.parent)
        for node, (job, trouble) in found.items()
        if trouble[0] in BROKEN
    }
    family = {node: some[0] for some in families(broken) for node in some}
    merged: dict[Node, list[RootCause[Node]]] = {}
    wrong = {node: trouble for node, (_, trouble) in found.items()}
    for cause in root_causes(evaluation.view.graph(), wrong):
        merged.setdefault(family.get(cause.job, cause.job), []).append(cause)
    every = [one for causes in merged.values() for one in causes]
    evaluation.labels.load(node for one in every for node in one.behind[:BEHIND])
    evaluation.labels.load(node for one in every for node in (one.job, *one.jobs))
    return [_trouble(evaluation, causes, found, suppressed) for causes in merged.values()]


def _trouble(
    evaluation: Evaluation,
    causes: list[RootCause[Node]],
    jobs: Mapping[Node, Wrong],
    suppressed: Collection[EntityRef],
) -> Finding:
    """One finding for jobs that broke together; its subject is the job with the most downstream."""
    first = min(
        causes, key=lambda one: (one.problem is not JobProblem.FAILED, -len(one.behind), one.since)
    )
    job, (problem, since) = jobs[first.job]
    others = [one.job for one in causes if one is not first]
    others += [node for one in causes for node in one.jobs]
    behind = list(dict.fromkeys(node for one in causes for node in one.behind))
    subject = EntityRef("job", job.namespace, job.name)
    title = f"{job.name} {WORDS[problem]}"
    body = evaluation.body(subject, title, behind, cut=any(one.cut for one in causes))
    body.run, body.detail, body.owners = (
        job.run,
        _error(evaluation.view, job.error, inferred=job.inferred),
        evaluation.labels.owners(job.node),
    )
    body.members = evaluation.names(others)
    if subject not in suppressed:
        for node in (first.job, *others):
            if jobs[node][1][0] in BROKEN:
                wanted = evaluation.wanted("run-failed", node, jobs[node][1][1])
                body.rules += [name for name in wanted if name not in body.rules]
        stale = [node for one in causes for node in one.datasets]
        body.stale, more = evaluation.stale(stale, since)
        body.rules += more
    return Finding("run-failed" if problem in BROKEN else "stale", subject, since, body)


def _error(view: View, error: int, *, inferred: bool) -> str:
    body = view.bodies([error]).get(error) if error else None
    facet = msgspec.json.decode(body) if body else None
    message = facet.get("message") if isinstance(facet, dict) else None
    if isinstance(message, str) and message:
        return message[:TEXT]
    return "it sent no event in time" if inferred else ""


def passed(evaluation: Evaluation, jobs: MonitoredJobs) -> list[Finding]:
    """Runs that failed and recovered between two evaluations."""
    rules = [rule for rule in evaluation.rules.of("run-failed") if not rule.lasting]
    found = []
    for job in jobs.all.values():
        if not rules or not job.failures or job.status.planned or job.trouble(evaluation.now):
            continue
        subject = EntityRef("job", job.namespace, job.name)
        for failure in job.failures:
            wanted = [
                rule.name
                for rule in rules
                if failure.end
                > max(evaluation.rules.since.get(rule.name, evaluation.now), evaluation.now - DAY)
                and evaluation.labels.fits(rule, job.node)
            ]
            if wanted:
                title = f"{job.name} {WORDS[failure.problem]}"
                body = IncidentBody(subject, title, run=failure.run, rules=wanted)
                finding = Finding("run-failed", subject, failure.end, body, passed=True)
                if not reported(evaluation.known, finding):
                    _describe(evaluation, finding, job, failure)
                    found.append(finding)
    return found


def _describe(
    evaluation: Evaluation, finding: Finding, job: MonitoredJob, failure: FailedRun
) -> None:
    behind, cut = evaluation.behind([job.node])
    body = evaluation.body(finding.subject, finding.body.title, behind, cut=cut)
    body.run, body.rules = finding.body.run, finding.body.rules
    body.detail = _error(evaluation.view, failure.error, inferred=failure.inferred)
    body.owners = evaluation.labels.owners(job.node)
    finding.body = body


def silent(evaluation: Evaluation, jobs: MonitoredJobs) -> list[Finding]:
    """Namespaces whose runs are open, or closed for want of events, and from which nothing comes."""
    spaces: dict[str, list[MonitoredJob]] = {}
    for job in jobs.all.values() if evaluation.rules.of("producer-silent") else ():
        spaces.setdefault(job.namespace, []).append(job)
    found = []
    for namespace, some in sorted(spaces.items()):
        last = max(job.updated for job in some)
        waited = [job for job in some if job.inferred or job.status.state is State.RUNNING]
        wanted = [
            rule.name
            for rule in evaluation.rules.of("producer-silent")
            if rule.named(namespace, "") and evaluation.now - last >= rule.lasting
        ]
        if not wanted or not waited or evaluation.now - last > MEMORY:
            continue
        behind, cut = evaluation.behind([job.node for job in waited])
        subject = EntityRef("namespace", namespace, "")
        body = evaluation.body(subject, f"nothing comes from {namespace}", behind, cut=cut)
        body.members = [EntityRef("job", job.namespace, job.name) for job in waited[:BEHIND]]
        body.detail = f"{counted(len(waited), 'run')} open, or closed because no event came"
        body.stale, more = evaluation.stale([node for node in behind if node[0] == DATASET], last)
        body.rules = wanted + more
        found.append(Finding("producer-silent", subject, last, body))
    return found
