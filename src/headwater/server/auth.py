"""Who may do what: bearer tokens with a role, kept only as hashes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import UsageError
from headwater.server.http import HttpError

if TYPE_CHECKING:
    from headwater.server.store import Store
    from headwater.server.store.database import Connection, Database

__all__ = ["ROLES", "Gate", "TokenInfo", "create_token", "list_tokens", "revoke_token"]

ROLES = ("write", "read", "admin")
_MAY = {
    "write": {"write"},
    "read": {"read"},
    "admin": {"write", "read", "admin"},
}
REFRESH = 2.0


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
        self._fixed = [_digest(token) for token in fixed]
        self._stored: dict[bytes, str] = {}
        self._read_at = float("-inf")

    @property
    def open(self) -> bool:
        """Whether no token is needed at all."""
        self._refresh()
        return not self._fixed and not self._stored

    def check(self, header: bytes | None, role: str) -> None:
        """Let the request pass, or raise 401 or 403."""
        if self.open:
            return
        scheme, _, token = (header or b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise HttpError(
                401, "a bearer token is needed", headers=[(b"www-authenticate", b"Bearer")]
            )
        digest = _digest(token.strip())
        held = "admin" if any(hmac.compare_digest(digest, f) for f in self._fixed) else None
        held = held or self._stored.get(digest)
        if held is None:
            raise HttpError(
                401, "the token is not known", headers=[(b"www-authenticate", b"Bearer")]
            )
        if role not in _MAY[held]:
            raise HttpError(403, f"the token's role is {held}; this needs {role}")

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._read_at < REFRESH:
            return
        self._read_at = now
        with self._database.reading() as connection:
            rows = connection.all("SELECT hash, role FROM token WHERE revoked IS NULL")
        self._stored = {bytes(digest): role for digest, role in rows}
