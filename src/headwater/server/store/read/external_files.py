"""Tables of a DuckDB file that stand for files elsewhere, as dbt reports some of its sources and models.

dbt reports such a source as a table, though the SQL of the job names the file; of such a model it says that
it is external, and nothing says where.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage.graph import NodeKind
from headwater.lineage.naming import NamingError, from_uri
from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, unslot

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.naming import DatasetName
    from headwater.server.store.entities import Node, RunState
    from headwater.server.store.view import View

__all__ = ["ExternalFiles", "external_files"]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value
_ADDRESS = re.compile(r"(?:[a-z][\w+.\-]*://|/)[^']+", re.IGNORECASE)
_FILE = re.compile(rf"(?:\b(?:from|join)\s|[(\[,])\s*'({_ADDRESS.pattern})'", re.IGNORECASE)


class ExternalFiles(NamedTuple):
    """The file of each table as far as it is known, and what is said where it is not."""

    files: dict[Node, DatasetName]
    unknown: list[tuple[Node, str]]


def external_files(view: View, runs: Iterable[tuple[int, RunState]]) -> ExternalFiles:
    """What is known of the files behind dbt's tables, by jobs with the newest run of each."""
    sql = (
        "SELECT d.id FROM dataset d JOIN namespace n ON n.id = d.namespace"
        " WHERE substr(n.name, 1, 7) = 'duckdb:'"
    )
    tables = {row[0] for row in view.all(sql)}
    if not tables:
        return ExternalFiles({}, [])
    asked = {
        job: (run, facet)
        for job, run in runs
        if (facet := run.job_facets.get("sql")) and not tables.isdisjoint(_inputs(run))
    }
    bodies = view.bodies(facet for _, facet in asked.values())
    found: dict[Node, DatasetName] = {}
    unknown = _models(view, tables)
    for job, (run, facet) in asked.items():
        told = known.read(bodies.get(facet, b"{}"), known.SqlFacet)
        if told is None or told.dialect != "duckdb":
            continue
        files = _named(told.query)
        matched, others = _match(_tables(view, run, told.query), files)
        found |= matched
        if others and (files := files - set(matched.values())):
            places = ", ".join(sorted(f"{file.namespace} {file.name}" for file in files))
            text = f"its SQL reads {places}, and nothing says which of its tables stands for which file"
            unknown.append(((JOB, job), text))
    return ExternalFiles(found, unknown)


def _named(query: str) -> set[DatasetName]:
    """The files that a statement reads."""
    return {file for address in _FILE.findall(query) if (file := _file(address))}


def _file(address: str) -> DatasetName | None:
    """The file at an address; of many with a pattern their folder."""
    try:
        file = from_uri(address)
    except NamingError:
        return None
    fixed, pattern, _ = file.name.partition("*")
    return file._replace(name=fixed.rpartition("/")[0]) if pattern else file


def _tables(view: View, run: RunState, query: str) -> dict[Node, str]:
    """Names of the tables of DuckDB files that a run reports to read and that its statement does not name."""
    numbers = _inputs(run)
    roots = view.roots(numbers)
    shown = view.datasets({roots.get(number, number) for number in numbers})
    return {
        (DATASET, number): one.name
        for number, one in shown.items()
        if one.space.startswith("duckdb:") and f'"{one.name.rpartition(".")[2]}"' not in query
    }


def _inputs(run: RunState) -> set[int]:
    return {dataset for dataset, way in map(unslot, run.io) if way == INPUT}


def _match(
    tables: dict[Node, str], files: set[DatasetName]
) -> tuple[dict[Node, DatasetName], dict[Node, str]]:
    """The file of each table: that of its name, or the only one for the only table; and what is left.

    As the origin of a column dbt names the file itself, by its address, as if it were a table too.
    """
    stems: dict[str, list[DatasetName]] = {}
    for file in files:
        stems.setdefault(file.name.rpartition("/")[2].partition(".")[0].lower(), []).append(file)
    found: dict[Node, DatasetName] = {}
    left: dict[Node, str] = {}
    taken: set[DatasetName] = set()
    for table, name in tables.items():
        fitting = stems.get(name.rpartition(".")[2].lower(), [])
        address = _file(name) if _ADDRESS.match(name) else None
        if address is not None:
            found[table] = address
        elif len(fitting) == 1:
            found[table] = fitting[0]
            taken.add(fitting[0])
        else:
            left[table] = name
    if len(left) == len(files - taken) == 1:
        return found | {next(iter(left)): next(iter(files - taken))}, {}
    return found, left


def _models(view: View, tables: set[int]) -> list[tuple[Node, str]]:
    """External models that nobody has joined with their file yet."""
    sql = "SELECT id, root FROM dataset WHERE hidden = 0 AND root IN ({in})"
    named: dict[int, list[int]] = {}
    for number, root in within(view.connection, sql, tables):
        named.setdefault(root, []).append(number)
    datasets = view.datasets(root for root, names in named.items() if names == [root])
    held = {
        number: facet[0]
        for number, dataset in datasets.items()
        if (facet := dataset.state.facets.get("dbt_model"))
    }
    bodies = view.bodies(held.values())
    text = (
        "dbt writes it as a file elsewhere, and its events do not say which: an alias or a rule of yours"
        " joins it with the file"
    )
    return [
        ((DATASET, number), text)
        for number, facet in held.items()
        if (read := known.read(bodies.get(facet, b"{}"), known.DbtModelFacet)) is not None
        and read.config.materialized == "external"
    ]
