"""A fake at the edge: a `java` that says a version and plays Ivy over a folder of files."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import pytest

from headwater.lab.files.artifacts import Artifact
from headwater.lab.files.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAKE_JAVA = """#!{python} -IS
import pathlib, re, shutil, sys, time
repository = pathlib.Path({repository!r})
if "-version" in sys.argv:
    sys.exit(print('openjdk version "17.0.15" 2025-04-15', file=sys.stderr))
module = pathlib.Path(sys.argv[sys.argv.index("-ivy") + 1])
asked = re.findall(r'org="([^"]+)" name="([^"]+)" rev="([^"]+)"', module.read_text())
with (repository / "asked").open("a") as log:
    log.writelines(":".join(each) + "\\n" for each in asked)
for organisation, name, version in asked:
    target = module.parent / "cache" / organisation / f"{{name}}:{{version}}::.jar"
    target.parent.mkdir(parents=True, exist_ok=True)
    source = repository / f"{{name}}-{{version}}.jar"
    if source.is_file():
        shutil.copy(source, target)
if (repository / "says").is_file():
    print((repository / "says").read_text())
if (repository / "hangs").is_file():
    (repository / "hanging").touch()
    time.sleep(60)
"""


class Repository:
    """What the fake Ivy can download, and what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def publish(self, name: str, content: bytes = b"") -> Artifact:
        content = content or f"the content of {name}".encode()
        (self.folder / f"{name}-1.0.jar").write_bytes(content)
        return Artifact(
            coordinate=f"org.example:{name}:1.0",
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            needed_by=("kafka",),
        )

    def replace(self, artifact: Artifact, content: bytes) -> None:
        (self.folder / artifact.filename).write_bytes(content)

    def lose(self, artifact: Artifact) -> None:
        (self.folder / artifact.filename).unlink()

    @property
    def asked(self) -> list[str]:
        log = self.folder / "asked"
        return sorted(log.read_text().split()) if log.exists() else []


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path / "repository")
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE_JAVA.format(python=sys.executable, repository=str(made.folder)))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make a JAVA_HOME whose java runs the given lines of shell."""

    def make(script: str) -> Path:
        home = tmp_path / "java"
        (home / "bin").mkdir(parents=True)
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))
        return home

    return make
