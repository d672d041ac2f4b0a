"""The runs above a run: taken over from whoever started this process, so that it can be the root."""

from __future__ import annotations

import logging
import os
from uuid import UUID

from headwater.lineage.model import Ancestors, RunRef

log = logging.getLogger(__name__)


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
    """The runs that `OPENLINEAGE_PARENT_ID` and `OPENLINEAGE_ROOT_PARENT_ID` name."""
    parent = read_ref(os.environ.get("OPENLINEAGE_PARENT_ID", ""))
    if parent is None:
        return None
    return Ancestors(parent, read_ref(os.environ.get("OPENLINEAGE_ROOT_PARENT_ID", "")) or parent)
