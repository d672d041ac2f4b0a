"""Warehouses, query engines and catalogs."""

from __future__ import annotations

from .store import Store

_HP = "{host}:{port}"
_DST = "{database}.{schema}.{table}"
_CST = "{catalog}.{schema}.{table}"

SPECIFIED = (
    Store(
        "athena",
        "Athena",
        "awsathena://athena.{region}.amazonaws.com",
        "{catalog}.{database}.{table}",
        defaults=(("catalog", "AwsDataCatalog"),),
    ),
    Store("glue", "AWS Glue", "arn:aws:glue:{region}:{account}", "table/{database}/{table}"),
    Store("cosmos", "Azure Cosmos DB", "azurecosmos://{host}/dbs/{database}", "colls/{table}", 443),
    Store(
        "kusto",
        "Azure Data Explorer",
        "azurekusto://{host}.kusto.windows.net",
        "{database}/{table}",
        443,
    ),
    Store(
        "synapse",
        "Azure Synapse",
        f"sqlserver://{_HP}",
        "{schema}.{table}",
        1433,
        defaults=(("schema", "dbo"),),
    ),
    Store("bigquery", "BigQuery", "bigquery", "{project}.{dataset}.{table}"),
    Store("fabric", "Microsoft Fabric Warehouse", "fabric-warehouse://{host}", _DST, 1433),
    Store("hive", "Hive", f"hive://{_HP}", "{database}.{table}", schemes=("thrift",)),
    Store(
        "redshift",
        "Redshift",
        "redshift://{cluster}.{region}:{port}",
        _DST,
        5439,
        defaults=(("schema", "public"),),
    ),
    Store(
        "snowflake", "Snowflake", "snowflake://{account}", _DST, defaults=(("schema", "PUBLIC"),)
    ),
    Store("teradata", "Teradata", f"teradata://{_HP}", "{database}.{table}", 1025),
    Store("trino", "Trino", f"trino://{_HP}", _CST),
    Store("unity", "Unity Catalog", "unitycatalog://{host}", _CST, 443),
    Store("milvus", "Milvus", f"milvus://{_HP}", "{database}.{collection}", 19530),
)

OURS = (
    Store(
        "presto", "Presto", f"presto://{_HP}", _CST, ours=True, why="as Trino, which it was once"
    ),
    Store(
        "impala",
        "Impala",
        f"impala://{_HP}",
        "{database}.{table}",
        21050,
        ours=True,
        why="as Hive, by the daemon it was asked through",
    ),
    Store(
        "dremio",
        "Dremio",
        f"dremio://{_HP}",
        "{schema}.{table}",
        31010,
        ours=True,
        why="a space or source path is its schema",
    ),
    Store(
        "druid",
        "Druid",
        f"druid://{_HP}",
        "{datasource}",
        8888,
        ours=True,
        why="a datasource is its table; clients connect to the router",
    ),
    Store(
        "pinot",
        "Pinot",
        f"pinot://{_HP}",
        "{table}",
        9000,
        ours=True,
        why="tables are unique in a cluster; clients connect to the controller",
    ),
    Store(
        "bigtable",
        "Bigtable",
        "bigtable://{project}:{instance}",
        "{table}",
        ours=True,
        why="as Spanner: the project and the instance",
    ),
    Store(
        "s3tables",
        "S3 Tables",
        "arn:aws:s3tables:{region}:{account}",
        "bucket/{bucket}/{namespace}/{table}",
        ours=True,
        why="as Glue: the ARN names region and account",
    ),
)
