"""What changes a table as a whole, and what only looks after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stage import NOTHING
from .base import COLUMNS, KEYED, filled, step

if TYPE_CHECKING:
    from ..stage import Stage


@step("""
    -> out
    unknown: everything
    operation: create_table
    change: CREATE
""")
def create(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + KEYED)


@step("""
    -> out
    unknown: everything
    change: ALTER
""")
def add_a_column(s: Stage) -> None:
    filled(s)
    s.sql("alter table {out} add columns (city string)")


@step("""
    -> renamed
    unknown: everything
    change: RENAME
""")
def rename(s: Stage) -> None:
    filled(s)
    s.sql("alter table {out} rename to {renamed}", renamed=s.table("renamed"))


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
    change: ALTER
""")
def drop_a_partition(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + KEYED + " partitioned by (note)")
    s.sql("insert into {out} values (1, 1.0, 'a'), (9, 2.0, 'b')")
    s.begin()
    s.sql("alter table {out} drop partition (note = 'a')")


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


@step(NOTHING)
def cluster(s: Stage) -> None:
    filled(s)
    s.sql("call run_clustering(table => '{out}')").collect()


@step(NOTHING)
def compact(s: Stage) -> None:
    filled(s, " tblproperties (primaryKey = 'id', type = 'mor')")
    s.sql("update {out} set note = 'x' where id = 1")
    s.begin()
    s.sql("call run_compaction(op => 'scheduleAndExecute', table => '{out}')").collect()


@step(NOTHING)
def clean(s: Stage) -> None:
    filled(s)
    s.sql("call run_clean(table => '{out}', retain_commits => 1)").collect()


@step(NOTHING)
def describe(s: Stage) -> None:
    filled(s)
    s.sql("call show_commits(table => '{out}', limit => 5)").collect()
    s.sql("describe table extended {out}").collect()
