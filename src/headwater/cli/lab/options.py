"""Which lab a command is about, and how it is opened."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import remark

if TYPE_CHECKING:
    from headwater.lab.lab import Lab

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="FOLDER",
        help="The lab's folder; another folder is another lab.",
        show_default="$HEADWATER_LAB_HOME, else one in the user's data directory",
    ),
]
Services = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SERVICE]...",
        help="kafka, connect, registry, s3, catalog, postgres (what `up` starts by default); "
        "hive, spark, spark-history, server, page, agent, supplier-stats, iceberg-ingestion, lineage-lake.",
        show_default=False,
    ),
]


class CatalogKind(str, Enum):
    rest = "rest"
    hive = "hive"


Catalog = Annotated[
    CatalogKind,
    typer.Option(
        "--catalog",
        help="What keeps the Iceberg tables, where the lab is new: a REST catalog or a Hive metastore.",
    ),
]


def open_lab(home: Path | None) -> Lab:
    """The lab in a folder."""
    # Loading psutil and friends here keeps `headwater --help` and the other commands quick.
    from headwater.lab.lab import Lab

    return Lab(home, notify=remark)
