"""How each JDBC driver writes hosts, database and schema."""

from __future__ import annotations

import re
from urllib.parse import unquote

from . import address
from .address import NamingError
from .registry import STORES

Parsed = tuple[str, str, dict[str, str]]

# Sub-protocol to store and the driver's own default port, for URLs of the form //hosts/database.
PLAIN: dict[str, tuple[str, int | None]] = {
    "postgresql": ("postgres", None),
    "postgres": ("postgres", None),
    "pgsql": ("postgres", None),
    "pivotal": ("greenplum", None),
    "mariadb": ("mariadb", None),
    "mysql": ("mysql", None),
    "mysql+srv": ("mysql", None),
    "mysqlx": ("mysql", 33060),
    "oceanbase": ("oceanbase", None),
    "tidb": ("tidb", None),
    "doris": ("doris", None),
    "starrocks": ("starrocks", None),
    "singlestore": ("singlestore", None),
    "memsql": ("singlestore", None),
    "cockroachdb": ("cockroachdb", None),
    "yugabytedb": ("yugabytedb", None),
    "vitess": ("vitess", None),
    "crate": ("crate", None),
    "db2": ("db2", None),
    "as400": ("as400", None),
    "clickhouse": ("clickhouse", None),
    "ch": ("clickhouse", None),
    "vertica": ("vertica", None),
    "sap": ("sap", None),
    "informix-sqli": ("informix", None),
    "firebirdsql": ("firebird", None),
    "firebird": ("firebird", None),
    "netezza": ("netezza", None),
    "hive2": ("hive", 10000),
    "hive": ("hive", 10000),
    "impala": ("impala", None),
    "trino": ("trino", 80),
    "presto": ("presto", 80),
    "teradata": ("teradata", None),
    "cassandra": ("cassandra", None),
    "ignite": ("ignite", None),
    "exa": ("exasol", None),
    "dremio": ("dremio", None),
    "pinot": ("pinot", None),
    "redis": ("redis", None),
    "neo4j": ("neo4j", None),
    "mongodb+srv": ("mongodb", None),
    "mongodb": ("mongodb", None),
    "elasticsearch": ("elasticsearch", None),
    "es": ("elasticsearch", None),
    "opensearch": ("opensearch", None),
    "influxdb": ("influxdb", None),
    "solr": ("solr", None),
}
SCHEMA_IS_USER = frozenset({"oracle", "db2", "sap"})
_TLS_PORTS = {"trino": 443, "presto": 443, "clickhouse": 8443}
_MODES = re.compile(r"^(?:[A-Za-z][\w+\-]*:)+(?=//|[\w.\-]+[:/;,])")
_PAREN_HOST = re.compile(r"^\(?(?:address=)?\(.*?host\s*=\s*([^,)\s]+)", re.IGNORECASE)
_PAREN_PORT = re.compile(r"port\s*=\s*(\d+)", re.IGNORECASE)
_DATABASE_KEYS = ("databasename", "database", "dbname", "db", "catalog", "conncatalog")
_SCHEMA_KEYS = ("currentschema", "schema", "searchpath", "search_path", "libraries", "connschema")


def options(text: str, separators: str = ";&?#") -> dict[str, str]:
    """`;a=b;c={d}` or `?a=b&c=d` as a dict with lower-case keys; only asked keys are ever used."""
    found: dict[str, str] = {}
    for token in re.split(rf"[{separators}](?![^{{}}]*\}})", text):
        key, equals, value = token.partition("=")
        if equals:
            found.setdefault(key.strip(" :/").lower(), value.strip().strip("{}"))
    return found


def pick(found: dict[str, str], *keys: str) -> str:
    """The first of the keys that has a value."""
    return next((found[key] for key in keys if found.get(key)), "")


def plain(sub: str, rest: str) -> Parsed:
    """`//user:password@h1:p1,h2:p2/database/schema?options`, with each driver's small habits."""
    key, port = PLAIN[sub]
    rest = _MODES.sub("", rest)
    if "//" not in rest[:2]:
        return _bare(key, rest)
    authority, tail = _authority(rest)
    path, marks = _cut(tail)
    found = options(tail, "/,") if key == "teradata" else options(marks)
    place = _first(key, authority, found, port)
    parts = _parts(key, path, found)
    store = STORES[key]
    if "port" in store.fields and place.port is None and "cloudsqlinstance" not in found:
        raise NamingError(f"{store.title}: the port is needed")
    return key, f"{store.scheme}://{place}", parts


def _bare(key: str, rest: str) -> Parsed:
    """`jdbc:postgresql:shop` means localhost; other drivers write `host:port;options` here."""
    path, marks = _cut(rest.removeprefix("/"))
    found = options(rest)
    if key in ("exasol", "dremio"):
        hosts = pick(found, "direct", "zk") or path
        place = address.first(re.sub(r"\.\.\d+", "", hosts), STORES[key].port)
        return key, f"{STORES[key].scheme}://{place}", _parts(key, "", found)
    if ":" in path or key in ("teradata", "as400"):
        place = address.first(path, STORES[key].port)
        return key, f"{STORES[key].scheme}://{place}", _parts(key, "", found)
    port = STORES[key].port
    if not port:
        raise NamingError("no host")
    return key, f"{STORES[key].scheme}://localhost:{port}", _parts(key, path, options(marks))


def _authority(rest: str) -> tuple[str, str]:
    rest = address.strip_scheme(re.sub(r"^//+(?=\w+://)", "", rest).removeprefix("//"))
    if "(" in rest[:12]:
        end = rest.rfind(")") + 1
        return rest[:end], rest[end:]
    return address.split_authority(rest)


def _cut(tail: str) -> tuple[str, str]:
    match = re.search(r"[?;#]|(?<=\w):(?=\w+=)", tail)
    return (tail, "") if not match else (tail[: match.start()], tail[match.start() :])


def _first(key: str, authority: str, found: dict[str, str], port: int | None) -> address.Address:
    if match := _PAREN_HOST.match(authority):
        inner = authority.split("),(", 1)[0]
        number = _PAREN_PORT.search(inner)
        return address.Address(
            match[1].lower(), address.port_number(number[1]) if number else STORES[key].port
        )
    if not authority and (instance := found.get("cloudsqlinstance")):
        return address.Address(instance.lower())
    default = port or STORES[key].port
    if pick(found, "ssl", "secure").lower() in ("true", "1"):
        default = _TLS_PORTS.get(key, default)
    if key == "teradata":
        given = pick(found, "dbs_port")
        default = address.port_number(given) if given else default
    hosts = re.split(r",|--", authority)
    place = address.parse(hosts[0] or "localhost", None)
    if place.port is None and key == "cassandra":
        default = next(map(address.port_number, re.findall(r":(\d+)", authority)), default)
    return place if place.port else place._replace(port=default)


def _parts(key: str, path: str, found: dict[str, str]) -> dict[str, str]:
    levels = [_decoded(level) for level in path.split("/") if level and "=" not in level]
    names = STORES[key].name_fields
    schema = _decoded(pick(found, *_SCHEMA_KEYS)).split(",", 1)[0].strip("\"' ")
    parts = {"schema": schema} if schema else {}
    outer = levels[0] if levels else _decoded(pick(found, *_DATABASE_KEYS))
    if key == "firebird" and levels:  # a path on the server: its last part is the database's file
        outer = levels[-1]
    if outer and len(names) > 1:
        parts[names[0]] = outer
    if len(levels) > 1 and "schema" in names[1:]:
        parts["schema"] = levels[1]
    if key in ("oceanbase", "mysql", "mariadb", "doris", "starrocks") and "." in outer:
        parts[names[0]] = outer.rpartition(".")[2] if key in ("doris", "starrocks") else outer
    if key == "hive" and not outer:
        parts["database"] = "default"
    if key == "postgres" and not outer and (user := pick(found, "user")):
        parts["database"] = user
    if key in SCHEMA_IS_USER and "schema" not in parts and (user := pick(found, "user", "uid")):
        parts["schema"] = user.upper()
    return parts


def _decoded(text: str) -> str:
    plain_text = unquote(text)
    return text if set(plain_text) & set("?&=@:/;") else plain_text
