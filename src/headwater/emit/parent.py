"""The runs above a run: taken over from whoever started this process, so that it can be the root."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple
from uuid import UUID

from headwater.emit.event import facet

log = logging.getLogger(__name__)


class RunRef(NamedTuple):
    """A run and its job, by name."""

    namespace: str
    name: str
    run_id: str

    @property
    def value(self) -> dict[str, Any]:
        """As the parent facet writes it."""
        return {
            "run": {"runId": self.run_id},
            "job": {"namespace": self.namespace, "name": self.name},
        }


class Ancestors(NamedTuple):
    """The run that started this one, and the root of the whole tree."""

    parent: RunRef
    root: RunRef

    @property
    def facet(self) -> dict[str, Any]:
        """The `parent` facet."""
        return facet("parent", **self.parent.value, root=self.root.value)

    def below(self, run: RunRef) -> Ancestors:
        """The ancestors of a child of `run`, which itself stands below these."""
        return Ancestors(run, self.root)


def read_ref(text: str) -> RunRef | None:
    """`namespace/name/run id`; the namespace may hold slashes, the name may not."""
    parts = text.strip().rsplit("/", 2)
    if len(parts) != 3 or not all(parts):
        return None
    return checked(RunRef(*parts))


def checked(ref: RunRef) -> RunRef | None:
    """The reference if its run id is one, since an event with another would be refused."""
    try:
        UUID(ref.run_id)
    except ValueError:
        log.warning("the parent run id %r is not a UUID and is left out", ref.run_id[:64])
        return None
    return ref


def from_environment() -> Ancestors | None:
    """What `OPENLINEAGE_PARENT_ID` and `OPENLINEAGE_ROOT_PARENT_ID` say."""
    parent = read_ref(os.environ.get("OPENLINEAGE_PARENT_ID", ""))
    if parent is None:
        return None
    return Ancestors(parent, read_ref(os.environ.get("OPENLINEAGE_ROOT_PARENT_ID", "")) or parent)
