"""Who may do what: bearer tokens with a role, kept only as hashes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import UsageError
from headwater.server.http import HttpError
from headwater.server.store.database import StoreUnavailableError

if TYPE_CHECKING:
    from headwater.server.store import Store
    from headwater.server.store.database import Connection, Database

__all__ = [
    "ROLES",
    "Gate",
    "TokenInfo",
    "create_token",
    "list_tokens",
    "refuse_foreign",
    "revoke_token",
]

ROLES = ("write", "read", "admin")
_MAY = {
    "write": {"write"},
    "read": {"read"},
    "admin": {"write", "read", "admin"},
}
REFRESH = 2.0
PATIENCE = 0.25


class TokenInfo(NamedTuple):
    """What is known of a token: never the token itself."""

    id: str
    name: str
    role: str
    created: int
    revoked: int | None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def create_token(store: Store, name: str, role: str) -> str:
    """Make a token and keep its hash; the token itself is shown this once."""
    if role not in ROLES:
        raise UsageError(f"no role {role!r}", hint=f"one of {', '.join(ROLES)}")
    token = "hw_" + secrets.token_urlsafe(32)
    now = time.time_ns() // 1000
    row = (secrets.token_hex(4), name, role, _digest(token), now)
    connection = store.connection
    connection.begin()
    sql = "INSERT INTO token (id, name, role, hash, created) VALUES (?, ?, ?, ?, ?)"
    connection.run(sql, row)
    connection.commit()
    return token


def list_tokens(connection: Connection) -> list[TokenInfo]:
    """Every token, the oldest first."""
    sql = "SELECT id, name, role, created, revoked FROM token ORDER BY created"
    return [TokenInfo(*row) for row in connection.all(sql)]


def revoke_token(store: Store, token_id: str) -> None:
    """Make a token worthless from now on."""
    connection = store.connection
    connection.begin()
    sql = "UPDATE token SET revoked = ? WHERE id = ? AND revoked IS NULL"
    count = connection.run(sql, (time.time_ns() // 1000, token_id))
    connection.commit()
    if not count:
        raise UsageError(f"no token {token_id!r} is in use", hint="headwater token list")


class Gate:
    """Checks a request's token against the ones given at start and the ones in the store."""

    def __init__(self, database: Database, fixed: list[str]) -> None:
        self._database = database
        self._fixed = dict.fromkeys(map(_digest, fixed), "admin")
        self._stored: dict[bytes, str] | None = None
        self._read_at = float("-inf")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="headwater-gate")
        self._reading: Future[dict[bytes, str]] | None = None

    @property
    def open(self) -> bool:
        """Whether no token is needed at all."""
        return not self._tokens()

    def close(self) -> None:
        """Let go of the thread that reads tokens."""
        self._reader.shutdown(wait=False)

    def check(self, header: bytes | None, role: str) -> None:
        """Let the request pass, or raise 401 or 403."""
        held = self._role(header)
        if role not in _MAY[held]:
            raise HttpError(403, f"the token's role is {held}; this needs {role}")

    def may(self, header: bytes | None) -> list[str]:
        """The roles whose requests would pass: all of them where no token is needed."""
        try:
            return sorted(_MAY[self._role(header)])
        except HttpError:
            return []

    def _role(self, header: bytes | None) -> str:
        tokens = self._tokens()
        if not tokens:
            return "admin"
        scheme, _, token = (header or b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _unknown("a bearer token is needed")
        digest = _digest(token.strip())
        held = None
        # Every token is compared, and each in the same time, so that time tells nothing.
        for known, its_role in tokens.items():
            if hmac.compare_digest(digest, known):
                held = its_role
        if held is None:
            raise _unknown("the token is not known")
        return held

    def _tokens(self) -> dict[bytes, str]:
        now = time.monotonic()
        if now - self._read_at >= REFRESH:
            self._read_at = now
            self._refresh()
        return {**self._stored, **self._fixed} if self._stored else self._fixed

    def _refresh(self) -> None:
        """Read the stored tokens; a store that is away keeps nobody waiting, and lets nobody in."""
        if self._reading is None or self._reading.done():
            self._reading = self._reader.submit(self._load)
        try:
            self._stored = self._reading.result(PATIENCE if self._stored is not None else None)
        except FutureTimeoutError:
            pass
        except StoreUnavailableError:
            if self._stored is None:
                self._read_at = float("-inf")
                raise

    def _load(self) -> dict[bytes, str]:
        with self._database.reading() as connection:
            rows = connection.all("SELECT hash, role FROM token WHERE revoked IS NULL")
        return {bytes(digest): role for digest, role in rows}


def _unknown(message: str) -> HttpError:
    return HttpError(401, message, headers=[(b"www-authenticate", b'Bearer realm="headwater"')])


def refuse_foreign(site: bytes | None) -> None:
    """Refuse what another site's page makes a browser send (`Sec-Fetch-Site`)."""
    if site == b"cross-site":
        raise HttpError(403, "a page of another site may not change anything here")
