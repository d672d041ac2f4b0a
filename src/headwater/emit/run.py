"""Lineage by hand, for any Python program.

    with headwater.run("iceberg-ingestion", namespace="lab") as run:
        run.inputs("s3://raw/orders")
        run.outputs("s3://warehouse/orders")
        run.columns("s3://warehouse/orders", {"price": [("s3://raw/orders", "price")]})

START on entry, RUNNING when lineage is added and as heartbeat, COMPLETE at the end, FAIL on an
exception, ABORT on a signal or when the process is killed.
"""

from __future__ import annotations

import contextvars
import os
import platform
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

import headwater
from headwater.emit import internal_errors, journals
from headwater.emit.parent import from_environment
from headwater.emit.process.process_exit import PROCESS_EXIT, RunEnd, of_exception
from headwater.emit.run_emitter import RunEmitter, heartbeat_seconds, new_run_id
from headwater.lineage import naming
from headwater.lineage.model import (
    Ancestors,
    ColumnLineage,
    ColumnSource,
    Dataset,
    DatasetName,
    Engine,
    Job,
    Lineage,
    RunRef,
    Transformation,
)
from headwater.lineage.model import (
    Run as ModelRun,
)
from headwater.lineage.schema import Field, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

SETTLE_SECONDS = 0.1
INDIRECT = frozenset({"JOIN", "GROUP_BY", "FILTER", "SORT", "WINDOW", "CONDITIONAL"})

_current: contextvars.ContextVar[Run | None] = contextvars.ContextVar("run", default=None)


DatasetLike = str | tuple[str, str] | DatasetName
Source = tuple[DatasetLike, str] | tuple[DatasetLike, str, str]


class Run:
    """A run whose lineage the program reports itself; use it as a context manager."""

    def __init__(self, name: str, namespace: str, beat: float, job_kind: str) -> None:
        outer = _current.get()
        above = outer.ancestors_below if outer else from_environment()
        self.name, self.namespace, self.run_id = name, namespace, new_run_id()
        self._ref = RunRef(namespace, name, self.run_id)
        self._above = above
        self._beat = beat
        self._kind = job_kind
        self._life: RunEmitter | None = None
        self._inputs: dict[DatasetName, Dataset] = {}
        self._outputs: dict[DatasetName, Dataset] = {}
        self._changed = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._token: contextvars.Token[Run | None] | None = None

    @property
    def ancestors_below(self) -> Ancestors:
        """What a run inside this one has above it."""
        return self._above.below(self._ref) if self._above else Ancestors(self._ref, self._ref)

    def inputs(self, *datasets: DatasetLike, schema: Mapping[str, str] | None = None) -> None:
        """Report what the program reads: URIs, or pairs of namespace and name."""
        self._add(self._inputs, datasets, schema)

    def outputs(self, *datasets: DatasetLike, schema: Mapping[str, str] | None = None) -> None:
        """Report what the program writes."""
        self._add(self._outputs, datasets, schema)

    def columns(self, output: DatasetLike, fields: Mapping[str, Iterable[Source]]) -> None:
        """Report where columns come from: `{column: [(input, its column, "AGGREGATION")]}`.

        The third part is IDENTITY when it is left out. Inputs and the output become known by it.
        """
        found: dict[str, tuple[ColumnSource, ...]] = {}
        for column, sources in fields.items():
            found[column] = tuple(_column_source(*source) for source in sources)
            for item in found[column]:
                self._inputs.setdefault(item.dataset, Dataset(*item.dataset))
        name = _named(output)
        target = self._outputs.get(name, Dataset(*name))
        before = target.columns.fields if target.columns else {}
        self._outputs[name] = replace(target, columns=ColumnLineage({**before, **found}))
        self._changed.set()

    def __enter__(self) -> Run:
        self._token = _current.set(self)
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
        self._finish(PROCESS_EXIT.now if PROCESS_EXIT.signalled else of_exception(error))

    @internal_errors.log_and_ignore("beginning a run")
    def _begin(self) -> None:
        engine = Engine("python", platform.python_version(), headwater.__version__)
        self._life = RunEmitter(
            journals.journal(),
            Job(self.namespace, self.name, self._kind, "PYTHON", "JOB", self._beat),
            ModelRun(self.run_id, self._above, engine),
            # A program names its datasets and nothing of the stores behind them.
            disabled_facets=frozenset({"dataSource"}),
        )
        self._life.start()
        PROCESS_EXIT.alive()
        PROCESS_EXIT.watch(self._finish)
        self._thread = threading.Thread(target=self._live, daemon=True, name="headwater-run")
        self._thread.start()

    @internal_errors.log_and_ignore("emitting a run's lineage")
    def _report(self) -> None:
        if self._life is not None:
            self._fill(self._life)
            self._life.running()

    def _fill(self, life: RunEmitter) -> None:
        life.lineage = Lineage(tuple(self._inputs.values()), tuple(self._outputs.values()))

    def _live(self) -> None:
        while not self._over.is_set():
            # Lineage added by several calls goes out in one event.
            if self._changed.wait(self._beat):
                self._over.wait(SETTLE_SECONDS)
                self._changed.clear()
            if not self._over.is_set():
                self._report()

    @internal_errors.log_and_ignore("ending a run")
    def _finish(self, ending: RunEnd) -> None:
        self._over.set()
        self._changed.set()
        PROCESS_EXIT.forget(self._finish)
        if self._life is not None:
            self._fill(self._life)
            self._life.end(ending)

    def _add(
        self,
        side: dict[DatasetName, Dataset],
        datasets: Iterable[DatasetLike],
        schema: Mapping[str, str] | None,
    ) -> None:
        for one in datasets:
            name = _named(one)
            known = side.setdefault(name, Dataset(*name))
            if schema is not None:
                fields = tuple(Field(column, kind) for column, kind in schema.items())
                side[name] = replace(known, schema=Schema(fields))
        self._changed.set()


def run(
    name: str,
    namespace: str | None = None,
    *,
    heartbeat: float | None = None,
    processing: str = "BATCH",
) -> Run:
    """A run of a job by that name, whose lineage the program reports itself.

    `processing` is BATCH, STREAMING or SERVICE. Where events go is openlineage-python's
    configuration; `namespace` is `OPENLINEAGE_NAMESPACE`, else `default`.
    """
    chosen = namespace or os.environ.get("OPENLINEAGE_NAMESPACE") or "default"
    return Run(name, chosen, heartbeat or heartbeat_seconds(), processing)


def _named(one: DatasetLike) -> DatasetName:
    if isinstance(one, str):
        return naming.from_uri(one)
    return naming.canonical(*one)


def _column_source(one: DatasetLike, field: str, kind: str = "IDENTITY") -> ColumnSource:
    direct = "INDIRECT" if kind in INDIRECT else "DIRECT"
    return ColumnSource(_named(one), field, (Transformation(direct, kind, "", False),))
