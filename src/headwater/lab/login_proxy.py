"""An HTTP proxy that asks for a login before a service that has none: `python -m headwater.lab.login_proxy CONFIG`.

The proxy starts the service, ends with it, and passes on what comes with a login.
"""

from __future__ import annotations

import hmac
import signal
import subprocess
import sys
import threading
from base64 import b64encode
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

from headwater.lab.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

ANSWER_SECONDS = 60.0
BODY = 2 * 1024 * 1024
CONNECTIONS = 200
# A connection's own headers, and what the proxy alone is asked. The length is that of what arrived.
OWN = frozenset(
    (b"authorization", b"connection", b"content-length", b"expect", b"host", b"http2-settings",
     b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)  # fmt: skip
ANSWERED = frozenset(("connection", "content-encoding", "content-length", "transfer-encoding"))


class LoginProxyConfig(msgspec.Struct, kw_only=True):
    """Where the proxy listens, and who may log in."""

    port: int
    behind: str
    users: dict[str, str]
    argv: list[str]
    """How the service behind it is started."""


_config = msgspec.json.Decoder(LoginProxyConfig)


class LoginProxy:
    """An ASGI application that passes requests on, once it has seen a login."""

    def __init__(self, behind: str, users: Mapping[str, str]) -> None:
        basic = (b64encode(f"{user}:{password}".encode()) for user, password in users.items())
        self._allowed = [b"Basic " + login for login in basic]
        self._behind = behind
        # All clients share it: what the service sets for one is not sent for another.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._http = httpx.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False, cookies=no_cookies)

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        headers = dict(scope["headers"])
        if not self._may_pass(headers.get(b"authorization", b"")):
            realm = [(b"www-authenticate", b'Basic realm="registry"')]
            await _refuse(send, 401, "a login is needed", realm)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return  # half a request is none
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > BODY:
                await _refuse(send, 413, f"the body is larger than {BODY} bytes")
                return
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        if not target.startswith(b"/"):
            await _refuse(send, 400, "the address is no path")
            return
        kept = [(name, value) for name, value in scope["headers"] if name not in OWN]
        try:
            # The target as it was sent: a URL would be read and written anew.
            got = await self._http.request(
                scope["method"], self._behind, content=bytes(body), headers=kept,
                extensions={"target": target},
            )  # fmt: skip
        except httpx.LocalProtocolError:
            await _refuse(send, 400, "such a request cannot be passed on")
            return
        except httpx.TransportError:
            await _refuse(send, 503, "not ready")
            return
        back = [
            (name, value)
            for name, value in got.headers.raw
            if name.decode("latin-1").lower() not in ANSWERED
        ]
        await _answer(send, got.status_code, got.content, back)

    def _may_pass(self, shown: bytes) -> bool:
        return any(hmac.compare_digest(shown, login) for login in self._allowed)


async def _refuse(
    send: Callable[[dict[str, Any]], Awaitable[None]],
    status: int,
    message: str,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    body = msgspec.json.encode({"error_code": status, "message": message})
    await _answer(send, status, body, [*headers, (b"content-type", b"application/json")])


async def _answer(
    send: Callable[[dict[str, Any]], Awaitable[None]],
    status: int,
    body: bytes,
    headers: list[tuple[bytes, bytes]],
) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class LoginProxyServer:
    """A login proxy that listens on a port, in a thread of its own."""

    def __init__(self, proxy: LoginProxy, port: int) -> None:
        import uvicorn

        from headwater.server.http.bounded_uvicorn import bounded

        self._server = uvicorn.Server(bounded(proxy, LOOPBACK, port, connections=CONNECTIONS))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()


def main(path: Path) -> int:
    """Run the service and its proxy until the service ends."""
    config = _config.decode(path.read_bytes())
    service = subprocess.Popen(config.argv)
    signal.signal(signal.SIGTERM, lambda _number, _frame: service.terminate())
    proxy = LoginProxyServer(LoginProxy(config.behind, config.users), config.port)
    proxy.start()
    code = service.wait()
    proxy.close()
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
