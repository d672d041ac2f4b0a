"""Program `supplier-stats-export`: the summary `default.supplier_stats` as CSV on S3.

There is no Spark here whose plan could be read: what it reads and writes the program says itself, by
`headwater.run`. Only that is reported by hand; that the run fails, or is killed, is noticed all the same.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from typing import TYPE_CHECKING, Any

import options

import headwater

if TYPE_CHECKING:
    import argparse

    from pyiceberg.table import Table

JOB = "supplier-stats-export"
FILE = "totals.csv"


def catalog(settings: argparse.Namespace) -> dict[str, str]:
    """What pyiceberg has to know of the catalog. Keys it finds where every client of AWS does."""
    found = {"type": "rest", "uri": settings.catalog_uri}
    if not settings.catalog_uri:
        found = {"type": "hive", "uri": settings.hms_endpoint}
    found["warehouse"] = settings.warehouse
    found["s3.endpoint"] = settings.s3_endpoint
    found["s3.region"] = os.environ.get("AWS_REGION")
    return {key: value for key, value in found.items() if value}


def as_csv(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    """Rows with a header; what is missing is empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def export(table: Table, target: str) -> int:
    """Write the table's rows to a file in the target; returns how many there are."""
    columns = [field.name for field in table.schema().fields]
    rows = table.scan().to_arrow().sort_by(columns[0]).to_pylist()
    with table.io.new_output(f"{target}/{FILE}").create(overwrite=True) as out:
        out.write(as_csv(rows, columns))
    return len(rows)


def main(settings: argparse.Namespace) -> None:
    from pyiceberg.catalog import load_catalog

    target = settings.target.rstrip("/")
    with headwater.run(settings.job_name or JOB) as run:
        table = load_catalog(settings.catalog, **catalog(settings)).load_table(settings.table)
        place, fields = table.location(), table.schema().fields
        run.inputs(place)
        run.outputs(target, schema={field.name: str(field.field_type) for field in fields})
        run.columns(target, {field.name: [(place, field.name)] for field in fields})
        count = export(table, target)
    sys.stderr.write(f"{JOB}: {count} rows in {target}/{FILE}\n")


def arguments() -> argparse.ArgumentParser:
    """The options of this program."""
    parser = options.arguments(__doc__)
    table = "default.supplier_stats"
    parser.add_argument("--table", default=table, help=f"where from  [{table}]")
    folder = "s3://exports/supplier_stats"
    parser.add_argument("--target", default=folder, help=f"folder to write to  [{folder}]")
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
