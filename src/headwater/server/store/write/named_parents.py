"""Which jobs every job has named as its parent: by these names, the children of a job are found.

A name has no time: the reader finds out whether a run of that job is still the parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.events import Limits
from headwater.server.store.database import within
from headwater.server.store.database.schema import TABLES, UNNAMED_PARENTS
from headwater.server.store.entities import decode_run
from headwater.server.store.write.incoming.name_limits import too_long
from headwater.server.store.write.incoming.prepared import safe

if TYPE_CHECKING:
    from headwater.server.store.store import Store

__all__ = ["complete", "fill", "named"]

LONGEST = Limits().name
STEP = 1_000
_FACETS = "SELECT id, dictionary, body FROM facet WHERE id IN ({in})"


def named(parent: known.ParentFacet | None) -> tuple[str, str] | None:
    """The job that a `parent` facet names, if one of that name can exist."""
    job = parent.job if parent else None
    if job is None or not job.namespace or not job.name:
        return None
    space, name = job.namespace, job.name
    return None if too_long(space, LONGEST) or too_long(name, LONGEST) else safe(space, name)


def complete(store: Store) -> None:
    """Fill the names in, once, where an earlier release stored the runs."""
    connection = store.connection
    sql = "SELECT 1 FROM setting WHERE name = ?"
    if not connection.all(sql, (UNNAMED_PARENTS,)):
        return
    try:
        connection.begin()
        store.read_dictionaries(connection)
        fill(store)
        connection.run("DELETE FROM setting WHERE name = ?", (UNNAMED_PARENTS,))
        connection.commit()
    except BaseException:
        store.abandon()
        raise


def fill(store: Store) -> None:
    """Store what the newest run of each job names."""
    connection, after = store.connection, 0
    sql = (
        "SELECT j.id, r.state FROM job j JOIN run r ON r.id = j.latest WHERE j.id > ?"
        " ORDER BY j.id LIMIT ?"
    )
    while rows := connection.all(sql, (after, STEP)):
        after = rows[-1][0]
        states = {job: decode_run(bytes(state)).facets for job, state in rows}
        held = {job: facets["parent"][0] for job, facets in states.items() if "parent" in facets}
        parents = {
            number: named(
                known.read(store.packer.unpack(dictionary, bytes(packed)), known.ParentFacet)
            )
            for number, dictionary, packed in within(connection, _FACETS, set(held.values()))
        }
        found = [(*key, job) for job, number in held.items() if (key := parents.get(number))]
        if found:
            connection.upsert(TABLES["named_parent"], found)
