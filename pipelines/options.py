"""The options of the jobs, given by arguments or the environment, and the session that makes of it."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
# Lines of Java's properties: a comment, which does not go on, or a setting with the lines that continue it.
_LINE = re.compile(r"^[ \t]*(?:[#!].*|((?:\\\r?\n[ \t]*|\\.|[^\\\n])*)\\?)$", re.MULTILINE)
_PAIR = re.compile(r"((?:\\[\s\S]|[^\\=:\s])+)\s*[=:]?\s*([\s\S]*)")
_QUOTED = re.compile(r"\\(\r?\n[ \t]*|u[0-9A-Fa-f]{4}|.)")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Options that every job has; each one's default comes from the environment."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option(parser, "--catalog", "ICEBERG_CATALOG_NAME", "name of the Iceberg catalog", "lab")
    option(parser, "--catalog-uri", "ICEBERG_CATALOG_URI", "Iceberg REST catalog")
    option(parser, "--hms-endpoint", "HMS_ENDPOINT", "Hive metastore, if there is no REST catalog")
    option(parser, "--warehouse", "ICEBERG_WAREHOUSE", "where tables lie")
    option(parser, "--s3-endpoint", "S3_ENDPOINT", "S3 server, if not AWS")
    option(parser, "--job-name", "OPENLINEAGE_JOBNAME", "name of the job in lineage")
    for part in ("namespace", "name"):
        text = f"{part} to tell the output by in lineage, if not its own"
        option(parser, f"--dataset-{part}", f"OPENLINEAGE_DATASET_{part.upper()}", text)
    return parser


def stream_arguments(description: str | None) -> argparse.ArgumentParser:
    """Options that the jobs on Kafka have besides."""
    parser = arguments(description)
    option(parser, "--bootstrap", "BOOTSTRAP", "Kafka's address", needed=True)
    text = "file of Kafka's own settings, as security.protocol and sasl.jaas.config"
    option(parser, "--kafka-properties", "KAFKA_PROPERTIES", text)
    option(parser, "--registry-url", "REGISTRY_URL", "schema registry", needed=True)
    text = "topic of orders, Avro in Confluent's wire format"
    option(parser, "--input-topic", "INPUT_TOPIC", text, "orders")
    option(parser, "--output-topic", "OUTPUT_TOPIC", "topic of window totals", "supplier-stats")
    text = "folder of the stream's checkpoint; without one it starts at the topic's beginning"
    option(parser, "--checkpoint", "CHECKPOINT", text)
    parser.add_argument("--every", default="5 seconds", help="how often to write  [5 seconds]")
    parser.add_argument("--most", default="250000", help="most records in a batch  [250000]")
    parser.add_argument(
        "--once",
        action="store_true",
        default=os.environ.get("AVAILABLE_NOW") == "1",
        help="handle what is there and end, instead of going on  [$AVAILABLE_NOW=1]",
    )
    return parser


def option(
    parser: argparse.ArgumentParser,
    name: str,
    variable: str,
    text: str,
    default: str | None = None,
    *,
    needed: bool = False,
) -> None:
    """An option that may also be given as a variable."""
    given = os.environ.get(variable, default)
    otherwise = f", else {default}" if default else ""
    text = f"{text}  [${variable}{otherwise}]"
    parser.add_argument(name, default=given, required=needed and not given, help=text)


def duration(text: str) -> float:
    """Seconds of a duration such as 45s, 5 minutes or 7d."""
    found = re.fullmatch(
        r"\s*(\d+(?:\.\d+)?)\s*(s|m|h|d|sec|min|second|minute|hour|day)s?\s*", text, re.IGNORECASE
    )
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: say 45s, 5 minutes or 7d")
    return float(found[1]) * SECONDS[found[2][0].lower()]


def day(text: str) -> float:
    """Seconds of a duration of at least a day."""
    found = duration(text)
    if found < SECONDS["d"]:
        raise argparse.ArgumentTypeError(f"{text!r} is shorter than a day")
    return found


def count(text: str) -> int:
    """A number of at least one."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def kafka(settings: argparse.Namespace) -> dict[str, str]:
    """Spark's options for Kafka: its address, and how to log in there.

    A login is in a file or in variables: `KAFKA_SECURITY_PROTOCOL` is `security.protocol`, and so on for
    `KAFKA_SASL_*` and `KAFKA_SSL_*`, which stand above the file.
    """
    found: dict[str, str] = {}
    if settings.kafka_properties:
        found = properties(Path(settings.kafka_properties).read_text())
    for name, value in os.environ.items():
        if name.startswith(("KAFKA_SECURITY_", "KAFKA_SASL_", "KAFKA_SSL_")):
            found[name.removeprefix("KAFKA_").lower().replace("_", ".")] = value
    found["bootstrap.servers"] = settings.bootstrap
    return {f"kafka.{key}": value for key, value in found.items()}


def properties(text: str) -> dict[str, str]:
    """Settings as Java reads them: a line may go on after a backslash, which else quotes a character."""
    found = {}
    for line in _LINE.finditer(text):
        pair = _PAIR.match((line[1] or "").rstrip("\r"))
        if pair:
            key, value = (_QUOTED.sub(_unquoted, part) for part in pair.groups())
            found[key] = value
    return found


def _unquoted(found: re.Match[str]) -> str:
    quoted = found[1]
    if "\n" in quoted:
        return ""
    return chr(int(quoted[1:], 16)) if len(quoted) > 1 else _CONTROLS.get(quoted, quoted)


def session(name: str, settings: argparse.Namespace, output: str) -> SparkSession:
    """A session whose Iceberg catalog is the one the settings name."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in {**catalog(settings), **renamed(settings, output)}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def catalog(settings: argparse.Namespace) -> dict[str, str]:
    """What Spark has to know of time, state and the Iceberg catalog."""
    own = f"spark.sql.catalog.{settings.catalog}"
    found = {
        "spark.sql.session.timeZone": "UTC",
        # The ids of an hour of orders do not have to fit into the heap.
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
        ".state.RocksDBStateStoreProvider",
        # Spark hides what is called a password or looks like one in the plans that its pages and event logs
        # show: not a private key (`ssl.keystore.key`), nor a registry's login in the same file.
        "spark.sql.redaction.options.regex": r"(?i)url|^kafka[.](?!bootstrap[.]servers$)",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        own: "org.apache.iceberg.spark.SparkCatalog",
    }
    if settings.catalog_uri:
        found |= {f"{own}.type": "rest", f"{own}.uri": settings.catalog_uri}
    elif settings.hms_endpoint:
        found |= {f"{own}.type": "hive", f"{own}.uri": settings.hms_endpoint}
    if settings.warehouse:
        found[f"{own}.warehouse"] = settings.warehouse
    if settings.s3_endpoint:
        found |= {
            f"{own}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            f"{own}.s3.endpoint": settings.s3_endpoint,
            f"{own}.s3.path-style-access": "true",
        }
    # Keys are no setting: what Spark knows of them lands in its event log. Machines have a role or
    # the usual variables, executors too.
    if "AWS_REGION" in os.environ:
        found[f"{own}.client.region"] = os.environ["AWS_REGION"]
    return found


def renamed(settings: argparse.Namespace, output: str) -> dict[str, str]:
    """The name that lineage is to have for the output, where it is not its own."""
    given = {"namespace": settings.dataset_namespace, "name": settings.dataset_name}
    return {f"spark.headwater.datasets.{output}.{k}": v for k, v in given.items() if v}


def attach(spark: SparkSession, name: str) -> SparkSession:
    """Report lineage when headwater is installed; the job runs just the same without it."""
    try:
        import headwater.spark
    except ImportError:
        return spark
    return headwater.spark.attach(spark, app_name=name)
