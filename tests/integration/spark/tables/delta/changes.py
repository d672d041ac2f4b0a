"""What changes a table as a whole, and what only looks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stage import NOTHING
from .base import COLUMNS, filled, step

if TYPE_CHECKING:
    from ..stage import Stage


@step("""
    -> out
    unknown: everything
    operation: create_table
    change: CREATE
""")
def create(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)


@step("""
    -> out
    unknown: everything
    operation: alter_table
    change: ALTER
""")
def add_a_column(s: Stage) -> None:
    filled(s)
    s.sql("alter table {out} add column city string")


@step("""
    -> out
    unknown: everything
    operation: alter_table
    change: ALTER
""")
def rename_a_column(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + " tblproperties ('delta.columnMapping.mode' = 'name')")
    s.begin()
    s.sql("alter table {out} rename column note to remark")


@step("""
    -> renamed
    unknown: everything
    operation: rename_table
    change: RENAME
""")
def rename(s: Stage) -> None:
    filled(s)
    s.sql("alter table {out} rename to {renamed}", renamed=s.table("renamed"))


@step("""
    -> files
    unknown: everything
    operation: rename_table
    change: RENAME
""")
def rename_elsewhere(s: Stage) -> None:
    s.spark.sql(f"create table rename_from (id bigint) using delta location '{s.path('files')}'")
    s.begin()
    s.spark.sql("alter table rename_from rename to rename_to")


@step("""
    -> out
    unknown: everything
    operation: drop_table
    change: DROP
""")
def drop(s: Stage) -> None:
    filled(s)
    s.names[f"file:{s.folder}/warehouse default.{s.table('out')}"] = "out"
    s.sql("drop table {out}")


@step("""
    -> out
    unknown: everything
    operation: truncate_table
    change: TRUNCATE
""")
def truncate(s: Stage) -> None:
    filled(s)
    s.sql("truncate table {out}")


@step("""
    -> out
    unknown: everything
    operation: alter_table
    change: ALTER
""")
def add_a_constraint(s: Stage) -> None:
    filled(s)
    s.sql("alter table {out} add constraint small check (id < 100)")


@step("""
    out -> twin
    id <- out.id
    total <- out.total
    note <- out.note
    operation: clone_table
    change: CREATE
""")
def clone(s: Stage) -> None:
    filled(s)
    s.sql("create table {twin} shallow clone {out}", twin=s.table("twin"))


@step("""
    -> out
    unknown: everything
    operation: restore_table
    change: OVERWRITE
""")
def restore(s: Stage) -> None:
    filled(s)
    s.sql("restore table {out} to version as of 0")


@step(NOTHING)
def optimize(s: Stage) -> None:
    filled(s)
    s.sql("optimize {out} zorder by (id)")


@step(NOTHING)
def vacuum(s: Stage) -> None:
    filled(s)
    s.sql("vacuum {out} retain 0 hours")


@step(NOTHING)
def describe(s: Stage) -> None:
    filled(s)
    s.sql("describe history {out}").collect()
    s.sql("describe detail {out}").collect()
