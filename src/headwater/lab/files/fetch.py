"""Bring what the lock names into the cache: download by Ivy, verify, keep what is right."""

from __future__ import annotations

import errno
import os
import shutil
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headwater.errors import EnvironmentProblem, HeadwaterError
from headwater.lab.files import ivy
from headwater.lab.files.ivy import Dependency
from headwater.lab.java import find_java

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headwater.lab.files.artifacts import Artifact
    from headwater.lab.files.cache import Cache

# Room for archives to be unpacked beside the downloads.
HEADROOM = 300 << 20
POLL_SECONDS = 0.2
# Hundreds of small files: several at a time hide the waiting for each.
SHARDS = 4


class FetchProgress(Protocol):
    """How a fetch reports its progress."""

    def step(self, name: str, total: int) -> None:
        """A step of so many bytes begins."""

    def at(self, done: int) -> None:
        """So many bytes of the step are done."""

    def notify(self, text: str) -> None:
        """Something a person should read."""


class NoProgress:
    """Reports nothing."""

    def step(self, name: str, total: int) -> None: ...

    def at(self, done: int) -> None: ...

    def notify(self, text: str) -> None: ...


class Fetched(NamedTuple):
    """What a fetch came to."""

    files: int
    size: int
    downloaded: int
    replaced: tuple[str, ...]


def ensure(
    cache: Cache, artifacts: Sequence[Artifact], progress: FetchProgress | None = None
) -> None:
    """Fetch only what is not there verified; costs a few file look-ups when the cache is full."""
    if missing := cache.missing(artifacts):
        fetch(cache, missing, progress)


def fetch(
    cache: Cache, artifacts: Sequence[Artifact], progress: FetchProgress | None = None
) -> Fetched:
    """Verify every file, remove the wrong ones, download what lacks, verify that too."""
    progress = progress or NoProgress()
    cache.prepare()
    try:
        return _fetch(cache, artifacts, progress)
    except OSError as error:
        raise cache.problem(error) from error


def _fetch(cache: Cache, artifacts: Sequence[Artifact], progress: FetchProgress) -> Fetched:
    with cache.locked(
        lambda: progress.notify("another fetch is under way, waiting for it")
    ) as lock:
        wrong = _sweep(cache, artifacts, progress)
        for artifact in wrong:
            progress.notify(
                f"{artifact.path} did not match its sha256: removed, downloading it again"
            )
        missing = [a for a in artifacts if not cache.path(a).is_file()]
        if missing:
            _require_space(cache.root, sum(artifact.size for artifact in missing))
            _download(cache, missing, progress, lock)
        cache.mark_verified(artifacts)
    return Fetched(
        files=len(artifacts),
        size=sum(artifact.size for artifact in artifacts),
        downloaded=len(missing),
        replaced=tuple(str(artifact.path) for artifact in wrong),
    )


def _sweep(cache: Cache, artifacts: Sequence[Artifact], progress: FetchProgress) -> list[Artifact]:
    present = [artifact for artifact in artifacts if cache.path(artifact).is_file()]
    progress.step("verifying", sum(artifact.size for artifact in present))
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        progress.at(done)

    wrong = []
    for artifact in present:
        if not cache.verify(artifact, count):
            cache.path(artifact).unlink()
            wrong.append(artifact)
    return wrong


def _require_space(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size + HEADROOM:
        raise EnvironmentProblem(
            f"the disk of {folder} has {free >> 20} MB free, "
            f"the lab's files need {(size + HEADROOM) >> 20} MB",
            hint="free some space, or set HEADWATER_CACHE to a folder on another disk",
        )


def _download(
    cache: Cache, missing: Sequence[Artifact], progress: FetchProgress, lock: int
) -> None:
    work = cache.root / "ivy"
    _harvest(cache, missing, work)  # what an interrupted fetch left behind
    wanted = [a for a in missing if not cache.path(a).is_file()]
    java = find_java().executable
    progress.step("downloading", sum(artifact.size for artifact in wanted))
    shards = [shard for n in range(SHARDS) if (shard := _by_size(wanted)[n::SHARDS])]
    processes, logs = [], []
    for number, shard in enumerate(shards):
        folder = work / str(number)
        dependencies = [Dependency(a.coordinate, a.classifier, a.type) for a in shard]
        argv = ivy.command(java, folder, dependencies)
        # Ivy shares the lock: should this process be killed, the next fetch waits for Ivy to end.
        logs.append(folder / "log")
        processes.append(ivy.run(argv, logs[-1], pass_fds=[lock]))
    try:
        while any(process.poll() is None for process in processes):
            progress.at(_bytes_below(work))
            time.sleep(POLL_SECONDS)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    wrong = _harvest(cache, wanted, work)
    if wrong:
        names = ", ".join(str(artifact.path) for artifact in wrong)
        raise HeadwaterError(
            f"downloaded, but not what the lock names by sha256, so removed: {names}",
            hint="run the command again; if it repeats, what serves the files has altered them",
        )
    if absent := [a for a in wanted if not cache.path(a).is_file()]:
        if any("No space left on device" in log.read_text(errors="replace") for log in logs):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        names = ", ".join(str(artifact.path) for artifact in absent[:3])
        more = f" and {len(absent) - 3} more" if len(absent) > 3 else ""
        raise HeadwaterError(
            f"could not download {names}{more}",
            hint="check the network (a mirror goes into HEADWATER_MAVEN_MIRROR), then run it "
            f"again: what has arrived is kept. Ivy's logs: {work}/*/log",
        )
    shutil.rmtree(work, ignore_errors=True)


def _harvest(cache: Cache, artifacts: Sequence[Artifact], work: Path) -> list[Artifact]:
    """Move what Ivy has finished into the cache; returns, and removes, what is not as locked."""
    wrong, right = [], []
    for artifact in artifacts:
        name = f"{artifact.organisation}/{ivy.landing_name(artifact)}"
        for landed in work.glob(f"*/cache/{name}"):
            target = cache.path(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            landed.replace(target)
            if cache.verify(artifact):
                right.append(artifact)
            else:
                target.unlink()
                wrong.append(artifact)
    cache.mark_verified(right)
    return wrong


def _by_size(artifacts: Sequence[Artifact]) -> list[Artifact]:
    return sorted(artifacts, key=lambda artifact: artifact.size, reverse=True)


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*:*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # Ivy renames its partial files
            continue
    return total
