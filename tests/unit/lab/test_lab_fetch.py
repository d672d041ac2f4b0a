"""Fetching, with a fake Ivy at the edge: resume, verify, name what is wrong, never loop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from headwater.errors import EnvironmentProblem, HeadwaterError
from headwater.lab.files import fetch
from headwater.lab.files.cache import Cache
from headwater.lab.files.ivy import Dependency, command, landing_name
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Repository


class Told(fetch.NoProgress):
    """Keeps what a fetch says."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.steps: list[tuple[str, int]] = []

    def step(self, name: str, total: int) -> None:
        self.steps.append((name, total))

    def notify(self, text: str) -> None:
        self.said.append(text)


def test_what_lacks_is_downloaded_and_verified(cache: Cache, repository: Repository) -> None:
    artifacts = [repository.publish(name) for name in ("a", "b", "c", "d", "e", "f")]
    fetched = fetch.fetch(cache, artifacts)
    assert (fetched.files, fetched.downloaded, fetched.replaced) == (6, 6, ())
    assert all(cache.verify(artifact) for artifact in artifacts)
    assert cache.missing(artifacts) == []
    assert not (cache.root / "ivy").exists()


def test_a_full_cache_needs_no_java_and_no_network(
    cache: Cache, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = [repository.publish("a")]
    fetch.fetch(cache, artifacts)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    fetch.ensure(cache, artifacts)
    assert fetch.fetch(cache, artifacts).downloaded == 0
    assert repository.asked == ["org.example:a:1.0"]


def test_a_wrong_file_is_named_removed_and_downloaded_again(
    cache: Cache, repository: Repository
) -> None:
    good, bad = repository.publish("good"), repository.publish("bad", b"right")
    fetch.fetch(cache, [good, bad])
    cache.path(bad).write_bytes(b"wrong")
    told = Told()
    fetched = fetch.fetch(cache, [good, bad], told)
    assert fetched.replaced == ("org.example/bad-1.0.jar",)
    assert fetched.downloaded == 1
    assert cache.path(bad).read_bytes() == b"right"
    assert any("org.example/bad-1.0.jar" in said and "removed" in said for said in told.said)
    assert repository.asked.count("org.example:good:1.0") == 1


def test_a_download_that_is_not_what_the_lock_names_is_named_and_removed(
    cache: Cache, repository: Repository
) -> None:
    good, bad = repository.publish("good"), repository.publish("bad", b"right")
    repository.replace(bad, b"wrong")
    with pytest.raises(HeadwaterError, match=r"sha256, so removed: org\.example/bad-1\.0\.jar"):
        fetch.fetch(cache, [good, bad])
    assert not cache.path(bad).exists()
    assert cache.missing([good]) == []


def test_a_download_that_fails_keeps_what_has_arrived(cache: Cache, repository: Repository) -> None:
    artifacts = [repository.publish(name) for name in ("a", "b", "c", "d", "e")]
    for lost in artifacts[1:]:
        repository.lose(lost)
    with pytest.raises(HeadwaterError) as caught:
        fetch.fetch(cache, artifacts)
    assert "could not download" in caught.value.message
    assert "and 1 more" in caught.value.message
    assert "HEADWATER_MAVEN_MIRROR" in str(caught.value.hint)
    assert cache.missing(artifacts) == artifacts[1:]


def test_a_disk_that_fills_up_under_ivy_is_called_full(
    cache: Cache, repository: Repository
) -> None:
    artifact = repository.publish("a")
    repository.lose(artifact)
    (repository.folder / "says").write_text("java.io.IOException: No space left on device")
    with pytest.raises(EnvironmentProblem, match="No space left on device") as caught:
        fetch.fetch(cache, [artifact])
    assert "another disk" in str(caught.value.hint)


def test_too_little_space_is_said_before_the_download(
    cache: Cache, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(os.curdir)._replace(free=12 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)
    with pytest.raises(EnvironmentProblem, match="12 MB free") as caught:
        fetch.fetch(cache, [repository.publish("a")])
    assert "HEADWATER_CACHE" in str(caught.value.hint)
    assert repository.asked == []


def test_an_interrupted_fetch_goes_on_from_what_ivy_left(
    cache: Cache, repository: Repository
) -> None:
    left, lacks = repository.publish("left"), repository.publish("lacks")
    landed = cache.root / "ivy" / "3" / "cache" / left.organisation / landing_name(left)
    landed.parent.mkdir(parents=True)
    landed.write_bytes((repository.folder / left.filename).read_bytes())
    fetch.fetch(cache, [left, lacks])
    assert repository.asked == ["org.example:lacks:1.0"]
    assert cache.missing([left, lacks]) == []


def test_half_a_file_that_ivy_left_is_downloaded_again(
    cache: Cache, repository: Repository
) -> None:
    artifact = repository.publish("a", b"all of it")
    landed = cache.root / "ivy" / "0" / "cache" / artifact.organisation / landing_name(artifact)
    landed.parent.mkdir(parents=True)
    landed.write_bytes(b"all")
    fetch.fetch(cache, [artifact])
    assert cache.path(artifact).read_bytes() == b"all of it"


def test_two_fetches_at_once_download_once(cache: Cache, repository: Repository) -> None:
    artifacts = [repository.publish(name) for name in ("a", "b")]
    told = [Told(), Told()]
    both = threading.Barrier(2)

    def work(progress: Told) -> None:
        both.wait()
        fetch.fetch(Cache(cache.root), artifacts, progress)

    threads = [threading.Thread(target=work, args=[progress]) for progress in told]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert repository.asked == ["org.example:a:1.0", "org.example:b:1.0"]
    assert ["another fetch is under way" in said for t in told for said in t.said] == [True]


def test_a_fetch_waits_for_the_ivy_of_a_killed_one(
    cache: Cache, repository: Repository, tmp_path: Path
) -> None:
    artifact = repository.publish("a")
    (repository.folder / "hangs").touch()
    program = (
        "import pathlib, sys; from headwater.lab.files import fetch; from headwater.lab.files.cache import Cache;"
        "from headwater.lab.files.artifacts import Artifact;"
        f"fetch.fetch(Cache(pathlib.Path({str(cache.root)!r})), [{artifact!r}])"
    )
    killed = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    hanging = repository.folder / "hanging"
    wait_until(hanging.exists, seconds=120, what="Ivy to hang")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (repository.folder / "hangs").unlink()
    told = Told()
    second = threading.Thread(target=fetch.fetch, args=[cache, [artifact], told])
    second.start()
    wait_until(lambda: told.said, seconds=120, what="the second fetch to wait")
    assert second.is_alive()
    os.killpg(killed.pid, signal.SIGKILL)  # the Ivy it has left
    second.join(10)
    assert cache.missing([artifact]) == []
    assert repository.asked == ["org.example:a:1.0"]  # the first Ivy had brought it


def test_a_mirror_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    command(java, tmp_path / "plain", [Dependency("a:b:1")])
    assert "root=" not in (tmp_path / "plain" / "settings.xml").read_text()
    monkeypatch.setenv("HEADWATER_MAVEN_MIRROR", 'http://127.0.0.1/a&b"c')
    command(java, tmp_path / "mirrored", [Dependency("a:b:1", "all", "tar.gz")])
    settings = (tmp_path / "mirrored" / "settings.xml").read_text()
    assert "root='http://127.0.0.1/a&amp;b\"c'" in settings
    module = (tmp_path / "mirrored" / "ivy.xml").read_text()
    assert 'm:classifier="all"' in module
    assert 'ext="tar.gz"' in module
