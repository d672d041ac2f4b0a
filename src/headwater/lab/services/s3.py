"""The S3 server: S3Proxy over a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headwater.lab.ports import accepts
from headwater.lab.process import Command
from headwater.lab.services.base import PROBE_SECONDS, Service, version_of

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.home import Home
    from headwater.lab.services.base import LabContext

REGION = "us-east-1"
WAREHOUSE = "warehouse"
EXPORTS = "exports"


def client(lab: LabContext) -> Any:
    """A boto3 client for the lab's S3."""
    import boto3
    import botocore.session
    from botocore.config import Config

    # A profile the shell names is for another S3, and need not even exist.
    nowhere = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    session = botocore.session.Session({"profile": (None, [], None, None), **nowhere})
    return boto3.Session(botocore_session=session).client(
        "s3",
        endpoint_url=lab.url("s3"),
        region_name=REGION,
        aws_access_key_id=lab.home.settings.s3_access_key,
        aws_secret_access_key=lab.home.settings.s3_secret_key,
        config=Config(
            connect_timeout=PROBE_SECONDS,
            read_timeout=PROBE_SECONDS,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            proxies={},
        ),
    )


def warehouse(lab: LabContext) -> str:
    """Where Iceberg tables lie.

    For Hive it is not the bucket itself: Hive writes that with a slash at its end, and Iceberg adds one.
    """
    return f"s3://{WAREHOUSE}/hive" if lab.home.settings.hive else f"s3://{WAREHOUSE}"


def bucket_folder(home: Home, bucket: str) -> Path:
    """Where the server keeps a bucket: a file an object, by its key."""
    return home.data("s3") / "buckets" / bucket


def credentials(lab: LabContext) -> dict[str, str]:
    """The variables by which any client of the lab's S3 is let in."""
    return {
        "AWS_ACCESS_KEY_ID": lab.home.settings.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": lab.home.settings.s3_secret_key,
        "AWS_REGION": REGION,
    }


class S3(Service):
    name = "s3"
    title = "S3 server (S3Proxy)"

    def version(self) -> str:
        return version_of("s3proxy")

    def prepare(self, lab: LabContext) -> None:
        store = bucket_folder(lab.home, "")
        store.mkdir(parents=True, exist_ok=True)
        lab.write(
            "s3.properties",
            {
                "s3proxy.endpoint": lab.url("s3"),
                "s3proxy.authorization": "aws-v2-or-v4",
                "s3proxy.identity": lab.home.settings.s3_access_key,
                "s3proxy.credential": lab.home.settings.s3_secret_key,
                "jclouds.provider": "filesystem-nio2",
                "jclouds.identity": "unused",
                "jclouds.credential": "unused",
                "jclouds.filesystem.basedir": store,
            },
        )

    def command(self, lab: LabContext) -> Command:
        settings = str(lab.home.conf("s3.properties"))
        return Command(
            lab.run_java(
                "s3",
                "org.gaul.s3proxy.Main",
                "--properties",
                settings,
                classpath=lab.jars("s3"),
                heap=192,
                flags=[
                    "-DLOG_LEVEL=warn",
                    "-Dlogback.statusListenerClass=ch.qos.logback.core.status.NopStatusListener",
                ],
            )
        )

    def ready(self, lab: LabContext) -> bool:
        return accepts(lab.port("s3")) and "Buckets" in client(lab).list_buckets()

    def started(self, lab: LabContext) -> None:
        s3 = client(lab)
        there = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
        for bucket in (WAREHOUSE, lab.home.settings.archive, EXPORTS):
            if bucket not in there:
                s3.create_bucket(Bucket=bucket)

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "S3_ENDPOINT": lab.url("s3"),
            "AWS_ENDPOINT_URL_S3": lab.url("s3"),
            **credentials(lab),
            "ARCHIVE_BUCKET": lab.home.settings.archive,
        }
