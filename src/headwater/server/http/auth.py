"""Who may do what: bearer tokens with a role, kept only as hashes."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import NotFoundError, UsageError
from headwater.server.http import HttpError
from headwater.server.http.proxies import Person
from headwater.server.store.database import StoreError, StoreUnavailableError
from headwater.server.store.read.namespace_limit import Limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.server.http.proxies import Credential
    from headwater.server.store import Store
    from headwater.server.store.database import Connection, Database

__all__ = [
    "ROLES",
    "Authenticator",
    "TokenInfo",
    "create_token",
    "list_tokens",
    "read_people",
    "revoke_token",
]

ROLES = ("write", "read", "admin")
_MAY = {
    "write": {"write"},
    "read": {"read"},
    "admin": {"write", "read", "admin"},
}
NOBODY = "none"
"""The role of somebody who may do nothing."""
REFRESH = 2.0
PATIENCE = 0.25
FIRST = 3.0


class TokenInfo(NamedTuple):
    """What is known of a token: never the token itself."""

    id: str
    name: str
    role: str
    created: int
    revoked: int | None
    namespaces: tuple[str, ...] = ()
    """What it may read; everything if empty."""


class _TokenGrant(NamedTuple):
    """What a token in use may do."""

    role: str
    limit: Limit | None = None
    name: str = ""


_ANYONE = _TokenGrant("admin")
"""What everyone may do where no token is needed."""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def read_people(texts: Sequence[str]) -> dict[str, str]:
    """The roles of people: `ROLE` is that of everyone, `NAME=ROLE` that of one; all may read else."""
    found = {"*": "read"}
    for text in texts:
        name, equals, role = text.rpartition("=")
        if role not in (*ROLES, NOBODY) or (equals and not name.strip()):
            raise UsageError(
                f"--user-role {text!r} is neither ROLE nor NAME=ROLE",
                hint=f"roles are {', '.join(ROLES)} and {NOBODY}",
            )
        found[name.strip() or "*"] = role
    return found


def create_token(store: Store, name: str, role: str, namespaces: Sequence[str] = ()) -> str:
    """Make a token and keep its hash; the token itself is shown this once.

    One with the role read can be limited to namespaces: names, or beginnings of names with a `*`.
    """
    if role not in ROLES:
        raise UsageError(f"no role {role!r}", hint=f"one of {', '.join(ROLES)}")
    if namespaces and role != "read":
        raise UsageError(
            f"a token with the role {role} cannot be limited to namespaces",
            hint="--namespaces limits reading: use it with --role read",
        )
    if not all(one.strip("*") and "*" not in one[:-1] for one in namespaces):
        raise UsageError(
            "a namespace is a name, or the beginning of names with a * at its end",
            hint="such as --namespaces shop,team-a*",
        )
    token = "hw_" + secrets.token_urlsafe(32)
    now = time.time_ns() // 1000
    limit = json.dumps(list(namespaces)) if namespaces else None
    row = (secrets.token_hex(4), name, role, _digest(token), now, limit)
    connection = store.connection
    connection.begin()
    sql = "INSERT INTO token (id, name, role, hash, created, namespaces) VALUES (?, ?, ?, ?, ?, ?)"
    connection.run(sql, row)
    connection.commit()
    return token


def list_tokens(connection: Connection) -> list[TokenInfo]:
    """Every token, the oldest first."""
    sql = "SELECT id, name, role, created, revoked, namespaces FROM token ORDER BY created"
    rows = connection.all(sql)
    return [TokenInfo._make((*row[:5], tuple(json.loads(row[5] or "[]")))) for row in rows]


def revoke_token(store: Store, token_id: str) -> None:
    """Revoke a token: requests with it are refused from now on."""
    connection = store.connection
    connection.begin()
    sql = "UPDATE token SET revoked = ? WHERE id = ? AND revoked IS NULL"
    count = connection.run(sql, (time.time_ns() // 1000, token_id))
    connection.commit()
    if not count:
        raise NotFoundError(f"no token {token_id!r} is in use", hint="headwater token list")


class Authenticator:
    """Checks a request's token against the ones given at start and the ones in the store.

    Without any token everyone may do everything, but only where nobody ever asked for more: a token
    given at start, or one that was ever in the store, closes the server. It stays closed when the
    last token is revoked; only starting it with `insecure` opens it again, as long as no token is
    in use.
    """

    def __init__(
        self,
        database: Database,
        fixed: list[str],
        *,
        insecure: bool = False,
        people: Mapping[str, str] | None = None,
    ) -> None:
        """`people`: the role of each person whom a proxy signs in, under `*` that of all others.

        A server that knows people is closed to whoever is none of them and has no token.
        """
        self._database = database
        self._fixed = dict.fromkeys(map(_digest, fixed), _TokenGrant("admin"))
        self._tokens: dict[bytes, _TokenGrant] | None = None
        self._insecure = insecure
        self._people = people
        self._closed = bool(fixed) or people is not None
        self._read_at = float("-inf")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="headwater-auth")
        self._reading: Future[None] | None = None

    @property
    def open(self) -> bool:
        """Whether no token is needed at all."""
        self._refresh()
        return not self._closed

    @property
    def locked(self) -> bool:
        """Whether a token is needed and none is in use, so that nobody can get in."""
        return not self._refresh() and self._closed and self._people is None

    @property
    def warning(self) -> str | None:
        """What anyone should know who looks after a server that was opened on purpose."""
        if not self._insecure or self._closed:
            return None
        return "no token is needed (--insecure): whoever reaches this server may do everything"

    def close(self) -> None:
        """Let go of the thread that reads tokens."""
        self._reader.shutdown(wait=False)

    def check(self, who: Credential, role: str) -> None:
        """Let the request pass, or raise 401 or 403."""
        held = self._held(who).role
        if role not in _MAY.get(held, ()):
            whose = f"{who.name}'s" if isinstance(who, Person) else "the token's"
            raise HttpError(403, f"{whose} role is {held}; this needs {role}")

    def limit(self, who: Credential) -> Limit | None:
        """The namespaces that the request may read; None where it may read all."""
        return self._held(who).limit

    def name(self, who: Credential) -> str:
        """The person or the name of the token that asks; empty where there is none."""
        return who.name if isinstance(who, Person) else self._held(who).name

    def may(self, who: Credential) -> list[str]:
        """The roles whose requests would pass: all of them where no token is needed."""
        try:
            return sorted(_MAY.get(self._held(who).role, ()))
        except (HttpError, StoreError):
            return []

    def _held(self, who: Credential) -> _TokenGrant:
        if isinstance(who, Person):
            people = self._people or {}
            return _TokenGrant(people.get(who.name) or people.get("*") or NOBODY)
        tokens = self._refresh()
        if not self._closed:
            return _ANYONE
        scheme, _, token = (who or b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _unknown("a bearer token is needed")
        digest = _digest(token.strip())
        held = None
        # Every token is compared, and each in the same time, so that the time taken reveals nothing.
        for known, its_own in tokens.items():
            if hmac.compare_digest(digest, known):
                held = its_own
        if held is None:
            raise _unknown("the token is not known")
        return held

    def _refresh(self) -> dict[bytes, _TokenGrant]:
        """The tokens in use, read again now and then.

        While the store is away, a token that was checked before is accepted without waiting, and no other is.
        """
        now = time.monotonic()
        if self._tokens is not None and now - self._read_at < REFRESH:
            return self._tokens
        if self._reading is None or self._reading.done():
            self._reading = self._reader.submit(self._load)
        try:
            self._reading.result(FIRST if self._tokens is None else PATIENCE)
        except (FutureTimeoutError, StoreError) as error:
            if self._tokens is None:
                message = getattr(error, "message", "") or "the store does not answer"
                raise StoreUnavailableError(f"tokens cannot be read: {message}") from error
        self._read_at = now
        assert self._tokens is not None
        return self._tokens

    def _load(self) -> None:
        """Read the tokens, on a thread of its own: what comes late counts too, for the next request."""
        with self._database.reading() as connection:
            rows = connection.all("SELECT hash, role, namespaces, revoked, name FROM token")
        used = {
            bytes(digest): _TokenGrant(role, _limit(namespaces), name)
            for digest, role, namespaces, revoked, name in rows
            if revoked is None
        }
        # Never set back: the rows of revoked tokens stay, but even without them nothing opens.
        if used or (rows and not self._insecure):
            self._closed = True
        self._tokens = {**used, **self._fixed}


def _limit(namespaces: str | None) -> Limit | None:
    return Limit(tuple(json.loads(namespaces))) if namespaces is not None else None


def _unknown(message: str) -> HttpError:
    return HttpError(401, message, headers=[(b"www-authenticate", b'Bearer realm="headwater"')])
