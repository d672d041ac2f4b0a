"""The command `headwater mcp`; the protocol's package is loaded only when it runs."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003  (typer reads the annotation)
from typing import Annotated

import typer

from headwater.cli.options import spread
from headwater.cli.output import err, remark
from headwater.cli.server.client import ServerPlace, read_token
from headwater.cli.server.serve import require_free

__all__ = ["mcp"]

ANSWER_SECONDS = 60
"""An assistant waits for no answer as long as a script would."""


@spread
def mcp(
    place: ServerPlace,
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve streamable HTTP on this port of 127.0.0.1 instead of standard input.",
        ),
    ] = None,
    http_token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token that callers of --http must send; else in "
            "$HEADWATER_MCP_TOKEN; without one, every program on this machine may ask."
        ),
    ] = None,
) -> None:
    """Answer lineage questions of AI assistants over the Model Context Protocol; read-only.

    Speaks on standard input and output, as assistants start it, or over HTTP with --http.
    """
    from headwater.cli.mcp import protocol

    server = place.server(seconds=ANSWER_SECONDS)
    if http is None:
        protocol.serve_stdio(server)
        return
    if http_token_file is not None:
        token: str | None = read_token(http_token_file)
    else:
        token = os.environ.get("HEADWATER_MCP_TOKEN", "").strip() or None
    if token is None and server.has_token:
        remark("every program on this machine may ask with the server's token: --http-token-file")
    require_free("127.0.0.1", http)
    err.print(f"headwater mcp on http://127.0.0.1:{http}/mcp", soft_wrap=True)
    protocol.serve_http(server, http, token)
