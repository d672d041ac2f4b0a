"""Which columns a configuration names: by these a connector breaks, the others it hands on."""

from __future__ import annotations

import pytest

from headwater.connect.derive.named_columns import named_columns

COLUMNS = ("order_id", "item", "price", "key.order_id", "address.city", "value.key", "orders")


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("pk.fields", "order_id", ["key.order_id", "order_id"]),
        ("fields.whitelist", "item, price", ["item", "price"]),
        ("incrementing.column.name", "order_id", ["key.order_id", "order_id"]),
        ("message.key.columns", "shop.orders:order_id;x:y", ["key.order_id", "order_id", "orders"]),
        ("column.include.list", "public.orders.price", ["price"]),
        ("query", "SELECT o.item, sum(price) FROM t o", ["item", "price"]),
        ("iceberg.tables.default-id-columns", "order_id", ["key.order_id", "order_id"]),
        ("iceberg.tables.default-partition-by", "bucket(item)", ["item"]),
        ("transforms.key.fields", "order_id", ["key.order_id", "order_id"]),
        ("transforms.cut.renames", "price:cost", ["price"]),
        ("transforms.cut.exclude", "item", ["item"]),
        ("transforms.cast.spec", "price:string", ["price"]),
        ("transforms.city.field", "address.city", ["address.city"]),
        ("transforms.city.field", "address", ["address.city"]),
        ("transforms.key.field", "key", ["value.key"]),
        # Names of topics and tables, and of fields that are added.
        ("topics", "orders", []),
        ("table.include.list", "public.orders", []),
        ("iceberg.tables", "default.orders", []),
        ("iceberg.tables.route-field", "orders", []),
        ("transforms.route.regex", "orders", []),
        ("transforms.origin.topic.field", "item", []),
        ("transforms.origin.static.field", "item", []),
        ("transforms.cut.type", "price", []),
    ],
)
def test_a_column_is_named_where_the_configuration_writes_its_name(
    key: str, value: str, named: list[str]
) -> None:
    assert list(named_columns({key: value}, ((one, one) for one in COLUMNS))) == named


def test_a_configuration_that_names_none_hands_on_all() -> None:
    assert named_columns({"connector.class": "price", "name": "item"}, [("price", "price")]) == ()


def test_a_column_may_be_named_as_a_row_or_as_a_transform_before_made_it() -> None:
    config = {"transforms.r.renames": "id:order_id", "transforms.c.spec": "address_city:string"}
    pairs = [
        ("after.id", "order_id"),
        ("before.id", "order_id"),
        ("after.address.city", "address_city"),
    ]
    assert named_columns(config, [*pairs, ("after.item", "item")]) == tuple(
        sorted(column for column, _ in pairs)
    )
