"""Several commands in one statement: one lineage, with the pairs that belong together."""

from __future__ import annotations

from headwater.lineage.model import ColumnLineage, ColumnSource, Dataset, Transformation
from headwater.lineage.naming import DatasetName
from headwater.spark.dataset_overrides import renamed
from headwater.spark.model import PlanLineage
from headwater.spark.plan.multi_insert import together

WAY = Transformation("DIRECT", "IDENTITY", "", False)
ORDERS, BIDS = Dataset("file", "/orders"), Dataset("file", "/bids")


def written(name: str, **sources: str) -> Dataset:
    fields: dict[str, tuple[ColumnSource, ...]] = {
        column: (ColumnSource(DatasetName("file", "/orders"), source, (WAY,)),)
        for column, source in sources.items()
    }
    return Dataset("file", name, columns=ColumnLineage(fields))


def part(*inputs: Dataset, into: Dataset, problems: tuple[str, ...] = ()) -> PlanLineage:
    return PlanLineage(inputs=inputs, outputs=(into,), operation="append", problems=problems)


def test_one_command_stays_as_it_is() -> None:
    one = part(ORDERS, into=written("/a"))
    assert together([one]) is one


def test_every_output_has_its_own_inputs_and_columns() -> None:
    found = together(
        [
            part(ORDERS, into=written("/a", x="id")),
            part(ORDERS, BIDS, into=written("/b", y="price")),
        ]
    )
    assert [one.name for one in found.inputs] == ["/orders", "/bids"]
    assert [(one.name, list(one.columns.fields)) for one in found.outputs if one.columns] == [
        ("/a", ["x"]),
        ("/b", ["y"]),
    ]
    pairs = [(edge.input.name, edge.output.name) for edge in found.edges or ()]
    assert pairs == [("/orders", "/a"), ("/orders", "/b"), ("/bids", "/b")]
    assert [target.name for target in found.targets] == ["/a", "/b"]
    assert found.operation == "multi_insert"


def test_a_table_inserted_into_twice_is_one_output_with_the_columns_of_both() -> None:
    first = part(ORDERS, into=written("/a", x="id", y="price"))
    second = part(ORDERS, into=written("/a", x="id", y="fee"))
    found = together([first, second])
    (output,) = found.outputs
    assert output.columns is not None
    fields = {
        name: [one.field for one in sources] for name, sources in output.columns.fields.items()
    }
    assert fields == {"x": ["id"], "y": ["price", "fee"]}
    assert len(found.targets) == 2


def test_pairs_follow_the_names_that_the_configuration_gives() -> None:
    found = together([part(ORDERS, into=written("/a")), part(BIDS, into=written("/b"))])
    given = renamed(found, {"/orders": {"name": "sales"}, "/b": {"namespace": "lake"}})
    assert [(edge.input, edge.output) for edge in given.edges or ()] == [
        (("file", "sales"), ("file", "/a")),
        (("file", "/bids"), ("lake", "/b")),
    ]
