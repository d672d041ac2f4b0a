"""Protobuf messages of Spark Connect, read alike in every version of PySpark."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

_PARAMETERS = ("args", "pos_args", "named_arguments", "pos_arguments")
LARGE_BYTES = 1_000_000


def has(message: Any, name: str) -> bool:
    """Whether a field is set; one that this version does not know is not."""
    return name in message.DESCRIPTOR.fields_by_name and bool(message.HasField(name))


def knows(message: Any, name: str) -> bool:
    """Whether this version has such a field at all."""
    return name in message.DESCRIPTOR.fields_by_name


def statement_in(message: Any) -> Any:
    """The message inside a SQL command that holds its statement; None where it holds it itself."""
    if not has(message, "input"):
        return None
    relation = message.input
    if relation.WhichOneof("rel_type") == "with_relations":
        relation = relation.with_relations.root
    return relation.sql


def statement_of(message: Any) -> str:
    """The text of a SQL command."""
    inside = statement_in(message)
    return str(inside.query if inside is not None else message.sql)


def with_statement(message: Any, text: str) -> Any:
    """A command like this one with another statement: its parameters and frames go along.

    Frames get names of their own. A server makes a temporary view of each while it runs a statement, and
    drops it afterwards by its name: under the same name, that of the program's statement would go.
    """
    import pyspark.sql.connect.proto as messages

    command = messages.Command()
    command.sql_command.CopyFrom(message)
    inside = statement_in(command.sql_command)
    if inside is None:
        command.sql_command.sql = text
        return command
    for frame in _frames(command.sql_command):
        own = f"_headwater_view_{uuid4().hex}"
        text = text.replace(frame.alias, own)
        frame.alias = own
    inside.query = text
    return command


def _frames(message: Any) -> list[Any]:
    """The frames that the statement of a SQL command names."""
    relation = message.input
    if relation.WhichOneof("rel_type") != "with_relations":
        return []
    references = relation.with_relations.references
    return [one.subquery_alias for one in references if has(one, "subquery_alias")]


def has_parameters(message: Any) -> bool:
    """Whether a SQL command has parameters, or frames that its statement names."""
    inside = statement_in(message)
    framed = inside is not None and message.input.WhichOneof("rel_type") == "with_relations"
    holder = message if inside is None else inside
    return framed or any(len(getattr(holder, name, ())) for name in _PARAMETERS)


def plan_of(relation: Any) -> Any:
    """A plan whose root is this relation."""
    import pyspark.sql.connect.proto as messages

    plan = messages.Plan()
    plan.root.CopyFrom(relation)
    return plan


def copied(message: Any) -> Any:
    """A copy to read later, without the rows that a program has sent along: the schema is enough."""
    kept = type(message)()
    kept.CopyFrom(message)
    if kept.ByteSize() > LARGE_BYTES:
        _drop_rows(kept)
    return kept


def _drop_rows(message: Any) -> None:
    waiting = [message]
    while waiting:
        one = waiting.pop()
        if one.DESCRIPTOR.name == "LocalRelation":
            if one.schema:
                one.ClearField("data")
            else:
                one.data = _no_rows(one.data)
            continue
        for field, value in one.ListFields():
            if field.type != field.TYPE_MESSAGE:
                continue
            if hasattr(value, "ListFields"):
                waiting.append(value)
            elif hasattr(value, "values"):
                waiting += [item for item in value.values() if hasattr(item, "ListFields")]
            else:
                waiting += list(value)


def _no_rows(stream: bytes) -> bytes:
    """An Arrow stream with the schema of another and nothing else."""
    from pyarrow import BufferOutputStream, ipc  # type: ignore[import-untyped]

    sink = BufferOutputStream()
    with ipc.new_stream(sink, ipc.open_stream(stream).schema):
        pass
    return bytes(sink.getvalue())


def settings(client: Any) -> dict[str, str]:
    """Every setting of a session that its server shows."""
    import pyspark.sql.connect.proto as messages

    asked = messages.ConfigRequest.Operation(get_all=messages.ConfigRequest.GetAll())
    return {key: value or "" for key, value in client.config(asked).pairs}
