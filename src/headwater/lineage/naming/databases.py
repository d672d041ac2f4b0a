"""Relational databases."""

from __future__ import annotations

from .store import Store

_HP = "{host}:{port}"
_DST = "{database}.{schema}.{table}"
_DT = "{database}.{table}"
_PUBLIC = (("schema", "public"),)
_JDBC = "the JDBC sub-protocol is what every tool already calls it"

SPECIFIED = (
    Store("postgres", "PostgreSQL", f"postgres://{_HP}", _DST, 5432, ("postgresql",), _PUBLIC),
    Store("mysql", "MySQL", f"mysql://{_HP}", _DT, 3306),
    Store("mssql", "SQL Server", f"mssql://{_HP}", _DST, 1433, (), (("schema", "dbo"),)),
    Store("oracle", "Oracle", f"oracle://{_HP}", "{service}.{schema}.{table}", 1521),
    Store("db2", "DB2", f"db2://{_HP}", _DST, 50000),
    Store("crate", "CrateDB", f"crate://{_HP}", _DST, 5432, (), (("schema", "doc"),)),
    Store("oceanbase", "OceanBase", f"oceanbase://{_HP}", _DT, 2881),
    Store("cassandra", "Cassandra", f"cassandra://{_HP}", "{keyspace}.{table}", 9042),
    Store("spanner", "Spanner", "spanner://{project}:{instance}", _DST),
)

_SERVERS = tuple(
    Store(key, title, f"{key}://{_HP}", name, port, schemes, defaults, ours=True, why=why)
    for key, title, name, port, schemes, defaults, why in (
        ("mariadb", "MariaDB", _DT, 3306, (), (), "its own product with its own driver"),
        ("cockroachdb", "CockroachDB", _DST, 26257, (), _PUBLIC, "speaks PostgreSQL, is not it"),
        ("yugabytedb", "YugabyteDB", _DST, 5433, ("yugabyte",), _PUBLIC, _JDBC),
        ("singlestore", "SingleStore", _DT, 3306, ("memsql",), (), _JDBC),
        ("vitess", "Vitess", "{keyspace}.{table}", 15991, (), (), "a keyspace is its database"),
        ("tidb", "TiDB", _DT, 4000, (), (), "speaks MySQL, is not it"),
        ("doris", "Doris", _DT, 9030, (), (), "named like MySQL, by its query port"),
        ("starrocks", "StarRocks", _DT, 9030, (), (), "named like MySQL, by its query port"),
        ("questdb", "QuestDB", "{table}", 9000, (), (), "one database a server: the table is all"),
        ("clickhouse", "ClickHouse", _DT, 8123, ("ch",), (("database", "default"),), _JDBC),
        ("vertica", "Vertica", _DST, 5433, (), _PUBLIC, _JDBC),
        ("sap", "SAP HANA", _DST, 30015, ("hana", "saphana"), (), _JDBC),
        ("sybase", "Sybase ASE", _DST, 5000, (), (("schema", "dbo"),), _JDBC),
        ("informix", "Informix", _DST, 9088, ("informix-sqli",), (), _JDBC),
        ("as400", "DB2 for i", "{schema}.{table}", 446, (), (), "a library is its schema"),
        ("h2", "H2", _DST, 9092, (), (("schema", "PUBLIC"),), _JDBC),
        ("derby", "Derby", _DST, 1527, (), (), _JDBC),
        ("hsqldb", "HSQLDB", _DST, 9001, (), (("schema", "PUBLIC"),), _JDBC),
        ("firebird", "Firebird", _DT, 3050, ("firebirdsql",), (), _JDBC),
        ("exasol", "Exasol", "{schema}.{table}", 8563, ("exa",), (), "one database a server"),
        ("netezza", "Netezza", _DST, 5480, (), (), _JDBC),
        ("greenplum", "Greenplum", _DST, 5432, (), _PUBLIC, "speaks PostgreSQL, is not it"),
        ("ignite", "Ignite", "{schema}.{table}", 10800, (), (("schema", "PUBLIC"),), _JDBC),
        ("phoenix", "Phoenix", "{schema}.{table}", 2181, (), (), "named by its ZooKeeper quorum"),
    )
)

OURS = (
    *_SERVERS,
    Store(
        "sqlite", "SQLite", "sqlite://{path}", "{table}", ours=True, why="a database is one file"
    ),
    Store(
        "duckdb",
        "DuckDB",
        "duckdb://{path}",
        _DST,
        defaults=(("schema", "main"),),
        ours=True,
        why="a database is one file, and called as the file up to its first dot; dbt reports the same",
    ),
)
