"""The folder of Connect plug-ins: one sub-folder each, built once in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.lab.files.cache import Cache

PREFIX = "connect/"

# These jars do not announce their classes, and a worker that loads plug-ins by announcement
# would not see them.
ANNOUNCED = {
    "avro-converter": {
        "org.apache.kafka.connect.storage.Converter": (
            "io.apicurio.registry.utils.converter.AvroConverter"
        ),
    },
    "camel-s3": {
        "org.apache.kafka.connect.sink.SinkConnector": (
            "org.apache.camel.kafkaconnector.CamelSinkConnector"
        ),
        "org.apache.kafka.connect.source.SourceConnector": (
            "org.apache.camel.kafkaconnector.CamelSourceConnector"
        ),
    },
}


def plugins() -> list[str]:
    """The names of the plug-ins in the lock."""
    needs = {need for artifact in lock().artifacts for need in artifact.needed_by}
    return sorted(need.removeprefix(PREFIX) for need in needs if need.startswith(PREFIX))


def plugin_path(cache: Cache, *bundles: str, more: Mapping[str, Sequence[Path]] = {}) -> Path:
    """The folder for `plugin.path`, built when its entry in the lock is new to this cache.

    It holds the lab's plug-ins, or the bundles that are named, each as one plug-in; `more` are jars to
    put into the folder of a plug-in besides.
    """
    chosen = bundles or tuple(PREFIX + plugin for plugin in plugins())

    def build(fresh: Path) -> None:
        for bundle in chosen:
            _build(cache, bundle, fresh / bundle.removeprefix(PREFIX))
        for plugin, jars in more.items():
            for jar in jars:
                _link(jar, fresh / plugin / jar.name)

    return cache.built(Path("plugins", _digest(chosen, more)), build)


def _build(cache: Cache, bundle: str, folder: Path) -> None:
    folder.mkdir()
    for artifact in lock().bundle(bundle):
        source = cache.path(artifact)
        if artifact.type == "tar.gz":
            unpack(source, folder)
        else:
            _link(source, folder / artifact.filename)
    if announced := ANNOUNCED.get(folder.name):
        with zipfile.ZipFile(folder / "announced.jar", "w") as jar:
            for interface, name in announced.items():
                jar.writestr(f"META-INF/services/{interface}", f"{name}\n")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _digest(bundles: tuple[str, ...], more: Mapping[str, Sequence[Path]]) -> str:
    summed = hashlib.sha256(repr(sorted(ANNOUNCED)).encode())
    for bundle in bundles:
        for artifact in lock().bundle(bundle):
            summed.update(f"{artifact.sha256}{bundle}\n".encode())
    for plugin, jars in more.items():
        for jar in jars:
            summed.update(f"{jar.name} {jar.stat().st_size} {plugin}\n".encode())
    return summed.hexdigest()[:16]
