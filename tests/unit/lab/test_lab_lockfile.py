"""`jars.lock`: what the lab downloads, pinned."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

import msgspec
import pytest

from headwater.lab.files.artifacts import Artifact, Lock, lock, write_lock
from headwater.lab.files.plugins import ANNOUNCED, plugins
from headwater.lab.files.relock import BUNDLES, merge
from headwater.lab.services import SERVICES

if TYPE_CHECKING:
    from pathlib import Path

TEXT = resources.files("headwater.lab.files").joinpath("jars.lock").read_text()
# These come from PySpark and from a wheel.
WITHOUT_JARS = {
    "postgres",
    "hive",
    "spark",
    "spark-worker-1",
    "spark-worker-2",
    "spark-history",
    "server",
    "agent",
    "supplier-stats",
    "iceberg-ingestion",
    "lineage-lake",
    "page",
}


def test_every_artifact_is_pinned_by_coordinate_size_and_sha256() -> None:
    for artifact in lock().artifacts:
        assert re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+", artifact.coordinate), artifact
        assert re.fullmatch(r"[0-9a-f]{64}", artifact.sha256), artifact
        assert artifact.size > 0
        assert artifact.type in {"jar", "tar.gz"}
        assert artifact.needed_by


def test_no_file_stands_twice_and_no_two_share_a_place() -> None:
    paths = [artifact.path for artifact in lock().artifacts]
    assert len(set(paths)) == len(paths)


def test_no_address_stands_in_the_lock() -> None:
    assert "://" not in TEXT


@pytest.mark.parametrize("service", sorted(SERVICES.keys() - WITHOUT_JARS))
def test_each_service_has_its_files(service: str) -> None:
    assert lock().bundle(service)
    assert SERVICES[service].version() in {a.version for a in lock().bundle(service)}


def test_every_bundle_a_service_names_is_in_the_lock() -> None:
    named = {bundle for service in SERVICES.values() for bundle in service.bundles}
    assert named == {"pipeline", "hive-catalog", "hive-sink"}
    assert all(lock().bundle(bundle) for bundle in named)


def test_each_bundle_a_person_chose_is_in_the_lock_with_its_roots() -> None:
    known = {(a.coordinate, a.classifier, a.type) for a in lock().artifacts}
    for bundle in BUNDLES:
        assert all(lock().bundle(need) for need in bundle.needed_by)
        assert {tuple(root) for root in bundle.roots} <= known


def test_the_plugins_are_those_of_the_bundles() -> None:
    chosen = {need for bundle in BUNDLES for need in bundle.needed_by if "/" in need}
    assert {f"connect/{plugin}" for plugin in plugins()} == chosen
    assert set(ANNOUNCED) <= set(plugins())


def test_a_plugin_brings_no_second_copy_of_what_connect_gives_it() -> None:
    for plugin in plugins():
        names = {artifact.name for artifact in lock().bundle(f"connect/{plugin}")}
        assert not names & {"connect-api", "kafka-clients", "slf4j-api"}, plugin


def test_selecting_a_service_takes_its_plugins_too() -> None:
    chosen = lock().select(["connect"])
    assert {need for a in chosen for need in a.needed_by} >= {"connect", "connect/iceberg"}
    assert not any(a.needed_by == ("s3",) for a in chosen)


def test_what_is_written_is_read_back_the_same(tmp_path: Path) -> None:
    write_lock(lock().artifacts, tmp_path / "jars.lock")
    assert (tmp_path / "jars.lock").read_text() == TEXT
    read = msgspec.json.decode((tmp_path / "jars.lock").read_bytes(), type=Lock)
    assert read == lock()


def test_a_file_two_bundles_need_is_pinned_once() -> None:
    one = Artifact(coordinate="a:b:1", size=1, sha256="0" * 64, needed_by=("kafka", "connect"))
    two = Artifact(coordinate="a:b:1", size=1, sha256="0" * 64, needed_by=("connect", "s3"))
    (merged,) = merge([one, two])
    assert merged.needed_by == ("kafka", "connect", "s3")
