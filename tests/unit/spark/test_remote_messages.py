"""Messages of a Spark Connect client, made by its own classes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql.connect import proto
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from headwater.spark.driver import wrapped_methods
from headwater.spark.remote import messages
from headwater.spark.remote.calls import ClientHooks


def stream(rows: int) -> bytes:
    table = pa.table({"id": list(range(rows))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("schema", ["", "id bigint"])
def test_rows_that_a_program_sends_along_are_not_kept(schema: str) -> None:
    command = proto.CreateDataFrameViewCommand(name="fresh")
    local = command.input.filter.input.local_relation
    local.data = stream(500_000)
    if schema:
        local.schema = schema
    kept = messages.copied(command)
    assert command.ByteSize() > 3_000_000
    assert kept.ByteSize() < 1_000
    left = kept.input.filter.input.local_relation
    if schema:
        assert left.schema == schema
    else:
        assert pa.ipc.open_stream(left.data).schema.names == ["id"]


def test_a_few_rows_stay() -> None:
    relation = proto.Relation()
    relation.local_relation.data = stream(3)
    assert messages.copied(relation) == relation


def test_a_statement_is_found_where_each_version_puts_it() -> None:
    old = proto.SqlCommand(sql="select 1")
    assert messages.statement_of(old) == "select 1"
    assert not messages.has_parameters(old)
    assert messages.with_statement(old, "explain select 1").sql_command.sql == "explain select 1"
    new = proto.SqlCommand()
    new.input.sql.query = "select :a"
    assert messages.statement_of(new) == "select :a"
    new.input.sql.args["a"].long = 1
    assert messages.has_parameters(new)
    changed = messages.with_statement(new, "explain select :a").sql_command
    assert messages.statement_of(changed) == "explain select :a"
    assert messages.has_parameters(changed)


def test_frames_of_a_statement_of_ours_have_names_of_their_own() -> None:
    given = proto.SqlCommand()
    given.input.with_relations.root.sql.query = "select id from _view_1"
    given.input.with_relations.references.add().subquery_alias.alias = "_view_1"
    ours = messages.with_statement(given, "explain select id from _view_1").sql_command
    (frame,) = ours.input.with_relations.references
    assert frame.subquery_alias.alias != "_view_1"
    assert messages.statement_of(ours) == f"explain select id from {frame.subquery_alias.alias}"
    assert given.input.with_relations.references[0].subquery_alias.alias == "_view_1"


def test_a_field_that_a_version_does_not_know_is_not_set() -> None:
    # As SqlCommand in Spark 3.5, which has no `input`.
    assert not messages.has(proto.CreateDataFrameViewCommand(), "is_what")
    assert not messages.knows(proto.CreateDataFrameViewCommand, "is_what")
    assert messages.knows(proto.Command, "sql_command")


def batch(_frame: Any, _number: int) -> None: ...


@pytest.mark.parametrize("named", [True, False])
def test_a_function_for_each_batch_may_be_given_by_name(named: bool) -> None:
    made = ClientHooks.__new__(ClientHooks)
    made._undo = []
    made._wrap_foreach_batch()
    try:
        writer: Any = DataStreamWriter.__new__(DataStreamWriter)
        writer._write_proto = proto.WriteStreamOperationStart()
        writer._session = SimpleNamespace()
        _ = writer.foreachBatch(func=batch) if named else writer.foreachBatch(batch)
        assert writer._headwater_foreach_batch == "batch"
        assert writer._write_proto.foreach_batch.python_function.command
    finally:
        made.undo()


@pytest.mark.parametrize("named", [True, False])
def test_what_a_function_for_each_batch_does_is_inside_of_the_batch(named: bool) -> None:
    seen: list[object] = []

    def inside(_frame: Any, _number: int) -> None:
        seen.append(wrapped_methods.DEPTH.micro_batch)

    def before(_writer: Any, func: Any) -> Any:
        return func

    wrapped = wrapped_methods._wrapped(
        before, "batches", "foreachBatch", lambda *_: pytest.fail("no work")
    )
    writer = SimpleNamespace()
    given = wrapped(writer, func=inside) if named else wrapped(writer, inside)
    given(None, 0)
    assert isinstance(seen[0], wrapped_methods.MicroBatch)
    assert wrapped_methods.DEPTH.micro_batch is None
    assert writer._headwater_foreach_batch == "inside"
    with pytest.raises(TypeError):
        wrapped(writer, inside, 1)
