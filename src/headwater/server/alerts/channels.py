"""Delivery of one message: to a webhook, or to a command on its standard input."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import TYPE_CHECKING, Any

import msgspec

import headwater
from headwater.lineage.secrets import scrub
from headwater.server.alerts.messages import slack

if TYPE_CHECKING:
    import httpx

    from headwater.server.alerts.rules import Channel

__all__ = ["DeliveryError", "Notifier"]

log = logging.getLogger("headwater.server")

ANSWER = 2_000
"""Bytes of a receiver's answer or of a command's output that are read."""
DETAIL = 300
"""Characters of it that an error or a log line shows."""


class DeliveryError(Exception):
    """A message was not delivered; the reason holds no secret."""


class Notifier:
    """Sends messages without blocking the event loop."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        # It logs the address of every request, and that of a webhook is a secret.
        logging.getLogger("httpx").setLevel(logging.WARNING)

    async def send(self, channel: Channel, payload: dict[str, Any]) -> None:
        """Deliver a message within the channel's timeout; raises DeliveryError if that fails."""
        way = self._post if channel.url is not None else self._run
        try:
            await asyncio.wait_for(way(channel, payload), channel.timeout)
        except asyncio.TimeoutError:
            raise DeliveryError(f"no answer within {channel.timeout:g} s") from None

    async def _post(self, channel: Channel, payload: dict[str, Any]) -> None:
        import httpx

        if self._client is None:
            # It reads the certificates that it trusts, which takes long.
            self._client = await asyncio.to_thread(httpx.AsyncClient, follow_redirects=False)
        assert channel.url is not None
        headers = {
            "content-type": "application/json",
            "user-agent": f"headwater/{headwater.__version__}",
            "idempotency-key": payload["delivery"],
            **{name: value.reveal() for name, value in channel.headers.items()},
        }
        body = msgspec.json.encode(slack(payload) if channel.template == "slack" else payload)
        try:
            async with self._client.stream(
                "POST", channel.url.reveal(), content=body, headers=headers, timeout=channel.timeout
            ) as answer:
                if answer.is_success:
                    return
                content = b""
                async for part in answer.aiter_bytes(ANSWER):
                    content += part
                    if len(content) >= ANSWER:
                        break
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise DeliveryError(_clean(f"{type(error).__name__}: {error}", channel)) from None
        if answer.is_redirect:
            problem = f"HTTP {answer.status_code}: redirects are not followed"
            raise DeliveryError(problem) from None
        text = content[:ANSWER].decode("utf-8", "replace")
        raise DeliveryError(_clean(f"HTTP {answer.status_code} {text}", channel)) from None

    async def _run(self, channel: Channel, payload: dict[str, Any]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *channel.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise DeliveryError(_clean(f"cannot be started: {error}", channel)) from None
        try:
            output = await _converse(process, msgspec.json.encode(payload) + b"\n")
            code = await process.wait()
        finally:
            # Whatever it started, too: the command has had its time.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # A command that is cut off must be gone before the loop is, and its pipes with it.
            await process.wait()
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        text = _clean(output.decode("utf-8", "replace"), channel)
        if code:
            raise DeliveryError(f"exit code {code}: {text}")
        if text:
            log.info("alert command %s printed: %s", channel.name, text)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()


async def _converse(process: asyncio.subprocess.Process, given: bytes) -> bytes:
    """Hand a process its input and read what it prints, of which only the beginning is kept."""
    assert process.stdin is not None
    assert process.stdout is not None
    # It need not read its input: what uvloop raises when the pipe is closed already is a RuntimeError.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()
    kept = b""
    while part := await process.stdout.read(65_536):
        kept = (kept + part)[:ANSWER]
    return kept


def _clean(text: str, channel: Channel) -> str:
    """A text that may be logged and shown: in one line, bounded, without secrets."""
    plain = " ".join(scrub(text, channel.hidden).split())
    return "".join(c if c.isprintable() else "?" for c in plain)[:DETAIL]
