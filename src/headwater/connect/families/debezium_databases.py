"""The databases that Debezium reads: where each keeps its tables, and by which keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DebeziumDatabase:
    """One database: its store, and how many parts an id of a table has in lists and in topics."""

    store: str
    parts: int = 2
    database: tuple[str, ...] = ("database.dbname",)
    outer: tuple[str, ...] = ("schema.include.list", "schema.whitelist")
    listed: tuple[str, ...] = ("table.include.list", "table.whitelist")
    barred: tuple[str, ...] = ("table.exclude.list", "table.blacklist")
    host: tuple[str, ...] = ("database.hostname",)
    rows: bool = True
    qualified: bool = False
    """Whether an id in a list may have the database before it, which the topic does not."""
    capitals: bool = False

    @property
    def outer_barred(self) -> tuple[str, ...]:
        """The keys that leave schemas or databases out, beside those that list them."""
        others = (k.replace("include", "exclude").replace("white", "black") for k in self.outer)
        return tuple(key for key in others if key not in self.outer)

    def folded(self, ident: str) -> str:
        """An id from a list, which fits in any case, as the database itself spells it."""
        return ident.upper() if self.capitals and ident == ident.lower() else ident


KINDS = {
    "postgres": DebeziumDatabase("postgres"),
    "mysql": DebeziumDatabase("mysql", database=(), outer=("database.include.list", "database.whitelist")),
    "mariadb": DebeziumDatabase("mariadb", database=(), outer=("database.include.list",)),
    "sqlserver": DebeziumDatabase("mssql", 3, ("database.names", "database.dbname"), qualified=True),
    "oracle": DebeziumDatabase("oracle", database=("database.pdb.name", "database.service.name",
                                       "database.dbname"), capitals=True),
    "db2": DebeziumDatabase("db2", capitals=True),
    "as400": DebeziumDatabase("as400", database=()),
    "informix": DebeziumDatabase("informix", qualified=True),
    "cockroachdb": DebeziumDatabase("cockroachdb"),
    "yugabytedb": DebeziumDatabase("yugabytedb"),
    "vitess": DebeziumDatabase("vitess", database=(), outer=("vitess.keyspace",)),
    "spanner": DebeziumDatabase("spanner", 1, ("gcp.spanner.database.id",)),
    "mongodb": DebeziumDatabase("mongodb", database=(), rows=False,
                    outer=("database.include.list", "database.whitelist"),
                    listed=("collection.include.list", "collection.whitelist"),
                    barred=("collection.exclude.list", "collection.blacklist"),
                    host=("mongodb.connection.string", "mongodb.hosts")),
    "scylla": DebeziumDatabase("cassandra", database=(), listed=("scylla.table.names",),
                   host=("scylla.cluster.ip.addresses",)),
}  # fmt: skip

_COMMON = ("topic.prefix", "database.server.name", "topic.delimiter", "topic.naming.strategy")
CLASSES: dict[str, tuple[str, ...]] = {
    "postgres": ("io.debezium.connector.postgresql.PostgresConnector",
                 "io.debezium.connector.v2.postgresql.PostgresConnectorV2",
                 "PostgresCdcSource", "PostgresCdcSourceV2"),
    "mysql": ("io.debezium.connector.mysql.MySqlConnector",
              "io.debezium.connector.v2.mysql.MySqlConnectorV2",
              "MySqlCdcSource", "MySqlCdcSourceV2"),
    "mariadb": ("io.debezium.connector.mariadb.MariaDbConnector",
                "io.debezium.connector.v2.mariadb.MariaDbConnector", "MariaDbCdcSource"),
    "sqlserver": ("io.debezium.connector.sqlserver.SqlServerConnector",
                  "io.debezium.connector.v2.sqlserver.SqlServerConnectorV2",
                  "SqlServerCdcSource", "SqlServerCdcSourceV2"),
    "oracle": ("io.debezium.connector.oracle.OracleConnector",
               "io.confluent.connect.oracle.xstream.cdc.OracleXStreamSourceConnector",
               "OracleXStreamSource"),
    "db2": ("io.debezium.connector.db2.Db2Connector",),
    "as400": ("io.debezium.connector.db2as400.As400RpcConnector",),
    "informix": ("io.debezium.connector.informix.InformixConnector",),
    "cockroachdb": ("io.debezium.connector.cockroachdb.CockroachDBConnector",),
    "yugabytedb": ("io.debezium.connector.yugabytedb.YugabyteDBConnector",
                   "io.debezium.connector.yugabytedb.YugabyteDBgRPCConnector"),
    "vitess": ("io.debezium.connector.vitess.VitessConnector",),
    "spanner": ("io.debezium.connector.spanner.SpannerConnector",),
    "mongodb": ("io.debezium.connector.mongodb.MongoDbConnector",),
    "scylla": ("com.scylladb.cdc.debezium.connector.ScyllaConnector",),
}  # fmt: skip
_EXTRA = {
    "oracle": ("database.url",),
    "sqlserver": ("database.instance",),
    "spanner": ("gcp.spanner.project.id", "gcp.spanner.instance.id"),
    "mongodb": ("mongodb.name",),
    "scylla": ("scylla.port", "scylla.name"),
}


def keys_of(name: str) -> tuple[str, ...]:
    """The keys that are read for a database."""
    kind = KINDS[name]
    port = () if name in ("mongodb", "spanner", "scylla") else ("database.port",)
    host = () if name == "spanner" else kind.host
    return (*host, *port, *kind.database, *kind.outer, *kind.outer_barred, *kind.listed, *kind.barred, *_COMMON,
            *_EXTRA.get(name, ()))  # fmt: skip
