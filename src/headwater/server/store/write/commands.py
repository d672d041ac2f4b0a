"""Changes that people and clients make by hand: each one a record in the log, like an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.errors import NotFoundError
from headwater.lineage.openlineage.events import EventType, canonical
from headwater.server.store.database import StoreError
from headwater.server.store.entities import DELETED, Run
from headwater.server.store.write import identity, shared_symlinks
from headwater.server.store.write.datasets import hold

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.store import Store
    from headwater.server.store.write.projection import Projection

__all__ = ["COMMANDS", "DOCTOR", "NoSuchError", "apply"]

DATASET, JOB = 0, 1
DOCTOR = "doctor"
"""Who recorded an alias that may be taken back."""
Command = dict[str, Any]
Ids = tuple["int | None", "int | None"]


class NoSuchError(StoreError):
    """What the command is about does not exist."""

    exit_code = NotFoundError.exit_code


def apply(store: Store, projection: Projection, command: Command) -> Ids:
    """Carry out a command; answers the ids of the job and run it is about."""
    return COMMANDS[command["command"]](store, projection, command)


def _event(store: Store, projection: Projection, command: Command) -> Ids:
    """Metadata given by PUT, as the equivalent event."""
    item = store.reader.prepare(canonical(command["event"]))
    store.session.load([item])
    return projection.apply(item, command["at"])


def _the_run(store: Store, text: str) -> Run:
    uuid = UUID(text).bytes
    store.session.load_runs([uuid])
    run = store.session.runs.get(uuid)
    if run is None or run.state.static:
        raise NoSuchError(f"Run '{text}' not found.")
    return run


def _run(store: Store, projection: Projection, command: Command) -> Ids:
    """A run started, ended or taken to have ended; with facets that explain it."""
    run = _the_run(store, command["run"])
    job = store.session.job_of(run.job)
    life = run.state.life
    before = (life.state, life.end)
    if command.get("inferred"):
        if life.state.finished:
            raise NoSuchError(f"Run '{command['run']}' has ended already.")
        life.infer_end(command["time"], command.get("after") or life.last or 0)
    else:
        life.observe(EventType(command["state"]), command["time"])
    if (life.state, life.end) != before:  # else it had ended before, which this does not explain
        facets = command.get("facets", {}).items()
        numbers = [(name, store.session.intern(canonical(facet))) for name, facet in facets]
        hold(run.state.facets, numbers, command["time"])
    store.session.touch(run)
    store.session.dirty["job"][job.id] = job
    projection.decide(job, run)
    projection.settle(job, run, command["time"], *before)
    return job.id, run.id


def _new_run(store: Store, projection: Projection, command: Command) -> Ids:
    """A run announced before it starts; under the id of another job's run, one of its own."""
    job = _the_job(store, command)
    uuid = UUID(command["run"]).bytes
    store.session.load_runs([uuid])
    run = store.session.runs.get(uuid)
    if run is None or run.job != job.id:
        run = projection.other_run(job, uuid, run)
    if run.fresh:
        run.state.args = command.get("args")
        run.state.nominal = (command.get("nominalStart"), command.get("nominalEnd"))
        run.state.life.observe(EventType.OTHER, command["at"])
        run.state.version = job.version
        store.session.touch(run)
        projection.decide(job, run)
        store.session.dirty["job"][job.id] = job
    return job.id, run.id


def _the_job(store: Store, command: Command) -> Job:
    key = (command["namespace"], command["name"])
    store.session.load_jobs([key])
    job = store.session.jobs.get(key)
    if job is None:
        raise NoSuchError(f"Job '{key[1]}' not found.")
    return job


def _the_dataset(store: Store, command: Command) -> Dataset:
    key = (command["namespace"], command["name"])
    store.session.load_datasets([key])
    dataset = store.session.datasets.get(key)
    if dataset is None:
        raise NoSuchError(f"Dataset '{key[1]}' not found.")
    return dataset


def _namespace(store: Store, _: Projection, command: Command) -> Ids:
    session, name = store.session, command["name"]
    session.load_namespaces({name})
    space = session.namespace(name, command["at"])
    space.owner = command.get("owner") or space.owner
    space.description = command.get("description") or space.description
    space.updated, space.hidden = command["at"], 0
    session.dirty["namespace"][space.id] = space
    return None, None


def _source(store: Store, _: Projection, command: Command) -> Ids:
    session, at = store.session, command["at"]
    source = session.source(command["name"], command["type"], command["url"], at)
    source.kind, source.url = command["type"], command["url"]
    source.description = command.get("description") or source.description
    source.updated = at
    session.dirty["source"][source.id] = source
    return None, None


def _hide(store: Store, projection: Projection, command: Command) -> Ids:
    """Hide a job, dataset or namespace until an event names it again.

    Task jobs are hidden with their parent job; each is shown again when an event names it.
    """
    session, kind, task_jobs = store.session, command["kind"], projection.task_jobs
    if kind == "job":
        job = _the_job(store, command)
        for one in (job, *task_jobs.tasks(job)):
            if one.hidden != DELETED:
                session.rows["deletion"].append((JOB, one.id, command["at"], None))
            one.hidden = DELETED
            session.dirty["job"][one.id] = one
        task_jobs.job_changed(job)
        return job.id, None
    if kind == "dataset":
        dataset = _the_dataset(store, command)
        if dataset.hidden != DELETED:
            session.rows["deletion"].append((DATASET, dataset.id, command["at"], None))
        dataset.hidden = DELETED
        session.dirty["dataset"][dataset.id] = dataset
        return None, None
    session.load_namespaces({command["name"]})
    space = session.namespaces.get(command["name"])
    if space is None:
        raise NoSuchError(f"Namespace '{command['name']}' not found.")
    space.hidden = DELETED
    session.dirty["namespace"][space.id] = space
    session.flush()
    connection = store.connection
    of_jobs = (
        "(namespace = ? OR id IN"
        " (SELECT f.job FROM fold f JOIN job w ON w.id = f.whole WHERE w.namespace = ?))"
    )
    gone: list[tuple[int, int, int, None]] = []
    for number, table, which, params in (
        (DATASET, "dataset", "namespace = ?", (space.id,)),
        (JOB, "job", of_jobs, (space.id, space.id)),
    ):
        sql = f"SELECT id FROM {table} WHERE hidden <> {DELETED} AND {which}"  # noqa: S608
        gone += [(number, row[0], command["at"], None) for row in connection.all(sql, params)]
        connection.run(f"UPDATE {table} SET hidden = {DELETED} WHERE {which}", params)  # noqa: S608
    session.forget()
    session.rows["deletion"] += gone
    task_jobs.settle_all()
    return None, None


def _tag(store: Store, _: Projection, command: Command) -> Ids:
    sql = (
        "INSERT INTO tag (name, description) VALUES (?, ?) ON CONFLICT (name)"
        " DO UPDATE SET description = excluded.description"
    )
    store.connection.run(sql, (command["name"], command.get("description")))
    return None, None


def _tagged(store: Store, projection: Projection, command: Command) -> Ids:
    """A tag put on, or taken off, a job, a dataset or one of its columns."""
    kind = JOB if command["kind"] == "job" else DATASET
    entity: Job | Dataset
    if kind == JOB:
        entity = projection.task_jobs.parent(_the_job(store, command))
    else:
        entity = _the_dataset(store, command)
    key = (kind, entity.id, command.get("field") or "", command["tag"])
    connection = store.connection
    if command["on"]:
        sql = "INSERT INTO tag (name) VALUES (?) ON CONFLICT (name) DO NOTHING"
        connection.run(sql, (command["tag"],))
        sql = (
            "INSERT INTO tag_use (kind, entity, field, tag, time) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (kind, entity, field, tag) DO NOTHING"
        )
        connection.run(sql, (*key, command["at"]))
    else:
        sql = "DELETE FROM tag_use WHERE kind = ? AND entity = ? AND field = ? AND tag = ?"
        connection.run(sql, key)
    return (entity.id, None) if kind == JOB else (None, None)


def _alias(store: Store, projection: Projection, command: Command) -> Ids:
    """One name declared, by hand or by doctor, to stand for another dataset."""
    dataset, alias = _the_dataset(store, command), tuple(command["alias"])
    session = store.session
    identity.declare(session, dataset, [alias], command["at"])
    projection.schemas.merge()
    session.flush()
    # What a person declares is no longer doctor's to take back.
    store.connection.run("DELETE FROM joined WHERE namespace = ? AND name = ?", alias)
    if command.get("by") == DOCTOR:
        session.rows["joined"].append((*alias, dataset.id, command["at"]))
    return None, None


def _unalias(store: Store, projection: Projection, command: Command) -> Ids:
    """An alias that doctor recorded, taken back."""
    alias, connection = tuple(command["alias"]), store.connection
    store.session.flush()
    sql = "SELECT 1 FROM joined WHERE namespace = ? AND name = ?"
    if not connection.all(sql, alias):
        raise NoSuchError(f"Alias '{alias[1]}' was not recorded by doctor.")
    connection.run("DELETE FROM joined WHERE namespace = ? AND name = ?", alias)
    identity.withdraw(store.session, alias)
    shared_symlinks.settle(store.session)
    projection.schemas.merge()
    return None, None


def _changes_nothing(_: Store, __: Projection, ___: Command) -> Ids:
    """What retention deleted is no longer in the log; the checkpoint made with it has the rest."""
    return None, None


COMMANDS: dict[str, Callable[[Store, Projection, Command], Ids]] = {
    "event": _event,
    "run": _run,
    "new_run": _new_run,
    "namespace": _namespace,
    "source": _source,
    "hide": _hide,
    "tag": _tag,
    "tagged": _tagged,
    "alias": _alias,
    "unalias": _unalias,
    "retain": _changes_nothing,
    "purge": _changes_nothing,
}
