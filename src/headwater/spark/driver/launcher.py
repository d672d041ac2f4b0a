"""Run a PySpark program as it is, with lineage: what `headwater spark run` and spark-submit start.

spark-submit … $(headwater spark launcher) job.py …
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent.parent / "submit" / "with_lineage.py"


def install() -> None:
    """Attach to every session this program makes, and keep the OpenLineage jar's listener out."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.Builder
    context: Any = SparkContext
    get, initialize = builder.getOrCreate, context._initialize_context  # noqa: SLF001

    def get_or_create(self: Any) -> Any:
        from headwater.spark import attach

        return attach(get(self))

    def initialize_context(self: Any, conf: Any) -> Any:
        drop_jar(conf)
        return initialize(self, conf)

    builder.getOrCreate = get_or_create
    context._initialize_context = initialize_context  # noqa: SLF001


def drop_jar(conf: Any) -> None:
    """Take the jar's listener out of Spark's conf: with both, everything would be reported twice."""
    from headwater.emit import internal_errors
    from headwater.spark.driver.config import JAR_LISTENER

    @internal_errors.log_and_ignore("looking for the OpenLineage jar's listener")
    def drop() -> None:
        given = str(conf.get("spark.extraListeners", ""))
        names = [name.strip() for name in given.split(",") if name.strip()]
        kept = [name for name in names if name != JAR_LISTENER]
        if kept == names:
            return
        if kept:
            conf.set("spark.extraListeners", ",".join(kept))
        else:
            conf.remove("spark.extraListeners")
        sys.stderr.write(
            f"headwater: {JAR_LISTENER} is left out of spark.extraListeners, "
            "since headwater reports this job\n"
        )

    drop()


def run(program: str, arguments: list[str]) -> None:
    """Run a program as `python program arguments` would."""
    from headwater.emit.process.process_exit import PROCESS_EXIT

    path = Path(program)
    sys.argv = [program, *arguments]
    main = types.ModuleType("__main__")
    main.__dict__.update({"__file__": program, "__builtins__": __builtins__})
    sys.modules["__main__"] = main
    install()
    try:
        exec(compile(path.read_bytes(), program, "exec"), main.__dict__)  # noqa: S102
    except BaseException as error:
        PROCESS_EXIT.program_ended(error)
        raise


def main() -> None:
    """Run the program that the command line names."""
    if len(sys.argv) < 2:
        sys.exit("usage: with_lineage.py PROGRAM [ARGUMENT]...")
    sys.path[0] = str(Path(sys.argv[1]).resolve().parent)
    run(sys.argv[1], sys.argv[2:])
