"""Tables of a DuckDB file that stand for files elsewhere, as dbt reports some of its sources and models.

dbt reports such a source as a table, though the SQL of the job names the file; of such a model it says that
it is external, and nothing says where.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage.graph import NodeKind
from headwater.lineage.naming import NamingError, from_uri
from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT, unslot

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from headwater.lineage.naming import DatasetName
    from headwater.server.store.entities import Node, RunState
    from headwater.server.store.view import View

__all__ = ["ExternalFiles", "external_files"]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value
_ADDRESS = re.compile(r"(?:[a-z][\w+.\-]*://|/)[^']+", re.IGNORECASE)
# A comment, a literal, a name in quotes, a plain one, or anything else.
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|('[^']*(?:'|\Z))|\"([^\"]*)(?:\"|\Z)|(\w+)|(\S)", re.DOTALL
)
_FILE = re.compile(rf"(?:\b(?:from|join)\s|[(\[,])\s*'({_ADDRESS.pattern})'", re.IGNORECASE)


class ExternalFiles(NamedTuple):
    """The file of each table as far as it is known, and a sentence where it is not."""

    files: dict[Node, DatasetName]
    likely: dict[Node, DatasetName]
    """Of the only table of a job that is left, the only file that is left."""
    unknown: list[tuple[Node, str]]


def external_files(view: View, runs: Iterable[tuple[int, RunState]]) -> ExternalFiles:
    """What is known of the files behind dbt's tables, by jobs with the newest run of each."""
    sql = (
        "SELECT d.id FROM dataset d JOIN namespace n ON n.id = d.namespace"
        " WHERE substr(n.name, 1, 7) = 'duckdb:'"
    )
    tables = {row[0] for row in view.all(sql)}
    if not tables:
        return ExternalFiles({}, {}, [])
    asked = {
        job: (run, facet)
        for job, run in runs
        if (facet := run.job_facets.get("sql")) and not tables.isdisjoint(_inputs(run))
    }
    bodies = view.bodies(facet for _, facet in asked.values())
    found: dict[Node, DatasetName] = {}
    likely: dict[Node, DatasetName] = {}
    unknown, written = _models(view, tables), _written(view, tables)
    for job, (run, facet) in asked.items():
        statement = known.read(bodies.get(facet, b"{}"), known.SqlFacet)
        if statement is None or statement.dialect != "duckdb":
            continue
        files = _named(statement.query)
        matched, left, files = _match(_tables(view, run, statement.query, written), files)
        found |= matched
        if len(left) == len(files) == 1:
            likely |= dict(zip(left, files, strict=True))
        elif left and files:
            places = ", ".join(sorted(f"{file.namespace} {file.name}" for file in files))
            text = f"its SQL reads {places}, and nothing says which of its tables stands for which file"
            unknown.append(((JOB, job), text))
    return ExternalFiles(found, likely, unknown)


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


def _written(view: View, tables: Iterable[int]) -> set[int]:
    """The datasets that some job has ever written: they are tables, and no files elsewhere."""
    sql = (
        "SELECT d.root FROM dataset d JOIN edge e ON e.dataset = d.id"
        " WHERE e.direction = ? AND d.root IN ({in})"
    )
    return {row[0] for row in within(view.connection, sql, tables, (OUTPUT,))}


def _tables(view: View, run: RunState, query: str, written: Container[int]) -> dict[Node, str]:
    """Names of what a run reports to read as tables of DuckDB files, and that must be something else.

    Nobody writes such a table, and the statement does not name it.
    """
    numbers = _inputs(run)
    roots = view.roots(numbers)
    shown = view.datasets({roots.get(number, number) for number in numbers})
    suspects = {
        (DATASET, number): one.name
        for number, one in shown.items()
        if one.space.startswith("duckdb:") and number not in written
    }
    words = _words(query) if suspects else []
    return {
        node: name
        for node, name in suspects.items()
        if _ADDRESS.match(name) or not _reads(words, name)
    }


def _words(query: str) -> list[str]:
    """The words and signs of a statement, names in lower case and without their quotes."""
    found = (
        literal or (quoted or plain or sign).lower()
        for literal, quoted, plain, sign in _TOKEN.findall(query)
    )
    return ["", *filter(None, found), "", ""]


def _reads(words: list[str], table: str) -> bool:
    """Whether a statement names a table: with its schema, or alone where it does not give that name itself."""
    *_, schema, name = ("", *table.lower().split("."))
    places = [place for place, word in enumerate(words) if word == name]
    alone = [place for place in places if words[place - 1] != "."]
    given = any(
        words[place - 1] in ("as", ")")
        or words[place - 1].startswith("'")
        or words[place + 1 : place + 3] == ["as", "("]
        for place in alone
    )
    return (bool(alone) and not given) or any(
        words[place - 2] == schema for place in places if words[place - 1] == "."
    )


def _inputs(run: RunState) -> set[int]:
    return {dataset for dataset, way in map(unslot, run.io) if way == INPUT}


def _match(
    tables: dict[Node, str], files: set[DatasetName]
) -> tuple[dict[Node, DatasetName], list[Node], set[DatasetName]]:
    """The file of each table, if one alone has its name; and the tables and files that are left.

    As the origin of a column dbt names the file itself, by its address, as if it were a table too.
    """
    stems: dict[str, list[DatasetName]] = {}
    for file in files:
        stems.setdefault(file.name.rpartition("/")[2].partition(".")[0].lower(), []).append(file)
    named = {table: name.rpartition(".")[2].lower() for table, name in tables.items()}
    alike = Counter(named.values())
    found: dict[Node, DatasetName] = {}
    left: list[Node] = []
    taken: set[DatasetName] = set()
    for table, name in tables.items():
        fitting = stems.get(named[table], [])
        address = _file(name) if _ADDRESS.match(name) else None
        if address is not None:
            found[table] = address
        elif len(fitting) == alike[named[table]] == 1:
            found[table] = fitting[0]
            taken.add(fitting[0])
        else:
            left.append(table)
    return found, left, files - taken


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
