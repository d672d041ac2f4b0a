"""One spelling for names that others send."""

from __future__ import annotations

import re
from functools import lru_cache

from headwater.lineage.secrets import CONTAINER_SCHEMES, redact, strip_query, strip_users

from . import address, jdbc
from .address import WEB_PORTS, NamingError
from .registry import SCHEMES
from .store import DatasetName
from .uri import KEYED, container

_NAMESPACE = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-_]*)://(.*)$", re.DOTALL)
_QUERY = re.compile(r"[?#;].*$", re.DOTALL)
_PATHS = {"file", "hdfs", "dbfs", "sftp", "ftp"}
_OUTER = {"database", "catalog", "keyspace", "service"}
# What stands before their names is never the end of the namespace too, or is a file's own name there.
_KEEP_NAMESPACE = {"mssql", "duckdb"}
_PLAIN = {"bigquery", "pubsub", "file"}
# Their authority is no host: case may matter, and nothing may be added.
_OPAQUE = KEYED | {"dbfs", "spanner", "bigtable", "sqlite", "duckdb", "inmemory"}
# A port may be missing on purpose: a nameservice, or a host behind a web proxy.
_PORTLESS = {"hdfs", "box", "filenet", "mssharepoint"}
# A metastore's own scheme: its address stands for Hive's tables, and has a default port.
_METASTORE = ("thrift", 9083)


def canonical(namespace: str, name: str) -> DatasetName:
    """Spell a name as this module would, without credentials and query strings.

    Scheme and host become lower-case, other spellings of a scheme and missing default ports are
    settled, and the first of several hosts stays. The case of names and paths is never touched, and
    what cannot be read comes back unchanged, credentials apart.
    """
    space = _namespace(namespace)
    scheme = space.split("://", 1)[0]
    name = _name(scheme, name)
    if scheme == "sqlserver" and name.count(".") == 2:
        # Synapse names have two parts; three parts are SQL Server under its driver's name.
        space = "mssql" + space[len(scheme) :]
    if scheme == "duckdb" and name:
        name = _qualified(space.partition("://")[2], name)
    store = SCHEMES.get(scheme)
    outer = store is not None and store.name_fields[0] in _OUTER
    if outer and scheme not in _KEEP_NAMESPACE and space.count("/") == 3:
        # The database stands in both: once is enough.
        head, _, database = space.rpartition("/")
        space = head if name.startswith(f"{database}.") else space
    return DatasetName(space, name)


def _qualified(path: str, name: str) -> str:
    """A table of DuckDB with its schema and its database, which the file names."""
    database, missing = address.duckdb(path), 2 - name.count(".")
    return ".".join([*(database, "main")[: max(missing, 0)], name]) if database else name


@lru_cache(maxsize=16_384)
def _namespace(namespace: str) -> str:
    # Odd input may become readable once its query is gone: read on until nothing changes.
    for _ in range(8):
        before, namespace = namespace, _once(namespace)
        if namespace == before:
            break
    return namespace


def _once(namespace: str) -> str:
    text = address.first_url(namespace.strip())
    if text.lower().startswith("jdbc:"):
        try:
            return jdbc.parse_jdbc(text).namespace
        except NamingError:
            return _QUERY.sub("", redact(strip_users(text)))
    match = _NAMESPACE.match(text)
    if not match:
        return redact(namespace)
    scheme, rest = match[1].lower(), match[2]
    port = _METASTORE[1] if scheme == _METASTORE[0] else None
    if store := SCHEMES.get(scheme):
        scheme = store.scheme
    if scheme in _PLAIN and rest.strip("/") in ("", "localhost"):
        return scheme
    try:
        return _spell(scheme, rest, port)
    except NamingError:
        return _QUERY.sub("", redact(strip_users(text)))


def _spell(scheme: str, rest: str, port: int | None = None) -> str:
    if scheme in CONTAINER_SCHEMES:
        authority, slash, path = rest.partition("/")
        return f"{scheme}://{container(authority)}{_path(slash + path)}"
    if scheme in _OPAQUE:
        authority, path = address.split_authority(rest, at_in_path=True)
        return f"{scheme}://{authority}{_path(path)}"
    if scheme == "snowflake":
        return f"snowflake://{address.snowflake(rest)}"
    authority, path = address.split_authority(
        address.strip_scheme(rest), at_in_path=scheme in WEB_PORTS
    )
    path = _path(path)
    place = address.parse(authority.split(",", 1)[0])
    if port and not place.port:
        place = place._replace(port=port)
    if scheme == "redshift":
        return f"redshift://{address.redshift(place)}"
    if scheme == "redis" and path == "/0":
        path = ""
    return f"{scheme}://{_place(scheme, place, path)}{path}"


def _place(scheme: str, place: address.Address, path: str) -> address.Address:
    if scheme in WEB_PORTS:
        return place._replace(port=None) if place.port == WEB_PORTS[scheme] else place
    store = SCHEMES.get(scheme)
    if not store or not store.port or scheme in _PORTLESS:
        return place
    if "port" not in store.fields:
        return place._replace(port=None) if place.port == store.port else place
    if scheme == "mssql" and path:
        return place
    return place if place.port else place._replace(port=store.port)


def _path(path: str) -> str:
    return _QUERY.sub("", path).rstrip("/")


def _name(scheme: str, name: str) -> str:
    if scheme in WEB_PORTS:
        return _QUERY.sub("", strip_users(name))
    if scheme in KEYED or scheme in _PATHS:
        path = strip_query(strip_users(name))
        path = path.lstrip("/") if scheme in KEYED else path
        return path.rstrip("/") or name[:1]
    if "=" not in name and "://" not in name:
        return name
    clean = redact(strip_users(name))
    return name if clean == name else redact(strip_query(strip_users(name)))
