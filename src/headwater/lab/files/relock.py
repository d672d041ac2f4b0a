"""The maintainer's command that writes `jars.lock`: `python -m headwater.lab.files.relock`.

The roots below are what a person chooses; everything they need is resolved through Ivy, downloaded,
measured and pinned. With names of bundles behind it, only those are; the others stay as they are.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.errors import HeadwaterError
from headwater.lab.files import ivy
from headwater.lab.files.artifacts import Artifact, lock, write_lock
from headwater.lab.files.ivy import Dependency
from headwater.lab.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterable

KAFKA = "4.3.1"
ICEBERG = "1.12.0"
DELTA = "4.4.0"
HADOOP = "3.4.3"

# Connect gives these to every plug-in; a second copy in a plug-in's folder breaks it.
PROVIDED = [
    "connect-api",
    "connect-json",
    "connect-runtime",
    "connect-transforms",
    "kafka-clients",
    "lz4-java",
    "snappy-java",
    "zstd-jni",
    "slf4j-api",
    "log4j-slf4j-impl",
    "log4j-core",
    "log4j-api",
]


class Bundle(NamedTuple):
    """What one service or Connect plug-in is made of."""

    needed_by: tuple[str, ...]
    roots: tuple[Dependency, ...]
    transitive: bool = False
    without: tuple[str, ...] = ()


def _roots(*coordinates: str) -> tuple[Dependency, ...]:
    return tuple(Dependency(coordinate) for coordinate in coordinates)


BUNDLES = (
    Bundle(
        ("kafka", "connect"),
        _roots(
            f"org.apache.kafka:kafka_2.13:{KAFKA}",
            f"org.apache.kafka:connect-runtime:{KAFKA}",
            f"org.apache.kafka:connect-mirror:{KAFKA}",
            f"org.apache.kafka:connect-json:{KAFKA}",
            f"org.apache.kafka:connect-transforms:{KAFKA}",
            f"org.apache.kafka:connect-file:{KAFKA}",
            f"org.apache.kafka:connect-basic-auth-extension:{KAFKA}",
            "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
        ),
        transitive=True,
    ),
    Bundle(
        ("registry",),
        (Dependency("io.apicurio:apicurio-registry-app:3.0.9", "all", "tar.gz"),),
    ),
    Bundle(("s3",), (Dependency("org.gaul:s3proxy:4.1.0", "jar-with-dependencies"),)),
    Bundle(("catalog",), _roots("org.apache.iceberg:iceberg-open-api:1.10.1")),
    # Iceberg's catalog in a Hive metastore, for the catalog and the sink of a lab on Hive. The newest for
    # the sink is older than the sink itself; what it calls is there.
    Bundle(("hive-catalog",), _roots("org.apache.iceberg:iceberg-hive-metastore:1.10.1")),
    Bundle(("hive-sink",), _roots("org.apache.iceberg:iceberg-hive-metastore:1.11.0")),
    Bundle(
        ("connect/debezium-postgres",),
        (Dependency("io.debezium:debezium-connector-postgres:3.6.2.Final", "plugin", "tar.gz"),),
    ),
    Bundle(
        ("connect/debezium-jdbc",),
        (Dependency("io.debezium:debezium-connector-jdbc:3.6.0.Final", "plugin", "tar.gz"),),
    ),
    Bundle(
        ("connect/avro-converter",),
        _roots("io.apicurio:apicurio-registry-utils-converter:2.6.13.Final"),
        transitive=True,
        without=tuple(PROVIDED),
    ),
    Bundle(
        ("connect/iceberg",),
        _roots(
            f"org.apache.iceberg:iceberg-kafka-connect:{ICEBERG}",
            f"org.apache.iceberg:iceberg-parquet:{ICEBERG}",
            f"org.apache.iceberg:iceberg-aws:{ICEBERG}",
            f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
            f"org.apache.hadoop:hadoop-client-api:{HADOOP}",
            f"org.apache.hadoop:hadoop-client-runtime:{HADOOP}",
        ),
        transitive=True,
        without=tuple(PROVIDED),
    ),
    Bundle(
        ("connect/camel-s3",),
        _roots(
            "org.apache.camel.kafkaconnector:camel-kafka-connector:0.11.0",
            "org.apache.camel:camel-aws2-s3:3.11.1",
        ),
        transitive=True,
        without=tuple(PROVIDED),
    ),
    Bundle(
        # What a PySpark job needs to read and write Kafka, Iceberg on S3, Avro and PostgreSQL.
        ("pipeline",),
        _roots(
            f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
            f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
            "org.apache.spark:spark-avro_2.13:4.1.1",
            "org.apache.kafka:kafka-clients:3.9.1",
            "org.apache.commons:commons-pool2:2.12.1",
            "org.postgresql:postgresql:42.7.8",
        ),
    ),
    Bundle(
        # The same for a job on an older Spark: what the tests' matrix of versions runs with.
        ("pipeline-spark-4.0",),
        _roots(
            "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
            "org.apache.iceberg:iceberg-aws-bundle:1.11.0",
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.4",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
            "org.apache.spark:spark-avro_2.13:4.0.2",
            "org.apache.kafka:kafka-clients:3.9.1",
            "org.apache.commons:commons-pool2:2.12.1",
            "org.postgresql:postgresql:42.7.8",
        ),
    ),
    Bundle(
        ("pipeline-spark-3.5",),
        _roots(
            f"org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{ICEBERG}",
            f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
            "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
            "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.7",
            "org.apache.spark:spark-avro_2.12:3.5.7",
            "org.apache.kafka:kafka-clients:3.9.1",
            "org.apache.commons:commons-pool2:2.12.1",
            "org.postgresql:postgresql:42.7.8",
        ),
    ),
    Bundle(
        # Debezium with what it needs to report lineage itself, as one plug-in; of one version, and
        # the newest whose lineage part is to be had.
        ("debezium-lineage",),
        (
            Dependency("io.debezium:debezium-connector-postgres:3.5.0.Final", "plugin", "tar.gz"),
            Dependency("io.debezium:debezium-connector-jdbc:3.5.0.Final", "plugin", "tar.gz"),
            Dependency("io.debezium:debezium-openlineage-core:3.5.0.Final", "libs", "tar.gz"),
        ),
    ),
    # PySpark 3.5 ships no server for Spark Connect; later ones do.
    Bundle(("spark-connect-3.5",), _roots("org.apache.spark:spark-connect_2.12:3.5.7")),
    # Table formats besides Iceberg, for the tests alone. Delta's newest for the lab's Spark; Hudi's
    # bundle for Spark 4 could not be resolved, so that its newest plays on 3.5.
    Bundle(
        ("delta",),
        _roots(
            f"io.delta:delta-spark_4.1_2.13:{DELTA}",
            f"io.delta:delta-storage:{DELTA}",
            f"io.delta:delta-kernel-api:{DELTA}",
            f"io.delta:delta-kernel-defaults:{DELTA}",
        ),
    ),
    Bundle(("hudi",), _roots("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0")),
    # The peer that the benchmark of Spark is judged beside, and that meets our jobs in the tests.
    Bundle(("openlineage",), _roots("io.openlineage:openlineage-spark_2.13:1.53.0")),
    # What Flink 2.0 (apache-flink of PyPI, for the tests alone) reads Kafka and reports lineage with.
    Bundle(
        ("flink",),
        _roots(
            "io.openlineage:openlineage-flink:1.53.0",
            "org.apache.flink:flink-sql-connector-kafka:4.0.1-2.0",
        ),
    ),
)


def resolve(bundle: Bundle, java: Path, work: Path) -> list[Artifact]:
    """Download one bundle with all it needs and pin every file of it."""
    argv = ivy.command(java, work, bundle.roots, transitive=bundle.transitive)
    log = work / "ivy.log"
    if ivy.run(argv, log).wait() != 0:
        tail = "\n".join(log.read_text().splitlines()[-30:])
        raise HeadwaterError(f"Ivy could not resolve {bundle.needed_by[0]}:\n{tail}")
    artifacts = []
    for file in sorted((work / "cache").glob("*/*:*:*:*")):
        name, version, classifier, kind = file.name.split(":")
        if name in bundle.without:
            continue
        artifacts.append(
            Artifact(
                coordinate=f"{file.parent.name}:{name}:{version}",
                classifier=classifier,
                type=kind.lstrip("."),
                size=file.stat().st_size,
                sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
                needed_by=bundle.needed_by,
            )
        )
    return artifacts


def merge(artifacts: list[Artifact]) -> list[Artifact]:
    """One entry a file, needed by all that need it."""
    merged: dict[tuple[str, str, str], Artifact] = {}
    for artifact in artifacts:
        key = (artifact.coordinate, artifact.classifier, artifact.type)
        if known := merged.get(key):
            needs = tuple(dict.fromkeys(known.needed_by + artifact.needed_by))
        else:
            needs = artifact.needed_by
        merged[key] = Artifact(
            coordinate=artifact.coordinate,
            classifier=artifact.classifier,
            type=artifact.type,
            size=artifact.size,
            sha256=artifact.sha256,
            needed_by=needs,
        )
    return list(merged.values())


def kept(artifacts: Iterable[Artifact], bundles: list[Bundle]) -> list[Artifact]:
    """What the lock holds for other bundles than these."""
    gone = {need for bundle in bundles for need in bundle.needed_by}
    rest = [
        msgspec.structs.replace(a, needed_by=tuple(n for n in a.needed_by if n not in gone))
        for a in artifacts
    ]
    return [artifact for artifact in rest if artifact.needed_by]


def main() -> None:
    target = Path(__file__).parent / "jars.lock"
    java = find_java().executable
    named = sys.argv[1:]
    bundles = [b for b in BUNDLES if not named or set(named) & set(b.needed_by)]
    found = kept(lock().artifacts, bundles) if named else []
    with tempfile.TemporaryDirectory() as folder:
        for bundle in bundles:
            sys.stderr.write(f"resolving {bundle.needed_by[0]} …\n")
            found += resolve(bundle, java, Path(folder, bundle.needed_by[0].replace("/", "-")))
    artifacts = merge(found)
    write_lock(artifacts, target)
    size = sum(artifact.size for artifact in artifacts) / 1e6
    sys.stderr.write(f"{target.name}: {len(artifacts)} files, {size:.0f} MB\n")


if __name__ == "__main__":
    main()
