"""MERGE, UPDATE and DELETE: what a clause writes, and what decides about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .case import case

if TYPE_CHECKING:
    from .stage import Stage

COLUMNS = "(id bigint, total decimal(10,2), note string) using iceberg"
ON_READ = """tblproperties ('write.merge.mode' = 'merge-on-read',
  'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')"""
MERGE = """merge into {out} t using (select id, price, city, customer from {orders}) s on t.id = s.id
  when matched and s.price > 5 then update set total = t.total + s.price
  when matched and s.customer < 0 then delete
  when not matched then insert (id, total, note) values (s.id, s.price, s.city)"""
MERGED = """
    orders, out -> out
    id <- orders.id
    total <- orders.price, orders.price TRANSFORMATION, orders.price CONDITIONAL
    total <- out.total TRANSFORMATION
    note <- orders.city
    rows <- out.id JOIN, orders.id JOIN, orders.customer FILTER
    operation: merge_into_table
"""


@case(MERGED)
def merge_by_clause(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)
    s.sql(MERGE)


@case(MERGED)
def merge_on_read(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + " " + ON_READ)
    s.sql(MERGE)


@case("""
    orders, out -> out
    id <- orders.id
    total <- orders.price
    note <-
    rows <- out.id JOIN, orders.id JOIN
    operation: merge_into_table
""")
def merge_that_only_inserts(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)
    s.sql("""merge into {out} t using {orders} s on t.id = s.id
      when not matched then insert (id, total, note) values (s.id, s.price, 'new')""")


@case("""
    orders, out -> out
    note <-
    rows <- out.id JOIN, orders.id JOIN
    operation: merge_into_table
""")
def merge_with_rows_not_in_the_source(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)
    s.sql("""merge into {out} t using {orders} s on t.id = s.id
      when not matched by source then update set note = 'gone'""")


@case("""
    out -> out
    total <- out.total TRANSFORMATION
    note <- out.note TRANSFORMATION, out.id TRANSFORMATION
    rows <- out.id FILTER
    operation: update_table
""")
def update(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)
    s.sql("update {out} set total = total * 2, note = concat(note, id) where id > 5")


@case("""
    customers, out -> out
    note <-
    rows <- out.id FILTER, customers.id FILTER
    operation: update_table
""")
def update_with_a_subquery(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + " " + ON_READ)
    s.sql("update {out} set note = 'x' where id in (select id from {customers})")


@case("""
    orders, out -> out
    rows <- out.id FILTER, orders.id FILTER, orders.city FILTER
    operation: delete_from_table
""")
def delete_with_a_subquery(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)
    s.sql("delete from {out} where id in (select id from {orders} where city = 'Bern')")


@case("""
    out -> out
    rows <- out.note FILTER
    operation: delete_from_table
""")
def delete_on_read(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + " " + ON_READ)
    s.sql("delete from {out} where note = 'x'")
