"""MERGE, UPDATE and DELETE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import COLUMNS, KEYED, customers, filled, orders, step, view, written

if TYPE_CHECKING:
    from ..stage import Stage

ON_READ = " tblproperties (primaryKey = 'id', type = 'mor')"
MERGED = """
    orders, out -> out
    id <- orders.id
    total <- orders.price, orders.price TRANSFORMATION, orders.price CONDITIONAL
    total <- out.total TRANSFORMATION
    note <- orders.city
    rows <- out.id JOIN, orders.id JOIN, orders.customer FILTER
    operation: merge_into_table
"""
MERGE = """merge into {out} t using (select id, price, city, customer from orders) s
  on t.id = s.id
  when matched and s.price > 5 then update set total = t.total + s.price
  when matched and s.customer < 0 then delete
  when not matched then insert (id, total, note) values (s.id, s.price, s.city)"""


@step(MERGED)
def merge_by_clause(s: Stage) -> None:
    filled(s)
    view(s)
    s.sql(MERGE)


@step("""
    orders, out -> out
    id <- orders.id
    total <- orders.price, orders.price TRANSFORMATION
    note <- orders.city
    rows <- out.id JOIN, orders.id JOIN
    operation: merge_into_table
""")
def merge_on_read(s: Stage) -> None:
    filled(s, ON_READ)
    view(s)
    s.sql(
        """merge into {out} t using orders s on t.id = s.id
      when matched then update set total = s.price + 1
      when not matched then insert (id, total, note) values (s.id, s.price, s.city)"""
    )


@step(
    MERGED,
    end="FAIL",
)
def merge_on_read_refused(s: Stage) -> None:
    # Hudi gives such a table no look at its old rows.
    filled(s, ON_READ)
    view(s)
    s.sql(MERGE)


@step("""
    orders, out -> out
    id <- orders.id
    total <- orders.price
    note <-
    rows <- out.id JOIN, orders.id JOIN
    operation: merge_into_table
""")
def merge_that_only_inserts(s: Stage) -> None:
    filled(s)
    view(s)
    s.sql(
        """merge into {out} t using orders s on t.id = s.id
      when not matched then insert (id, total, note) values (s.id, s.price, 'new')"""
    )


@step("""
    fresh, out -> out
    id <- fresh.id
    total <- fresh.total
    note <- fresh.note
    rows <- out.id JOIN, fresh.id JOIN
    operation: merge_into_table
""")
def merge_with_stars(s: Stage) -> None:
    s.sql("create table {fresh} " + COLUMNS + KEYED, fresh=s.table("fresh"))
    filled(s)
    s.sql(
        """merge into {out} t using {fresh} s on t.id = s.id
      when matched then update set * when not matched then insert *""",
        fresh=s.table("fresh"),
    )


@step("""
    out -> out
    total <- out.total TRANSFORMATION
    note <- out.note TRANSFORMATION, out.id TRANSFORMATION
    rows <- out.id FILTER
    operation: update_table
""")
def update(s: Stage) -> None:
    filled(s)
    s.sql("update {out} set total = total * 2, note = concat(note, id) where id > 5")


@step("""
    customers, out -> out
    note <-
    rows <- out.id FILTER, customers.id FILTER
    operation: update_table
""")
def update_with_a_subquery(s: Stage) -> None:
    filled(s)
    customers(s)
    s.sql("update {out} set note = 'x' where id in (select id from customers)")


@step("""
    out -> out
    rows <- out.note FILTER
    operation: delete_from_table
""")
def delete(s: Stage) -> None:
    filled(s)
    s.sql("delete from {out} where note = 'a'")


@step("""
    customers, out -> out
    rows <- out.id FILTER, customers.id FILTER
    operation: delete_from_table
""")
def delete_with_a_subquery(s: Stage) -> None:
    filled(s)
    customers(s)
    s.sql("delete from {out} where id in (select id from customers)")


@step("""
    orders -> files
    rows <- orders.price FILTER
    operation: save_into_data_source
""")
def delete_by_frame(s: Stage) -> None:
    written(orders(s).select("id", "city"), "files", "insert").mode("append").save(s.path("files"))
    s.begin()
    made = orders(s).where("price > 2").select("id", "city")
    written(made, "files", "delete").mode("append").save(s.path("files"))
