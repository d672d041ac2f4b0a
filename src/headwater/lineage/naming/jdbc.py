"""JDBC URLs of every dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from headwater.lineage.secrets import redact

from . import jdbc_special_urls, jdbc_urls
from .address import NamingError
from .identifier import split
from .registry import STORES
from .store import DatasetName

_LONGEST = 8192
_WRAPPERS = re.compile(
    r"^(?:aws-wrapper|p6spy|otel|tc|log4jdbc|tracing|datadog|sqlcommenter|google|pgbouncer):",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class JdbcTarget:
    """What a JDBC URL points at: a store, its namespace, and the parts it fixes for every table."""

    store: str
    namespace: str
    parts: dict[str, str] = field(default_factory=dict)

    def dataset(
        self,
        table: str,
        *,
        schema: str | None = None,
        database: str | None = None,
        user: str | None = None,
    ) -> DatasetName:
        """Name a table, qualified or not.

        A qualifier of the table wins over the URL, the URL over the arguments, and those over the
        store's default. `user` is the login where the store takes its schema from it.
        """
        store = STORES[self.store]
        names = store.name_fields
        given = split(table)
        if not given:
            raise NamingError("an empty table name names no dataset")
        if (extra := len(given) - len(names)) > 0:
            linked = self.store == "mssql"  # server.database.schema.table
            head = [given[extra]] if linked else [".".join(given[: extra + 1])]
            given = head + given[extra + 1 :]
        values = dict(store.defaults)
        if user and self.store in jdbc_urls.SCHEMA_IS_USER:
            values["schema"] = user.upper()
        if user and self.store == "postgres":
            values["database"] = user
        asked = {"schema": schema or "", names[0]: database or ""}
        for source in (asked, self.parts, dict(zip(names[-len(given) :], given, strict=True))):
            values.update({key: value for key, value in source.items() if value})
        if missing := [name for name in names if not values.get(name)]:
            raise NamingError(
                f"{store.title}: neither the JDBC URL nor the table {table!r} says which "
                f"{missing[0]} it is in"
            )
        name = re.sub(r"\{(\w+)\}", lambda match: values[match[1]], store.name)
        return DatasetName(self.namespace, name)


def from_jdbc(
    url: str,
    table: str,
    *,
    schema: str | None = None,
    database: str | None = None,
    user: str | None = None,
) -> DatasetName:
    """Name a table behind a JDBC URL; `schema`, `database` and `user` fill what the URL omits."""
    return parse_jdbc(url).dataset(table, schema=schema, database=database, user=user)


def parse_jdbc(url: str) -> JdbcTarget:
    """Read a JDBC URL of any dialect; the parts that may hold secrets are dropped at once."""
    text = re.sub(r"^jdbc-secretsmanager:", "jdbc:", url.strip(), flags=re.IGNORECASE)
    if text[:5].lower() != "jdbc:":
        raise NamingError(f"not a JDBC URL: {_shown(text)}")
    if len(text) > _LONGEST:
        raise NamingError(f"a JDBC URL of more than {_LONGEST} characters is not read")
    text = text[5:]
    while match := _WRAPPERS.match(text):
        text = text[match.end() :]
    sub, _, rest = text.partition(":")
    sub = sub.lower()
    reader = jdbc_special_urls.SPECIAL.get(sub)
    try:
        if reader:
            key, namespace, parts = reader(rest)
        elif sub in jdbc_urls.PLAIN:
            key, namespace, parts = jdbc_urls.plain(sub, rest)
        else:
            raise NamingError(f"no dialect is known for jdbc:{sub}")
    except NamingError as error:
        raise NamingError(f"{error} in {_shown(url)}") from None
    return JdbcTarget(key, namespace, parts)


def _shown(url: str) -> str:
    text = re.split(r"[?;]", redact(url), maxsplit=1)[0]
    return repr(text[:120])
