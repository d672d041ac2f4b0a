"""What happens to a table as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.naming import DatasetName

from .case import case

if TYPE_CHECKING:
    from .stage import Stage


def logical(s: Stage, name: str) -> None:
    """The name that is left of a table that is not there any more."""
    address = s.spark.conf.get("spark.sql.catalog.lab.uri")
    s.names[DatasetName(str(address), f"{s.namespace}.{name}")] = "out"


@case("""
    -> out
    unknown: everything
    operation: create_table
    change: CREATE
""")
def create(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using iceberg")


@case("""
    -> out
    unknown: everything
    operation: truncate_table
    change: TRUNCATE
""")
def truncate(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using iceberg")
    s.drain()
    s.sql("truncate table {out}")


@case("""
    -> out
    unknown: everything
    operation: alter_table
    change: ALTER
""")
def alter(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using iceberg")
    s.drain()
    s.sql("alter table {out} add column note string")


@case("""
    -> out
    unknown: everything
    operation: rename_table
    change: RENAME
""")
def rename(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using iceberg")
    s.drain()
    s.sql("alter table {out} rename to {ns}.renamed")


@case("""
    -> out
    unknown: everything
    operation: drop_table
    change: DROP
""")
def drop(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using iceberg")
    s.drain()
    logical(s, f"out_{s.case}")
    s.sql("drop table {out}")


@case("""
    -> out
    unknown: everything
    operation: alter_table
    change: ALTER
""")
def alter_plain_table(s: Stage) -> None:
    s.spark.sql("create table alter_plain (id bigint) using parquet")
    s.drain()
    s.names[DatasetName("file", f"{s.folder}/warehouse/alter_plain")] = "out"
    s.spark.sql("alter table alter_plain add columns (note string)")


@case("""
    -> out
    unknown: everything
    operation: rename_table
    change: RENAME
""")
def rename_plain_table(s: Stage) -> None:
    s.spark.sql("create table rename_old (id bigint) using parquet")
    s.drain()
    s.names[DatasetName("file", f"{s.folder}/warehouse/rename_new")] = "out"
    s.spark.sql("alter table rename_old rename to rename_new")


@case("""
    -> out
    unknown: everything
    operation: truncate_table
    change: TRUNCATE
""")
def truncate_plain_table(s: Stage) -> None:
    s.spark.sql("create table truncate_plain (id bigint) using parquet")
    s.drain()
    s.names[DatasetName("file", f"{s.folder}/warehouse/truncate_plain")] = "out"
    s.spark.sql("truncate table truncate_plain")
