"""JDBC drivers whose URLs have a form of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import address
from .address import NamingError
from .jdbc_urls import options, pick, plain
from .registry import STORES

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jdbc_urls import Parsed


def _oracle(rest: str) -> Parsed:
    rest = re.sub(r"^\w+:", "", rest)
    head, _, query = rest.partition("?") if "@" in rest.partition("?")[0] else (rest, "", "")
    login, at, target = head.rpartition("@")
    if not at:
        raise NamingError("an Oracle URL without @ names no host")
    user = login.partition("/")[0].strip('"') or options(query).get("user", "")
    parts = {"schema": user.upper()} if user else {}
    target = re.sub(r"^(?:tcps?:)?(?://)?", "", target.strip())
    if target.startswith("("):
        return _tns(target, parts)
    hosts = r"^(\[[^\]]+\]|[^:/,\s]+)(?::(\d+)(?=[,/:]))?(?:,[^:/,\s]+(?::\d+(?=,))?)*"
    match = re.match(hosts + r"(?::(\d+))?(?:[:/]([^:/?]+))?", target)
    if not match or not match[4] or target.startswith(("ldap", "//")):
        raise NamingError("an Oracle alias or directory entry says neither host nor service")
    # A port after the last of several hosts is the port of all that have none.
    place = address.parse(match[1], address.port_number(match[2] or match[3] or "1521"))
    return "oracle", f"oracle://{place}", {**parts, "service": match[4]}


def _tns(text: str, parts: dict[str, str]) -> Parsed:
    def find(key: str) -> str:
        match = re.search(rf"\(\s*{key}\s*=\s*([^()\s]+)\s*\)", text, re.IGNORECASE)
        return match[1] if match else ""

    service = find("SERVICE_NAME") or find("SID")
    if not find("HOST") or not service:
        raise NamingError("the Oracle descriptor holds no HOST or no SERVICE_NAME or SID")
    place = address.parse(find("HOST"), address.port_number(find("PORT") or "1521"))
    return "oracle", f"oracle://{place}", {**parts, "service": service}


def _sqlserver(rest: str) -> Parsed:
    rest = re.sub(r"^(?:sqlserver|sybase):", "", rest, flags=re.IGNORECASE).removeprefix("//")
    head, _, tail = rest.partition(";")
    found = options(tail)
    server, _, path = head.partition("/")
    host, _, instance = server.rpartition("@")[2].partition("\\")
    instance, _, late_port = instance.replace(",", ":").partition(":")
    place = address.parse(host or pick(found, "servername", "server") or "localhost")
    late_port = late_port or pick(found, "portnumber", "port")
    port = place.port or (address.port_number(late_port) if late_port else None)
    instance = instance or pick(found, "instancename", "instance")
    database = path.strip("/") or pick(found, "databasename", "database")
    parts = {"database": database} if database else {}
    if place.host.endswith(".sql.azuresynapse.net"):
        return "synapse", f"sqlserver://{place.host}:{port or 1433}", {}
    if instance and not port:
        return "mssql", f"mssql://{place.host}/{instance.lower()}", parts
    return "mssql", f"mssql://{place.host}:{port or 1433}", parts


def _snowflake(rest: str) -> Parsed:
    found = options(rest.partition("?")[2])
    account = address.snowflake(rest)
    parts = {"database": pick(found, "db", "database"), "schema": pick(found, "schema")}
    return "snowflake", f"snowflake://{account}", {k: v.strip('"') for k, v in parts.items()}


def _redshift(rest: str) -> Parsed:
    if rest.lower().startswith("iam:"):
        rest = rest[4:]
        match = re.match(r"^//([a-z0-9\-]+):([a-z]{2}-[a-z0-9\-]+)(?=[/;?])(.*)$", rest)
        if match:
            rest = f"//{match[1]}.{match[2]}:5439{match[3]}"
    _, _, parts = plain("postgresql", rest)
    return "redshift", f"redshift://{address.redshift(address.first(rest))}", parts


def _bigquery(rest: str) -> Parsed:
    found = options(rest)
    parts = {"project": pick(found, "projectid"), "dataset": pick(found, "defaultdataset")}
    return "bigquery", "bigquery", parts


def _athena(rest: str) -> Parsed:
    found = options(rest.removeprefix("//"))
    region = pick(found, "awsregion", "region")
    if match := re.search(r"athena\.([a-z0-9\-]+)\.amazonaws", rest):
        region = region or match[1]
    parts = {"catalog": pick(found, "catalog"), "database": pick(found, "database", "schema")}
    return "athena", STORES["athena"].at(region=region), parts


def _databricks(rest: str) -> Parsed:
    host = address.first(rest)
    found = options(rest.partition(";")[2])
    if not re.search(r"databricks|azuredatabricks", host.host) and "httppath" not in found:
        return plain("hive2", rest)
    path = rest.removeprefix("//").partition(";")[0].partition("/")[2].strip("/")
    parts = {
        "catalog": pick(found, "conncatalog", "catalog"),
        "schema": pick(found, "connschema", "schema") or path or "default",
    }
    return "unity", STORES["unity"].at(host=str(host)), parts


def _spanner(rest: str) -> Parsed:
    match = re.search(r"projects/([^/]+)/instances/([^/]+)/databases/([^/?;]+)", rest)
    if not match:
        raise NamingError("a Spanner URL names a project, an instance and a database")
    return "spanner", f"spanner://{match[1]}:{match[2]}", {"database": match[3]}


def _embedded(key: str) -> Callable[[str], Parsed]:
    def read(rest: str) -> Parsed:
        text = re.sub(r"^(?:file|jar|zip|nio|split|directory|classpath):", "", rest)
        remote = re.match(r"^(?:tcp:|ssl:|hsql:|hsqls:|http:|https:)?//(?=[^/])(.*)$", text)
        path = re.split(r"[;?]", text, maxsplit=1)[0]
        if remote and key not in ("sqlite", "duckdb"):
            authority, tail = address.split_authority(remote[1])
            place = address.parse(authority, STORES[key].port)
            database = re.split(r"[;?]", tail, maxsplit=1)[0].strip("/")
            return key, f"{key}://{place}", {"database": database.rpartition("/")[2]}
        if not path or path.startswith((":memory:", "mem:", "memory:")):
            return key, f"{key}://:memory:", {"database": path.partition(":")[2] or "memory"}
        path = re.sub(r"^//+", "/", path)
        return key, f"{key}://{path}", {"database": path.rpartition("/")[2]}

    return read


def _duckdb(rest: str) -> Parsed:
    key, namespace, _ = _embedded("duckdb")(rest)
    return key, namespace, {"database": address.duckdb(namespace.partition("://")[2])}


def _sybase(rest: str) -> Parsed:
    text = re.sub(r"^tds:", "", rest, flags=re.IGNORECASE).removeprefix("//")
    authority, tail = address.split_authority(text)
    database = re.split(r"[;?]", tail.removeprefix("/"), maxsplit=1)[0]
    return "sybase", f"sybase://{address.parse(authority, 5000)}", {"database": database}


def _jtds(rest: str) -> Parsed:
    return _sybase(rest[7:]) if rest.lower().startswith("sybase:") else _sqlserver(rest)


def _druid(rest: str) -> Parsed:
    match = re.search(r"url=([^;]+)", rest, re.IGNORECASE)
    if not match:
        raise NamingError("an Avatica URL names its server by url=")
    return "druid", f"druid://{address.first(match[1], 8888)}", {}


def _phoenix(rest: str) -> Parsed:
    text = re.sub(r"^(?:thin|zk|rpc|master)[:+]", "", rest)
    if match := re.search(r"url=([^;]+)", text, re.IGNORECASE):
        return "phoenix", f"phoenix://{address.first(match[1], 8765)}", {}
    hosts, _, tail = text.partition(":")
    port = tail.partition(":")[0].partition(";")[0]
    place = address.parse(hosts.split(",")[0], int(port) if port.isdigit() else 2181)
    return "phoenix", f"phoenix://{place}", {}


SPECIAL: dict[str, Callable[[str], Parsed]] = {
    "oracle": _oracle,
    "sqlserver": _sqlserver,
    "microsoft": _sqlserver,
    "jtds": _jtds,
    "sybase": _sybase,
    "snowflake": _snowflake,
    "redshift": _redshift,
    "bigquery": _bigquery,
    "awsathena": _athena,
    "athena": _athena,
    "databricks": _databricks,
    "spark": _databricks,
    "cloudspanner": _spanner,
    "avatica": _druid,
    "phoenix": _phoenix,
    "duckdb": _duckdb,
    **{key: _embedded(key) for key in ("sqlite", "h2", "derby", "hsqldb")},
}
