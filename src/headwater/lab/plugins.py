"""The folder of Connect plug-ins: one sub-folder each, built once in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.lab.artifacts import lock
from headwater.lab.cache import unpack

if TYPE_CHECKING:
    from headwater.lab.cache import Cache

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


def plugin_path(cache: Cache) -> Path:
    """The folder for `plugin.path`, built when the lock is new to this cache."""

    def build(fresh: Path) -> None:
        for plugin in plugins():
            _build(cache, plugin, fresh / plugin)

    return cache.built(Path("plugins", _digest()), build)


def _build(cache: Cache, plugin: str, folder: Path) -> None:
    folder.mkdir()
    for artifact in lock().bundle(PREFIX + plugin):
        source = cache.path(artifact)
        if artifact.type == "tar.gz":
            unpack(source, folder)
        else:
            _link(source, folder / artifact.filename)
    if announced := ANNOUNCED.get(plugin):
        with zipfile.ZipFile(folder / "announced.jar", "w") as jar:
            for interface, name in announced.items():
                jar.writestr(f"META-INF/services/{interface}", f"{name}\n")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _digest() -> str:
    summed = hashlib.sha256(repr(sorted(ANNOUNCED)).encode())
    for artifact in lock().artifacts:
        summed.update(f"{artifact.sha256}{artifact.needed_by}\n".encode())
    return summed.hexdigest()[:16]
