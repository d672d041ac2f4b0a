"""Pairs of PySpark and Python: found, installed from hash-pinned locks, and run apart from our own.

PySpark is pure Python, so each version is installed once and put before the packages of each Python.
Both lie in the download cache, outside the tree.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from headwater.lab.files.cache import Cache
from headwater.lab.java import find_java

ROOT = Path(__file__).parents[3]
LOCKS = ROOT / "tests" / "matrix"
SUPPORTED = {
    "3.5": ("3.10", "3.11"),
    "4.0": ("3.10", "3.11", "3.12", "3.13"),
    "4.1": ("3.10", "3.11", "3.12", "3.13"),
}


class Pair(NamedTuple):
    """One version of PySpark on one of Python."""

    spark: str
    python: str

    def __str__(self) -> str:
        return f"spark-{self.spark}-python-{self.python}"


PAIRS = [Pair(spark, python) for spark, pythons in SUPPORTED.items() for python in pythons]


def find_python(version: str) -> Path | None:
    """An interpreter of this minor version: on the path, pyenv's or uv's."""
    places = [Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"]
    if root := os.environ.get("PYENV_ROOT"):
        places.insert(0, Path(root, "versions"))
    named = f"python{version}"
    candidates = [shutil.which(named), shutil.which("python3")]
    candidates += [str(found) for place in places for found in place.glob(f"*/bin/{named}")]
    for candidate in filter(None, candidates):
        asked = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
        told = subprocess.run(
            [candidate, "-c", asked], capture_output=True, text=True, check=False
        ).stdout.split()
        if told[:1] == [version]:
            return Path(told[1])
    return None


def environment(pair: Pair, *, remote: bool = False) -> dict[str, str]:
    """The variables under which `interpreter(pair)` finds this PySpark and this checkout.

    `remote` is for a client of Spark Connect, which needs more than a driver.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SPARK_", "PYSPARK", "PYTHON", "VIRTUAL_ENV", "OPENLINEAGE"))
    }
    java = find_java()
    paths = [ROOT / "src", ROOT, _pyspark(pair), *([_remote(pair)] if remote else [])]
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAVA_HOME": str(java.executable.resolve().parents[1]),
    }


def interpreter(pair: Pair) -> Path:
    """A Python with everything but PySpark."""
    folder = installed(f"python-{pair.python}", LOCKS / "tools.lock", _base(pair))
    return folder / "bin" / "python"


def _pyspark(pair: Pair) -> Path:
    lock = LOCKS / f"spark-{pair.spark}.lock"
    return installed(f"spark-{pair.spark}", lock, _base(pair), target=True)


def _remote(pair: Pair) -> Path:
    lock = LOCKS / "remote.lock"
    return installed(f"remote-{pair.python}", lock, _base(pair), target=True)


def _base(pair: Pair) -> Path:
    base = find_python(pair.python)
    assert base is not None, f"no Python {pair.python}"
    return base


def installed(name: str, lock: Path, python: Path, *, target: bool = False) -> Path:
    """A folder with what a lock names; made anew when the lock has changed."""
    cache = Cache()
    cache.prepare()
    folder = cache.root / "matrix" / name
    folder.parent.mkdir(exist_ok=True)
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    with (folder.parent / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ready = folder / ".ready"
        if ready.exists() and ready.read_text() == digest:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        _install(folder, lock, python, target)
        ready.write_text(digest)
    return folder


def _install(folder: Path, lock: Path, python: Path, target: bool) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    wanted = ["--require-hashes", "--no-deps", "-r", str(lock)]
    if target:
        wanted = ["--python", str(python), "--target", str(folder), *wanted]
    else:
        _run(uv, "venv", "--python", str(python), str(folder))
        wanted = ["--python", str(folder / "bin" / "python"), *wanted]
    _run(uv, "pip", "install", *wanted)


def _run(*argv: str) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:] or ended.stdout[-2000:]
