"""MERGE, UPDATE and DELETE, in SQL and by Delta's own interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import COLUMNS, api, customers, filled, orders, orders_path, step

if TYPE_CHECKING:
    from ..stage import Stage


MERGED = """
    orders, out -> out
    id <- orders.id
    total <- orders.price, orders.price TRANSFORMATION, orders.price CONDITIONAL
    total <- out.total TRANSFORMATION
    note <- orders.city
    rows <- out.id JOIN, orders.id JOIN, orders.customer FILTER
    operation: merge_into_table
"""


@step(MERGED)
def merge_by_clause(s: Stage) -> None:
    filled(s)
    s.sql(
        """merge into {out} t using (select id, price, city, customer from delta.`{orders}`) s
      on t.id = s.id
      when matched and s.price > 5 then update set total = t.total + s.price
      when matched and s.customer < 0 then delete
      when not matched then insert (id, total, note) values (s.id, s.price, s.city)""",
        orders=orders_path(s),
    )


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
    s.sql(
        """merge into {out} t using delta.`{orders}` s on t.id = s.id
      when not matched then insert (id, total, note) values (s.id, s.price, 'new')""",
        orders=orders_path(s),
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
    s.sql("create table {fresh} " + COLUMNS, fresh=s.table("fresh"))
    filled(s)
    s.sql(
        """merge into {out} t using {fresh} s on t.id = s.id
      when matched then update set * when not matched then insert *""",
        fresh=s.table("fresh"),
    )


@step("""
    fresh, out -> out
    id <- fresh.id
    total <- fresh.total
    note <- fresh.note
    city <- fresh.city
    rows <- out.id JOIN, fresh.id JOIN
    operation: merge_into_table
""")
def merge_that_adds_a_column(s: Stage) -> None:
    s.sql(
        "create table {fresh} (id bigint, total decimal(10,2), note string, city string)"
        " using delta",
        fresh=s.table("fresh"),
    )
    filled(s)
    s.sql(
        """merge with schema evolution into {out} t using {fresh} s on t.id = s.id
      when matched then update set * when not matched then insert *""",
        fresh=s.table("fresh"),
    )


@step("""
    orders, out -> out
    total <- orders.price
    rows <- out.id JOIN, orders.id JOIN, out.note FILTER
    operation: merge_into_table
""")
def merge_with_deletion_vectors(s: Stage) -> None:
    s.sql(
        "create table {out} " + COLUMNS + " tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    s.sql("insert into {out} values (1, 1.0, 'a'), (9, 2.0, 'b')")
    s.begin()
    s.sql(
        """merge into {out} t using delta.`{orders}` s on t.id = s.id
      when matched then update set total = s.price
      when not matched by source and t.note = 'b' then delete""",
        orders=orders_path(s),
    )


@step("""
    out -> out
    rows <- out.id FILTER
    operation: delete_from_table
""")
def delete_with_deletion_vectors(s: Stage) -> None:
    s.sql(
        "create table {out} " + COLUMNS + " tblproperties ('delta.enableDeletionVectors' = 'true')"
    )
    s.sql("insert into {out} values (1, 1.0, 'a'), (9, 2.0, 'b')")
    s.begin()
    s.sql("delete from {out} where id = 1")


@step("""
    orders, out -> out
    note <-
    rows <- out.id JOIN, orders.id JOIN
    operation: merge_into_table
""")
def merge_with_rows_not_in_the_source(s: Stage) -> None:
    filled(s)
    s.sql(
        """merge into {out} t using delta.`{orders}` s on t.id = s.id
      when not matched by source then update set note = 'gone'""",
        orders=orders_path(s),
    )


@step(MERGED)
def merge_by_the_api(s: Stage) -> None:
    filled(s)
    frame: Any = orders(s).select("id", "price", "city", "customer").alias("s")
    table: Any = api(s).forName(s.spark._jsparkSession, s.table("out"))
    merge = getattr(table, "as")("t").merge(frame._jdf, "t.id = s.id")
    merge = merge.whenMatched("s.price > 5").updateExpr({"total": "t.total + s.price"})
    merge = merge.whenMatched("s.customer < 0").delete()
    merge = merge.whenNotMatched().insertExpr({"id": "s.id", "total": "s.price", "note": "s.city"})
    merge.execute()


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
    files -> files
    city <-
    rows <- files.id FILTER
    operation: update_table
""")
def update_by_the_api(s: Stage) -> None:
    orders(s).select("id", "city").write.format("delta").save(s.path("files"))
    s.begin()
    api(s).forPath(s.spark._jsparkSession, s.path("files")).updateExpr("id > 1", {"city": "'x'"})


@step(
    """
    -> out
    unknown: everything
    operation: update_table
""",
    end="FAIL",
)
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
    files -> files
    rows <- files.id FILTER
    operation: delete_from_table
""")
def delete_by_the_api(s: Stage) -> None:
    orders(s).select("id", "city").write.format("delta").save(s.path("files"))
    s.begin()
    api(s).forPath(s.spark._jsparkSession, s.path("files")).delete("id > 1")


@step("""
    -> out
    operation: delete_from_table
""")
def delete_everything(s: Stage) -> None:
    filled(s)
    s.sql("delete from {out}")
