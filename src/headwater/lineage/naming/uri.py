"""Paths in file systems and object stores, ARNs and web addresses."""

from __future__ import annotations

import re

from headwater.lineage.secrets import CONTAINER_SCHEMES, redact, strip_query

from . import address
from .address import WEB_PORTS, NamingError
from .registry import SCHEMES
from .store import DatasetName

# Here a key has no leading slash; elsewhere a path keeps the one it has.
KEYED = frozenset({"s3", "gs", "abfss", "wasbs", "oss"})

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-_]+):(?=/)(.*)$", re.DOTALL)
_SLASHES = re.compile(r"/{2,}")
_S3_WEB = re.compile(r"^(?:(.+)\.)?s3[.\-](?:[a-z0-9\-]+\.)*amazonaws\.com(?:\.cn)?$")
_AZURE_WEB = re.compile(r"^([a-z0-9\-]+)\.(?:blob|dfs)\.core\.windows\.net$")
_SQS_WEB = re.compile(r"^(?:sqs\.([a-z0-9\-]+)|([a-z0-9\-]+)\.queue)\.amazonaws\.com(?:\.cn)?$")


def from_uri(uri: str) -> DatasetName:
    """Name the dataset at a path: `s3a://b//x/` is `s3://b` and `x`; no scheme means a local file.

    Doubled and trailing slashes go, as Hadoop's file systems drop them. A pre-signed web address of
    S3, Azure or Google storage gets the name of the object behind it.
    """
    uri = uri.strip()
    if not uri:
        raise NamingError("an empty path names no dataset")
    if uri.startswith("arn:"):
        return from_arn(uri)
    match = _SCHEME.match(uri)
    if not match:
        return DatasetName("file", file_path(uri))
    scheme, rest = match[1].lower(), match[2]
    if scheme in SCHEMES:
        scheme = SCHEMES[scheme].scheme
    if scheme in KEYED and not rest.removeprefix("//").lstrip("@").partition("/")[0]:
        raise NamingError(f"a {scheme} path without a bucket names no dataset")
    if not rest.startswith("//"):
        return DatasetName("file" if scheme == "file" else scheme, file_path(rest))
    if scheme in WEB_PORTS:
        return _web(scheme, rest[2:])
    authority, path = _authority(scheme, rest[2:])
    if scheme == "file":
        local = authority.lower() in ("", "localhost")
        return DatasetName("file" if local else f"file://{authority.lower()}", file_path(path))
    name = object_key(path) if scheme in KEYED else file_path(path)
    return DatasetName(f"{scheme}://{authority}" if authority else scheme, name)


def from_arn(arn: str) -> DatasetName:
    """Name what an AWS ARN points at: buckets as `s3://`, the rest as Glue: ARN prefix and rest."""
    parts = arn.strip().split(":", 5)
    if len(parts) < 6 or not parts[2] or not parts[5]:
        raise NamingError("an ARN has six parts: arn:partition:service:region:account:resource")
    if parts[2] == "s3":
        bucket, _, key = parts[5].partition("/")
        return DatasetName(f"s3://{bucket}", object_key(key.removesuffix("*")))
    return DatasetName(":".join(parts[:5]), parts[5])


def object_key(path: str) -> str:
    """A key without query, doubled, leading or trailing slashes; the whole bucket is `/`."""
    return _SLASHES.sub("/", strip_query(path)).strip("/") or "/"


def file_path(path: str) -> str:
    """A path without query, doubled or trailing slashes."""
    path = _SLASHES.sub("/", strip_query(path))
    return path.rstrip("/") or "/"


def container(authority: str) -> str:
    """`container@account` with the account's host as the spec writes it and no password."""
    user, at, host = authority.rpartition("@")
    host = host.lower().replace(".blob.core.", ".dfs.core.")
    return f"{user.split(':', 1)[0]}{at}{host}"


def _authority(scheme: str, rest: str) -> tuple[str, str]:
    if scheme in CONTAINER_SCHEMES:
        authority, slash, path = rest.partition("/")
        return container(authority), slash + path
    authority, path = address.split_authority(rest, at_in_path=True)
    if scheme not in KEYED:
        authority = authority.split(",", 1)[0].lower()
    store = SCHEMES.get(scheme)
    if store and store.port and scheme in ("sftp", "ftp"):
        authority = str(address.parse(authority, store.port))
    return authority, path


def _web(scheme: str, rest: str) -> DatasetName:
    authority, path = address.split_authority(rest, at_in_path=True)
    place = address.parse(authority.split(",", 1)[0])
    path = re.split(r"[?#;]", path, maxsplit=1)[0]
    if found := _storage(place.host, path):
        return found
    port = None if place.port == WEB_PORTS[scheme] else place.port
    return DatasetName(f"{scheme}://{address.Address(place.host, port)}", path or "/")


def _storage(host: str, path: str) -> DatasetName | None:
    first, _, rest = path.lstrip("/").partition("/")
    if match := _S3_WEB.match(host):
        if bucket := match[1]:
            return DatasetName(f"s3://{bucket}", object_key(path))
        return DatasetName(f"s3://{first}", object_key(rest)) if first else None
    if match := _AZURE_WEB.match(host):
        account = f"{first}@{match[1]}.dfs.core.windows.net"
        return DatasetName(f"wasbs://{account}", object_key(rest)) if first else None
    if host == "storage.googleapis.com" and first:
        return DatasetName(f"gs://{first}", object_key(rest))
    if (match := _SQS_WEB.match(host)) and rest:
        return DatasetName(f"arn:aws:sqs:{match[1] or match[2]}:{first}", redact(rest))
    return None
