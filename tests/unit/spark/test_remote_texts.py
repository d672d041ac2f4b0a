"""Plans as an explain text draws them: read exactly, or said to be unknown."""

from __future__ import annotations

import pytest

from headwater.spark.remote import statements
from headwater.spark.remote.client_plan import ClientPlan, Read, is_ambiguous, quoted
from headwater.spark.remote.explain import types
from headwater.spark.remote.explain.layout import UnclearText, parse_tree, relation_name
from headwater.spark.remote.explain.leaves import LeafReader
from headwater.spark.remote.explain.merge import MergeReader
from headwater.spark.remote.server_client import RemoteSession

from .remote import ORDERS, PEOPLE, Described, Text


def one(expression: str, **more: str) -> Text:
    """A query of one column."""
    return Text(f"Project [{expression} AS x#9]", f"+- {ORDERS}", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "sources"),
    [
        ("city#3", ["city IDENTITY"]),
        ("upper(city#3)", ["city TRANSFORMATION"]),
        ("-price#2", ["price TRANSFORMATION"]),
        ("(price#2 + cast(1 as decimal(1,0)))", ["price TRANSFORMATION"]),
        ("cast(id#1L as string)", ["id TRANSFORMATION"]),
        ("cast(price#2 as decimal(12,2))", ["price IDENTITY"]),
        ("md5(cast(city#3 as binary))", ["city TRANSFORMATION masked"]),
        ("items#4.sku", ["items.sku IDENTITY"]),
        ("-items#4.sku", ["items.sku TRANSFORMATION"]),
        ("hash(items#4.sku, 42)", ["items.sku TRANSFORMATION masked"]),
        ("nullif(items#4[0].sku, )", ["items.sku TRANSFORMATION"]),
        ("items#4[0].SKU", ["items.sku TRANSFORMATION"]),
        ("coalesce(city#3, )", ["city TRANSFORMATION"]),
        ("CASE WHEN (id#1L > cast(1 as bigint)) THEN city#3 ELSE none END",
         ["city TRANSFORMATION", "id CONDITIONAL"]),
        ("CASE WHEN a THEN CASE WHEN (id#1L = 1) THEN city#3 END ELSE city#3 END",
         ["city TRANSFORMATION", "id CONDITIONAL"]),
        ("if ((id#1L > cast(1 as bigint))) price#2 else cast(null as decimal(10,2))",
         ["id CONDITIONAL", "price TRANSFORMATION"]),
        ("joined(price#2, city#3)#7", ["city TRANSFORMATION", "price TRANSFORMATION"]),
        ("transform(items#4, lambdafunction(lambda y#8.sku, lambda y#8, false))",
         ["items.sku IDENTITY"]),
        ("current_timestamp()", []),
    ],
)  # fmt: skip
def test_expressions(expression: str, sources: list[str]) -> None:
    found = one(expression)
    assert not found.problems
    assert found.columns == {"x": sources} or {
        key.partition(".")[0]: value for key, value in found.columns.items()
    } == {"x": sources}


def test_joins_filters_and_groups_decide_about_rows() -> None:
    found = Text(
        "Aggregate [name#12], [name#12, sum(price#2) AS total#20, count(1) AS n#21L]",
        "+- Filter (city#3 = Bern)",
        "   +- Join LeftOuter, (id#1L = cast(id#11 as bigint)), leftHint=(strategy=broadcast)",
        "      :- SubqueryAlias o",
        f"      :  +- {ORDERS}",
        f"      +- {PEOPLE}",
    )
    assert found.columns == {"name": ["name IDENTITY"], "total": ["price AGGREGATION"], "n": []}
    assert sorted(found.rows) == ["city FILTER", "id JOIN", "id JOIN", "name GROUP_BY"]


def test_a_subquery_is_read_where_it_is_named() -> None:
    found = Text(
        "Project [id#1L, scalar-subquery#30 [] AS best#31]",
        ":  +- Aggregate [max(name#12) AS m#32]",
        f":     +- {PEOPLE}",
        f"+- {ORDERS}",
    )
    assert found.columns == {"id": ["id IDENTITY"], "best": ["name AGGREGATION"]}


def test_a_window_and_a_function_over_many_rows() -> None:
    spec = (
        "windowspecdefinition(city#3, id#1L ASC NULLS FIRST, specifiedwindowframe(RowFrame, 1, 1))"
    )
    found = Text(
        "Project [place#40, mean#41]",
        f"+- Window [row_number() {spec} AS place#40, mean(id#1L)#42 {spec} AS mean#41], [city#3]",
        f"   +- {ORDERS}",
    )
    assert found.columns == {
        "place": ["city WINDOW", "id WINDOW"],
        "mean": ["city WINDOW", "id AGGREGATION", "id WINDOW"],
    }


def test_a_function_in_python_takes_many_rows_where_its_columns_are_no_group() -> None:
    grouped = f"Aggregate [city#3], [city#3, mean(id#1L)#42 AS x#9]\n+- {ORDERS}"
    assert Text(*grouped.split("\n")).columns["x"] == ["id AGGREGATION"]
    unclear = f"Aggregate [city#3], [city#3, f(city#3)#42 AS x#9]\n+- {ORDERS}".split("\n")
    assert "one row or many" in Text(*unclear).problems[0]
    assert not Text(*unclear).query.known
    assert Text(*unclear, python={"f": 100}).columns["x"] == ["city TRANSFORMATION"]


def test_an_attribute_with_an_odd_name_is_known_by_its_number() -> None:
    found = Text(
        "Project [sum(price, 2) AS `s`#20[0] AS x#9]",
        "+- Aggregate [collect_list(city#3, 0, 0) AS sum(price, 2) AS `s`#20]",
        f"   +- {ORDERS}",
    )
    assert found.columns == {"x": ["city AGGREGATION"]}


def test_a_range_does_not_show_its_column() -> None:
    found = Text("Project [id#5L, 1 AS one#6]", "+- Range (0, 3, step=1)")
    assert found.columns == {"id": [], "one": []}
    lost = Text("Project [other#5L, 1 AS one#6]", "+- Range (0, 3, step=1)")
    assert lost.unknown == ("other",)


@pytest.mark.parametrize(
    "expression",
    [
        "cast(max_price#77 as bigint)",  # an attribute that nobody has defined
        "[1,2,3]",
        "concat(city#3, ))",
        "struct(a, city#3, b)",
        "CASE WHEN city#3 ELSE END",
        "decode(city#3, a, price#2, b)",
        "aggregate(items#4, 0)",
        "scalar-subquery#30 []",
    ],
)
def test_what_is_not_clear_is_unknown(expression: str) -> None:
    found = one(expression)
    assert not found.columns.get("x")
    assert "x" in found.unknown or not found.query.known
    assert [one.id.name for source in found.query.sources for one in source.datasets] == ["orders"]


def test_a_cast_from_an_unknown_type_is_unknown_where_it_matters() -> None:
    inner = f"Project [nvl(city#3, a) AS y#8, greatest_of(price#2) AS z#7]\n   +- {ORDERS}"
    kept = Text("Project [cast(y#8 as string) AS x#9]", f"+- {inner}")
    assert kept.columns == {"x": ["city TRANSFORMATION"]}
    plain = f"RelationV2[odd#5] lab.shop.orders"  # noqa: F541
    assert Text("Project [cast(odd#5 as string) AS x#9]", f"+- {plain}").unknown == ("x",)


def test_a_text_that_is_cut_off_keeps_its_datasets() -> None:
    found = Text("Project [id#1L, ... 3 more fields]", f"+- {ORDERS}")
    assert "cut off" in found.problems[0]
    assert not found.query.known
    assert found.query.sources


@pytest.mark.parametrize(
    ("literal", "problem"),
    [
        ("'a, b AS c'", False),
        ("') THEN city'", False),
        ("'END'", True),
        ("'price#2'", True),
        ("')'", True),
    ],
)
def test_a_constant_is_never_taken_for_a_part_of_the_plan(literal: str, problem: bool) -> None:
    (text,) = quoted(literal)
    assert is_ambiguous(text)
    lines = f"Project [CASE WHEN (id#1L > 1) THEN {text} ELSE x END AS x#9]", f"+- {ORDERS}"
    try:
        found = Text(*lines, literals=literal)
    except UnclearText:
        assert problem
        return
    if problem:
        assert found.unknown == ("x",) or not found.query.known
    else:
        assert found.columns == {"x": ["id CONDITIONAL"]}


def test_a_comma_alone_is_harmless_between_arguments_and_unclear_between_columns() -> None:
    sql = "select concat_ws(', ', city, id)"
    found = one("concat_ws(, , city#3, cast(id#1L as string))", literals=sql)
    assert found.columns == {"x": ["city TRANSFORMATION", "id TRANSFORMATION"]}
    bare = Text("Project [,  AS x#9, city#3]", f"+- {ORDERS}", literals=sql)
    assert not bare.query.known


def test_constants_of_a_statement() -> None:
    assert list(quoted("select 'it''s', \"b\\n\", `c` from t where a = ''")) == ["it's", "b\n", ""]


MERGE = (
    "'MergeIntoTable ('t.id = 's.id), [updateaction(Some(('s.id > 5)), assignment('t.city, 's.name),"
    " false), deleteaction(Some(('name = x)))], [insertaction(None, assignment('id, 's.id))], false\n"
    ":- 'SubqueryAlias t\n:  +- 'UnresolvedRelation [lab, shop, orders], [], false\n"
    "+- 'SubqueryAlias s\n   +- 'UnresolvedRelation [lab, shop, people], [], false"
)
MERGED = (
    "MergeRows[__row_operation#50, id#51L, price#52, city#53, items#54]\n"
    "+- Join FullOuter, (id#1L = cast(id#11 as bigint))\n"
    "   :- Project [id#1L, price#2, city#3, items#4, true AS __row_from_target#60]\n"
    f"   :  +- {ORDERS}\n"
    "   +- Project [id#11, name#12, true AS __row_from_source#61]\n"
    "      +- SubqueryAlias s\n"
    f"         +- {PEOPLE}"
)
COLUMNS = ["id", "price", "city", "items"]


def test_the_clauses_of_a_merge() -> None:
    found = Text("Project [1 AS one#90]", "+- OneRowRelation")
    found.query = MergeReader(found.reader, MERGE, parse_tree(MERGED)).query(COLUMNS)
    assert found.columns["city"] == ["id CONDITIONAL", "name IDENTITY"]
    assert found.columns["id"] == ["id IDENTITY"]
    assert sorted(found.rows) == ["id JOIN", "id JOIN", "name FILTER"]


def test_a_merge_whose_columns_could_be_of_either_side_is_unclear() -> None:
    reader = Text("Project [1 AS one#90]", "+- OneRowRelation").reader
    twice = MERGE.replace("'s.id > 5", "'id > 5")
    with pytest.raises(UnclearText):
        MergeReader(reader, twice, parse_tree(MERGED)).query(COLUMNS)


@pytest.mark.parametrize(
    ("sql", "operation", "parts", "change"),
    [
        ("-- why\nDROP TABLE IF EXISTS `my t`", "drop_table", "spark_catalog.default.my t", "DROP"),
        ("alter table a.b rename to c;", "rename_table", "spark_catalog.a.c", "RENAME"),
        ("alter table a.b add column c int", "alter_table", "spark_catalog.a.b", "ALTER"),
        ("truncate table b", "truncate_table", "spark_catalog.default.b", "TRUNCATE"),
    ],
)
def test_statements_that_change_a_table(sql: str, operation: str, parts: str, change: str) -> None:
    target = statements.changed(RemoteSession(Described()), sql)
    assert target is not None
    assert (target.operation, ".".join(target.parts), target.change) == (operation, parts, change)


@pytest.mark.parametrize(
    ("sql", "writes"),
    [
        ("insert into a select 1", True),
        ("with x as (select 1) insert into a select * from x", True),
        ("/* c */ create or replace table a as select 1", True),
        ("select * from a", False),
        ("use lab", False),
        ("create namespace lab.a", False),
        ("from o insert into a select 1", True),
        ("from o insert into a select 1 insert overwrite b select 2", True),
        ("with x as (select 1) from x insert into a select 1 insert into b select 2", True),
        ("from o select 'insert into a'", False),
    ],
)
def test_statements_that_write(sql: str, writes: bool) -> None:
    assert statements.writes(sql) is writes
    if writes:
        assert not statements.reads(sql)


@pytest.mark.parametrize(
    ("sql", "reads", "rows"),
    [
        ("from o select 1", True, False),
        ("with x as (select 1) select * from x", True, False),
        ("from o insert into a select 1 insert into b select 2", False, True),
        ("with x as (select 1) insert into a select * from x", False, True),
        ("create view a as select 1", False, False),
        ("begin insert into a select 1; end", False, False),
    ],
)
def test_a_statement_that_neither_reads_nor_changes_rows_may_change_names(
    sql: str, reads: bool, rows: bool
) -> None:
    assert (statements.reads(sql), statements.changes_rows(sql)) == (reads, rows)


def test_a_multi_insert_has_a_target_and_a_query_for_each_insert() -> None:
    sql = "from lab.shop.orders insert into lab.shop.people select id, city insert into b select id"
    root = parse_tree(
        f"Union false, false\n:- AppendData {PEOPLE}, false\n:  +- Project [id#1L, city#3]\n"
        f":     +- {ORDERS}\n+- AppendData RelationV2[id#21L] lab.shop.b, false\n"
        "   +- Project [id#31L]\n      +- RelationV2[id#31L] lab.shop.orders"
    )
    found = statements.read_all(RemoteSession(Described()), root, sql)
    assert [(".".join(t.parts), node.kind if node else "") for t, node in found] == [
        ("lab.shop.people", "Project"),
        ("lab.shop.b", "Project"),
    ]
    named = statements.multi_insert(RemoteSession(Described()), sql)
    assert [".".join(target.parts) for target in named] == [
        "spark_catalog.lab.shop.people",
        "spark_catalog.default.b",
    ]


def test_what_is_not_known_of_a_script_is_said() -> None:
    script = "-- one\nBEGIN INSERT INTO a SELECT 1; CREATE TABLE `b` AS SELECT 1; END"
    assert statements.is_script(script)
    assert statements.script_problem(script).endswith("is not known; its text names a, b")
    dynamic = "begin execute immediate 'drop table a'; end"
    assert statements.script_problem(dynamic).endswith("is not known")


def test_types_in_both_ways_of_writing_them() -> None:
    struct = {"type": "struct", "fields": [
        {"name": "a", "type": "long", "nullable": True},
        {"name": "b", "type": {"type": "array", "elementType": "decimal(10,2)",
                               "containsNull": True}, "nullable": True}]}  # fmt: skip
    assert types.from_simple_string("struct<a:bigint,b:array<decimal(10,2)>>") == struct
    text = "StructType(StructField(a,LongType,true),StructField(b,ArrayType(DecimalType(10,2),true),true))"
    assert types.from_class_string(text) == struct
    assert types.from_simple_string("a strange thing") is None
    with pytest.raises(UnclearText):
        types.from_class_string("StructType(StructField(a,b,LongType,true))")


def test_many_constants_are_bounded() -> None:
    found = ClientPlan()
    found.texts = dict.fromkeys(f"({number})" for number in range(2000))
    text, kept = found.mask_literals("concat((7), (8))")
    assert len(kept) == 2
    assert "(7)" not in text


def test_what_orders_a_list_of_texts_is_no_part_of_it() -> None:
    listed = "listagg(city#3, ,, id#1L ASC NULLS FIRST)"
    found = Text(f"Aggregate [{listed} AS x#9]", f"+- {ORDERS}")
    assert not found.problems
    assert found.columns == {"x": ["city AGGREGATION", "id SORT"]}


OLDER = f"{ORDERS} lab.shop.orders"
"""As Spark 3.5 and 4.0 write it: by its catalog, then by itself."""


def older(sql: str) -> Text:
    return Text("Project [city#3]", f"+- {OLDER}", sql=sql)


def test_metadata_of_a_table_is_a_read_of_it_without_columns() -> None:
    text = Text(
        "Project [snapshot_id#21L, operation#22]",
        "+- Filter (operation#22 = append)",
        "   +- RelationV2[snapshot_id#21L, operation#22] lab.shop.orders.snapshots",
        literals="append",
    )
    ((found,),) = [source.datasets for source in text.query.sources]
    assert (found.name, found.schema) == ("orders", None)
    assert text.columns == {"snapshot_id": [], "operation": []}


def test_a_name_that_older_sparks_write_twice_is_one_name() -> None:
    assert relation_name("lab.shop.orders lab.shop.orders") == "lab.shop.orders"
    assert relation_name("lab.file:/lake/orders file:/lake/orders") == "file:/lake/orders"
    assert relation_name("lab.shop.my orders") == "lab.shop.my orders"
    found = older("select city from lab.shop.orders")
    assert not found.problems
    assert found.columns == {"city": ["city IDENTITY"]}
    root = parse_tree(f"AppendData {OLDER}, false\n+- {OLDER}")
    target, _ = statements.read(
        RemoteSession(Described()), root, "insert into lab.shop.orders select 1"
    )
    assert target.parts == ("lab", "shop", "orders")


@pytest.mark.parametrize(
    ("sql", "version"),
    [
        ("select city from lab.shop.orders", ""),
        ("select city from `lab`.shop.orders version as of 42", "42"),
        ("select city from shop.orders FOR SYSTEM_VERSION AS OF 'audit' o", "audit"),
    ],
)
def test_a_snapshot_that_a_text_does_not_show_stands_in_the_statement(
    sql: str, version: str
) -> None:
    found = older(sql)
    assert not found.problems
    (source,) = found.query.sources
    assert [one.version for one in source.datasets] == [version]


@pytest.mark.parametrize(
    "sql",
    [
        "select a.city from orders a join orders version as of 42 b using (id)",
        "select city from orders timestamp as of '2026-01-01'",
        "select city from orders version as of :asked",
    ],
)
def test_a_snapshot_that_is_not_clear_is_said_to_be_unknown(sql: str) -> None:
    found = older(sql)
    assert any("snapshot" in problem for problem in found.problems)
    assert found.columns == {"city": ["city IDENTITY"]}
    (source,) = found.query.sources
    assert [one.version for one in source.datasets] == [""]


def test_a_topic_that_is_read_in_several_groups_has_all_of_them() -> None:
    """Which of the reads a leaf is, the text does not show."""
    options = {"kafka.bootstrap.servers": "k:9092", "subscribe": "orders"}
    named = ("kafka.group.id", "etl"), ("groupidprefix", "audit")
    reads = [Read("", "kafka", {**options, key: group}, (), None) for key, group in named]
    leaf = parse_tree(
        "Relation [key#1, value#2] KafkaRelation(strategy=Subscribe[orders], start=EarliestOffsetRangeLimit)"
    )
    reader = LeafReader(RemoteSession(Described()), reads, "", [])
    reader.types(leaf, ["key", "value"])
    (source,) = reader.sources.values()
    assert [(one.name, one.groups) for one in source.datasets] == [("orders", ("audit-*", "etl"))]


FS = "InsertIntoHadoopFsRelationCommand file:/w/p, {}Parquet, [path=file:/w/p], {}, `spark_catalog`.`default`.`p`, [a, day]"
FOLDER = "InsertIntoHadoopFsRelationCommand file:/w/{0}, false, Parquet, [path=file:/w/{0}], Overwrite, [a]"
DIRECTORY = "InsertIntoDataSourceDirCommand Storage(Location: file:/w/{}), parquet, true"
HIVE = "InsertIntoHiveTable `spark_catalog`.`default`.`h`, Serde, {}, [a, day], Hive"
V2 = "RelationV2[id#1L, price#2] lab.shop.orders"


@pytest.mark.parametrize(
    ("text", "mode", "change", "partial"),
    [
        (FS.format("false, ", "Append"), "dynamic", "", False),
        (FS.format("false, [day#3], ", "Overwrite"), "static", "OVERWRITE", False),
        (FS.format("false, [day#3], ", "Overwrite"), "dynamic", "OVERWRITE", True),
        (FS.format("false, ", "Overwrite"), "dynamic", "OVERWRITE", False),
        (FS.format("[day=x], false, [day#3], ", "Overwrite"), "static", "OVERWRITE", True),
        (FOLDER.format("p"), "static", "OVERWRITE", False),
        (FOLDER.format("p/day=x"), "static", "OVERWRITE", True),
        (DIRECTORY.format("p"), "static", "OVERWRITE", False),
        (DIRECTORY.format("p/day=x"), "static", "OVERWRITE", True),
        (HIVE.format("false, false"), "static", "", False),
        (HIVE.format("true, false"), "dynamic", "OVERWRITE", False),
        (HIVE.format("[day=Some(x)], true, false"), "static", "OVERWRITE", True),
        (HIVE.format("[day=None], true, false"), "static", "OVERWRITE", True),
        (HIVE.format("[day=None], false, false"), "static", "", False),
        (f"AppendData {V2}, false", "static", "", False),
        (f"OverwriteByExpression {V2}, true, false", "static", "OVERWRITE", False),
        (f"OverwriteByExpression {V2}, (id#1L <=> 1), false", "static", "OVERWRITE", True),
        (f"OverwritePartitionsDynamic {V2}, false", "dynamic", "OVERWRITE", True),
        ("OverwritePartitionsDynamic RelationV2[id#1] lab.shop.people, false", "dynamic", "OVERWRITE", False),
    ],
)  # fmt: skip
def test_an_overwrite_says_whether_rows_stay(
    monkeypatch: pytest.MonkeyPatch, text: str, mode: str, change: str, partial: bool
) -> None:
    monkeypatch.setattr(Described, "setting", lambda _self, _key: mode)
    root = parse_tree(f"{text}\n+- Project [id#1L]\n   +- {ORDERS}")
    target, _ = statements.read(RemoteSession(Described()), root, "insert overwrite x select 1")
    assert (target.change, target.partial) == (change, partial)
    if "`" in text:
        assert target.names == ("a", "day")
    if "file:/w/p/" in text:
        assert [one.name for one in target.fixed] == ["/w/p"]
