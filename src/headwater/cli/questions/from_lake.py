"""`--lake`: the questions of a server, answered from the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import err
from headwater.cli.server.client import ServerClient
from headwater.errors import UsageError

if TYPE_CHECKING:
    import httpx

    from headwater.lake.answers import Wanted

__all__ = ["Lake", "of_audit", "of_dataset", "of_period", "say_source"]

Lake = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="URL",
        help="Ask the lake (iceberg://CATALOG/NAMESPACE), which keeps what a server's retention deletes.",
        show_default=False,
    ),
]


class _LakeServer(ServerClient):
    """A server of what the lake has about one question."""

    def __init__(self, url: str, wanted: Wanted) -> None:
        from headwater.lake.answers import Scratch, select
        from headwater.lake.iceberg import open_lake

        super().__init__(url)
        lake = open_lake(url)
        self._scratch = Scratch(lake.records(select(lake, wanted)))

    def print_page(self, *parts: str) -> None:
        """The lake has no page."""

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> httpx.Response:
        return self._scratch.get(path, query or {})


def of_dataset(lake: str, dataset: str, at: str | None, depth: int, *, down: bool) -> ServerClient:
    """What can be asked about what lies up or down of a dataset at a moment."""
    from headwater.lake.answers import Wanted

    during = None if at is None else (_moment(at),) * 2
    return _LakeServer(
        lake, Wanted(dataset, "down" if down else "up", moments=(during,), depth=depth)
    )


def of_period(
    lake: str, start: str, end: str | None, around: str | None, depth: int
) -> ServerClient:
    """What can be asked about what changed in a period, around a dataset or anywhere."""
    from headwater.lake.answers import NEVER, Wanted

    since, until = _moment(start), NEVER if end is None else _moment(end)
    if around is None:
        return _LakeServer(lake, Wanted(period=(since, until)))
    moments = ((since, since), None if end is None else (until, until))
    return _LakeServer(lake, Wanted(around, moments=moments, depth=depth))


def of_audit(
    lake: str, dataset: str, start: str | None, end: str | None, depth: int
) -> ServerClient:
    """What can be asked about where a dataset came from in a period, and who had it."""
    from headwater.lake.answers import NEVER, Wanted

    during = (0 if start is None else _moment(start), NEVER if end is None else _moment(end))
    return _LakeServer(lake, Wanted(dataset, "both", moments=(during,), depth=depth))


def say_source(found: dict[str, Any]) -> None:
    """Say that a server had an answer from its lake, beside the answer itself."""
    if found.get("source") == "lake":
        err.print("[dim]older than the server keeps: answered from the lake[/]")


def _moment(text: str) -> int:
    from headwater.lineage.moments import TIME
    from headwater.server.api.parameters import parse_moment

    try:
        return parse_moment(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time: {TIME}") from None
