"""Check the packages in `dist/` as their users have them: `python -m scripts.check_wheel [--jvm]`.

The wheel is installed with every extra into an empty environment, in an empty folder, where Node
cannot be called and nothing of the checkout is seen. Then: the server starts, takes an event and shows it on
its page in a browser, and `headwater connect preview` answers. `--jvm` (Java 17 or 21) adds a PySpark job
that reports to that server, and `headwater demo --once`. The browser is the checkout's own; without Node
in the checkout the page's files are fetched and not opened, which its line says, and which is an error in CI.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

import headwater

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
START_SECONDS = 60.0
DEMO_SECONDS = 900.0
NEEDED = (
    "server/page/index.html",
    "server/page/licences.txt",
    "lab/pipelines/orders.py",
    "lab/files/jars.lock",
    "lab/launchers/CatalogServer.java",
    "spark/JvmReader.java",
    "py.typed",
)
CONNECTOR = {
    "name": "orders-s3",
    "config": {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders",
        "s3.bucket.name": "lake",
    },
}
EVENT = {
    "eventType": "COMPLETE",
    "eventTime": "2026-01-01T00:00:00Z",
    "producer": "urn:headwater:check",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    "run": {"runId": "0190a5b6-3b1e-7000-8000-000000000000"},
    "job": {"namespace": "shop", "name": "load_orders"},
    "outputs": [{"namespace": "s3://lake", "name": "orders"}],
}
SPARK_JOB = """
from pyspark.sql import SparkSession
import headwater.spark

builder = SparkSession.builder.appName("from-the-wheel").master("local[1]")
builder = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
spark = headwater.spark.attach(builder.getOrCreate())
spark.range(3).write.parquet("written")
spark.stop()
"""


NOT_OPENED = "NOT OPENED in a browser: the checkout has no Node, or no packages of web/"


class Failed(Exception):
    """A package is not as it should be."""


def expect(holds: object, problem: str) -> None:
    if not holds:
        raise Failed(problem)


class Installed:
    """The wheel in an environment of its own, and a folder to call it in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder / "empty"
        self.folder.mkdir()
        self.bin = folder / "venv" / "bin"
        missing = folder / "missing"
        missing.mkdir()
        for name in ("node", "npm", "npx"):
            (missing / name).write_text("#!/bin/sh\necho there is no Node here >&2\nexit 97\n")
            (missing / name).chmod(0o755)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEADWATER_", "PYTHON"))}
        if cache := os.environ.get("HEADWATER_CACHE"):  # of downloads
            kept["HEADWATER_CACHE"] = cache
        path = os.pathsep.join([str(self.bin), str(missing), os.environ["PATH"]])
        self.env = {**kept, "PATH": path, "VIRTUAL_ENV": str(self.bin.parent), "CI": "true"}
        self._install(wheel)

    def _install(self, wheel: Path) -> None:
        what = f"headwater[all] @ {wheel.resolve().as_uri()}"
        # pip takes a quarter of an hour on a busy machine for what uv, of the checkout, does in two minutes.
        if uv := shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent):
            self.run(uv, "venv", "-q", "--python", sys.executable, str(self.bin.parent))
            self.run(uv, "pip", "install", "-q", what)
        else:
            self.run(sys.executable, "-m", "venv", str(self.bin.parent))
            self.run(str(self.bin / "python"), "-m", "pip", "install", "-q", what)

    def run(self, *command: str, timeout: float = 1200, **env: str) -> str:
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env={**self.env, **env},
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)}\nwas not done after {timeout:g} s") from None
        expect(
            done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
        return done.stdout

    def headwater(self, *words: str, timeout: float = 1200) -> str:
        return self.run(str(self.bin / "headwater"), *words, timeout=timeout)

    @contextmanager
    def server(self) -> Iterator[str]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        log = self.folder / "server.log"
        command = [str(self.bin / "headwater"), "server", "--port", str(port)]
        command += ["--store", f"sqlite:///{self.folder}/headwater.db"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=out, stderr=subprocess.STDOUT
            )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not answers(f"{url}/api/v2/health"):
                expect(process.poll() is None, f"the server ended:\n{log.read_text()}")
                expect(time.monotonic() < deadline, f"the server is silent:\n{log.read_text()}")
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False


def contents(dist: Path) -> Path:
    """Check what is in the packages; returns the wheel."""
    version = headwater.__version__
    wheel = dist / f"headwater-{version}-py3-none-any.whl"
    source = dist / f"headwater-{version}.tar.gz"
    for path in (wheel, source, dist / f"headwater-{version}.cdx.json"):
        expect(path.exists(), f"{path} is not there: make dist")
    with zipfile.ZipFile(wheel) as packed:
        files = set(packed.namelist())
    absent = {f"headwater/{name}" for name in NEEDED} - files
    expect(not absent, f"the wheel lacks {sorted(absent)}")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(source) as packed:
        packed.extractall(folder)
        tree = Path(folder, f"headwater-{version}")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, cwd=tree, check=True, capture_output=True)
        with zipfile.ZipFile(Path(folder, wheel.name)) as again:
            other = files ^ set(again.namelist())
    expect(not other, f"a wheel of the source package differs in {sorted(other)}")
    return wheel


def page(url: str) -> str:
    """The page and every file it names are served; it opens in a browser and shows the event."""
    text = httpx.get(url).text
    files = re.findall(r'(?:src|href)="(/[^"]+)"', text)
    expect(files, f"the page names no files:\n{text}")
    for file in files:
        expect(answers(url + file), f"the page lacks {file}")
    web, node = ROOT / "web", shutil.which("node")
    if node is None or not (web / "node_modules/playwright-core").is_dir():
        expect(not os.environ.get("CI"), NOT_OPENED)
        return f"{len(files)} files served, {NOT_OPENED}"
    command = [node, "browser/open.mjs", f"{url}/jobs/shop/load_orders", "load_orders"]
    done = subprocess.run(
        command, cwd=web, capture_output=True, text=True, check=False, timeout=120
    )
    expect(done.returncode == 0, f"the page in a browser:\n{done.stderr}")
    return f"{len(files)} files served, opened in a browser"


def preview(installed: Installed) -> str:
    (installed.folder / "connector.json").write_text(json.dumps(CONNECTOR))
    words = ["connect", "preview", "--config", "connector.json", "--kafka-bootstrap", "k1:9092"]
    event: dict[str, Any] = json.loads(installed.headwater(*words, "--json"))
    names = [f"{d['namespace']}/{d['name']}" for d in (*event["inputs"], *event["outputs"])]
    expect(names == ["kafka://k1:9092/orders", "s3://lake/topics/orders"], f"preview: {names}")
    return " -> ".join(names)


def spark_job(installed: Installed, url: str) -> str:
    program = installed.folder / "job.py"
    program.write_text(SPARK_JOB)
    installed.run(
        str(installed.bin / "python"),
        str(program),
        OPENLINEAGE_URL=url,
        OPENLINEAGE_NAMESPACE="check",
    )
    jobs = httpx.get(f"{url}/api/v1/namespaces/check/jobs").json()["jobs"]
    outputs = {one["name"] for job in jobs for one in job["outputs"]}
    expect(any(name.endswith("/written") for name in outputs), f"Spark: {jobs}")
    return f"{len(jobs)} jobs reported"


def demo(installed: Installed) -> str:
    installed.headwater("demo", "--once", "--no-open", timeout=DEMO_SECONDS)
    verdict = json.loads((installed.folder / "demo-verdict.json").read_text())
    expect(verdict["ok"], f"the demo misses {verdict['missing']}")
    return f"{len(verdict['jobs'])} jobs, {len(verdict['edges'])} edges, {len(verdict['columns'])} column paths"


def check(dist: Path, *, jvm: bool) -> None:
    began = time.monotonic()

    def done(what: str, found: str = "") -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what:<16} {found}", flush=True)

    wheel = contents(dist)
    done("contents", wheel.name)
    with tempfile.TemporaryDirectory(prefix="headwater-wheel-") as folder:
        Path(folder).chmod(0o755)  # as root, the lab runs PostgreSQL from here as another user
        installed = Installed(Path(folder), wheel)
        shown = installed.headwater("--version").strip()
        expect(shown == f"headwater {headwater.__version__}", shown)
        done("installed", shown)
        where = installed.run(
            str(installed.bin / "python"), "-c", "import headwater as h; print(h.__file__)"
        )
        expect(where.startswith(str(installed.bin.parent)), f"imported from {where}")
        with installed.server() as url:
            taken = httpx.post(f"{url}/api/v1/lineage", json=EVENT)
            expect(taken.status_code == 201, f"the event: {taken.status_code} {taken.text}")
            done("server", "took an event")
            done("page", page(url))
            done("connect preview", preview(installed))
            if jvm:
                done("PySpark job", spark_job(installed, url))
        if jvm:
            done("demo", demo(installed))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--jvm", action="store_true", help="a PySpark job and the demo too")
    options = parser.parse_args()
    try:
        check(options.dist, jvm=options.jvm)
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
