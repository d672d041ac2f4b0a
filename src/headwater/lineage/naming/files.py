"""File systems, object stores and document management."""

from __future__ import annotations

from .store import Store

SPECIFIED = (
    Store("s3", "S3", "s3://{bucket}", "{key}", schemes=("s3a", "s3n")),
    Store("gcs", "Google Cloud Storage", "gs://{bucket}", "{key}", schemes=("gcs",)),
    Store(
        "abfss",
        "Azure Data Lake Gen2",
        "abfss://{container}@{account}.dfs.core.windows.net",
        "{path}",
        schemes=("abfs",),
    ),
    Store(
        "wasbs",
        "Azure Blob Storage",
        "wasbs://{container}@{account}.dfs.core.windows.net",
        "{path}",
        schemes=("wasb",),
    ),
    Store("hdfs", "HDFS", "hdfs://{namenode}:{port}", "{path}", 8020),
    Store("dbfs", "Databricks File System", "dbfs://{workspace}", "{path}"),
    Store("file", "Local file", "file", "{path}"),
    Store("remote_file", "Remote file", "file://{host}", "{path}"),
    Store("inmemory", "In memory", "inmemory://", "{id}"),
    Store("box", "Box", "box://{host}:{port}/{enterprise}", "{key}", 443),
    Store("filenet", "FileNet", "filenet://{host}:{port}/{repository}", "{key}", 443),
    Store("sharepoint", "SharePoint", "mssharepoint://{host}:{port}/{site}", "{key}", 443),
)

OURS = (
    Store(
        "sftp",
        "SFTP",
        "sftp://{host}:{port}",
        "{path}",
        22,
        ours=True,
        why="a remote file behind a server that has a port",
    ),
    Store("ftp", "FTP", "ftp://{host}:{port}", "{path}", 21, ("ftps",), ours=True, why="as SFTP"),
    Store(
        "oss",
        "Alibaba OSS",
        "oss://{bucket}",
        "{key}",
        ours=True,
        why="as S3; other object stores keep their scheme in the same way",
    ),
)
