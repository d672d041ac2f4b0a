"""Jobs that write a dataset and report no columns: what they bring into a column is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.url_paths import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.cli.questions.shown_names import ShownNames
    from headwater.cli.server.client import ServerClient

__all__ = ["silent_writers", "unknown_inputs"]


def silent_writers(server: ServerClient, namespace: str, name: str) -> list[dict[str, Any]]:
    """Each `job` that writes a dataset (`destination`) from others (`origin`) without saying by which columns."""
    path = path_of("api", "v2", "datasets", namespace, name, "tags")
    found: list[dict[str, Any]] = server.get(path, depth=1)["unknown"]
    return found


def unknown_inputs(
    field: str, silent: Sequence[dict[str, Any]], names: ShownNames, *, more: bool
) -> str:
    """That nobody knows which columns, or which `more` columns, one comes from, and because of which jobs."""
    jobs = list(dict.fromkeys(names.of(one["job"]) for one in silent))
    reports = "reports" if len(jobs) == 1 else "report"
    which = "more columns" if more else "columns"
    return (
        f"it is not known which {which} {field} comes from: {', '.join(jobs)} {reports} no columns"
    )
