"""The cache: what is verified is not hashed again, what was altered is noticed."""

from __future__ import annotations

import errno
import os
import tarfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.errors import EnvironmentProblem, UsageError
from headwater.lab.files.cache import Cache, default_cache, write_atomically

if TYPE_CHECKING:
    from headwater.lab.files.artifacts import Artifact

    from .conftest import Repository


def stored(cache: Cache, artifact: Artifact, content: bytes) -> Path:
    path = cache.path(artifact)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def kept(cache: Cache, repository: Repository) -> tuple[Artifact, Path]:
    """One verified file."""
    artifact = repository.publish("kept", b"right")
    cache.prepare()
    path = stored(cache, artifact, b"right")
    cache.mark_verified([artifact])
    return artifact, path


def test_a_verified_file_is_not_missing(cache: Cache, kept: tuple[Artifact, Path]) -> None:
    assert cache.missing([kept[0]]) == []
    assert Cache(cache.root).missing([kept[0]]) == []


def test_a_file_that_was_never_verified_is_missing(cache: Cache, repository: Repository) -> None:
    artifact = repository.publish("new", b"right")
    stored(cache, artifact, b"right")
    assert cache.missing([artifact]) == [artifact]


def test_a_changed_file_loses_its_stamp(cache: Cache, kept: tuple[Artifact, Path]) -> None:
    artifact, path = kept
    path.write_bytes(b"wrong")  # of the same length
    assert cache.missing([artifact]) == [artifact]
    assert not cache.verify(artifact)


def test_a_file_of_another_length_is_wrong_without_hashing(
    cache: Cache, kept: tuple[Artifact, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact, path = kept
    path.write_bytes(b"right and more")
    monkeypatch.setattr("headwater.lab.files.cache.digest", lambda *_: pytest.fail("hashed"))
    assert not cache.verify(artifact)


def test_a_damaged_list_of_stamps_counts_as_none(cache: Cache, kept: tuple[Artifact, Path]) -> None:
    (cache.root / "verified.json").write_text("{half")
    assert cache.missing([kept[0]]) == [kept[0]]


def test_a_cache_below_a_file_says_what_and_how_to_fix_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem) as caught:
        Cache(tmp_path / "file" / "cache").prepare()
    assert str(tmp_path / "file" / "cache") in caught.value.message
    assert "HEADWATER_CACHE" in str(caught.value.hint)


def test_a_full_disk_is_told_apart_from_a_denied_one(cache: Cache) -> None:
    full = cache.problem(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    denied = cache.problem(OSError(errno.EACCES, os.strerror(errno.EACCES)))
    assert "No space left" in full.message
    assert "free some space" in str(full.hint)
    assert "make it writable" in str(denied.hint)


@pytest.mark.parametrize("odd", [":", ",", ";", "!", "?"])
def test_a_path_that_java_would_misread_is_refused(tmp_path: Path, odd: str) -> None:
    with pytest.raises(UsageError, match="take for something else"):
        Cache(tmp_path / f"a{odd}b").prepare()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HEADWATER_CACHE", raising=False)
    assert default_cache() == tmp_path / ".cache" / "headwater"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache() == tmp_path / "xdg" / "headwater"
    monkeypatch.setenv("HEADWATER_CACHE", "~/with space")
    assert default_cache() == tmp_path / "with space"


def test_a_folder_is_built_once(cache: Cache) -> None:
    calls: list[Path] = []

    def build(fresh: Path) -> None:
        calls.append(fresh)
        (fresh / "a.jar").write_text("built")

    first = cache.built(Path("plugins", "x"), build)
    assert cache.built(Path("plugins", "x"), build) == first
    assert (first / "a.jar").read_text() == "built"
    assert len(calls) == 1


@pytest.mark.parametrize("damage", ["altered", "removed", "added", "unlisted"])
def test_a_damaged_folder_is_built_anew(cache: Cache, damage: str) -> None:
    def build(fresh: Path) -> None:
        (fresh / "a.jar").write_text("built")

    folder = cache.built(Path("plugins", "x"), build)
    if damage == "altered":
        (folder / "a.jar").write_text("BUILT")
    elif damage == "removed":
        (folder / "a.jar").unlink()
    elif damage == "added":
        (folder / "stale.jar").write_text("")
    else:
        (folder / ".contents.json").unlink()
    assert cache.built(Path("plugins", "x"), build) == folder
    assert (folder / "a.jar").read_text() == "built"
    assert not (folder / "stale.jar").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["x"]


def test_a_build_that_fails_leaves_nothing(cache: Cache) -> None:
    def build(fresh: Path) -> None:
        (fresh / "half").write_text("")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(EnvironmentProblem, match="No space left"):
        cache.built(Path("plugins", "x"), build)
    assert list((cache.root / "plugins").iterdir()) == []


def test_two_builders_at_once_build_once(cache: Cache) -> None:
    calls: list[Path] = []
    both = threading.Barrier(2)

    def build(fresh: Path) -> None:
        calls.append(fresh)

    def work() -> None:
        both.wait()
        cache.built(Path("plugins", "x"), build)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_an_archive_is_unpacked(cache: Cache, repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "inside.txt").write_text("hello")
    with tarfile.open(tmp_path / "archive.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "inside.txt", "app/inside.txt")
    content = (tmp_path / "archive.tar.gz").read_bytes()
    artifact = repository.publish("archive", content)
    stored(cache, artifact, content)
    assert (cache.unpacked(artifact) / "app" / "inside.txt").read_text() == "hello"


def test_a_write_that_fails_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings"
    write_atomically(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
