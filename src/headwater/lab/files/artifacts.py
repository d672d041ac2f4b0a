"""What the lab downloads: the entries of `jars.lock` and where each lies in the cache."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """One file, pinned by coordinate and content.

    `needed_by` names services, and `connect/<plug-in>` for what goes into a Connect plug-in folder.
    """

    coordinate: str
    classifier: str = ""
    type: str = "jar"
    size: int
    sha256: str
    needed_by: tuple[str, ...] = msgspec.field(name="for")

    @property
    def organisation(self) -> str:
        return self.coordinate.split(":")[0]

    @property
    def name(self) -> str:
        return self.coordinate.split(":")[1]

    @property
    def version(self) -> str:
        return self.coordinate.split(":")[2]

    @property
    def filename(self) -> str:
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{suffix}.{self.type}"

    @property
    def path(self) -> PurePosixPath:
        """Where the file lies below the cache's `jars` folder."""
        return PurePosixPath(self.organisation, self.filename)

    def is_for(self, services: Iterable[str]) -> bool:
        wanted = set(services)
        return any(need.split("/")[0] in wanted for need in self.needed_by)


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of `jars.lock`."""

    artifacts: tuple[Artifact, ...]

    def select(self, services: Iterable[str]) -> list[Artifact]:
        wanted = set(services)
        return [artifact for artifact in self.artifacts if artifact.is_for(wanted)]

    def bundle(self, need: str) -> list[Artifact]:
        """The artifacts of one service or one Connect plug-in."""
        return [artifact for artifact in self.artifacts if need in artifact.needed_by]

    def version_of(self, name: str) -> str:
        return next(artifact.version for artifact in self.artifacts if artifact.name == name)


_lock = msgspec.json.Decoder(Lock)


@cache
def lock() -> Lock:
    """The lock that ships with the package."""
    text = resources.files("headwater.lab.files").joinpath("jars.lock").read_bytes()
    return _lock.decode(text)


def write_lock(artifacts: Iterable[Artifact], path: Path) -> None:
    """Write the lock, one artifact a line, so that a change reads well in a diff."""
    ordered = sorted(artifacts, key=lambda a: (a.coordinate, a.classifier))
    lines = ",\n".join("  " + msgspec.json.encode(artifact).decode() for artifact in ordered)
    path.write_text(f'{{"artifacts": [\n{lines}\n]}}\n')
