"""Jobs beside a dataset that report no columns: what they do with a column of it is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.cli.questions.shown_names import ShownNames

__all__ = ["unknown_inputs", "unknown_outputs"]


def unknown_inputs(
    field: str, silent: Sequence[dict[str, Any]], names: ShownNames, *, more: bool
) -> str:
    """That nobody knows which columns, or which `more` columns, one comes from, and because of which jobs."""
    which = "more columns" if more else "columns"
    return f"it is not known which {which} {field} comes from: {_silence(silent, names)}"


def unknown_outputs(
    field: str, silent: Sequence[dict[str, Any]], names: ShownNames, *, more: bool
) -> str:
    """The same of where a column goes."""
    where = "where else" if more else "where"
    return f"it is not known {where} {field} goes: {_silence(silent, names)}"


def _silence(silent: Sequence[dict[str, Any]], names: ShownNames) -> str:
    jobs = list(dict.fromkeys(names.of(one["job"]) for one in silent))
    return f"{', '.join(jobs)} {'reports' if len(jobs) == 1 else 'report'} no columns"
