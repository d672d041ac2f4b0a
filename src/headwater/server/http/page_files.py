"""Serves the built web page: files from memory, strict headers, and one document for every page."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headwater.server.http import HttpError, Response

if TYPE_CHECKING:
    from headwater.server.http import Request

__all__ = ["POLICY", "PageFiles"]

BUILT = Path(__file__).parent.parent / "page"
PAGES = {
    "",
    "graph",
    "datasets",
    "jobs",
    "runs",
    "connectors",
    "events",
    "doctor",
    "analysis",
    "settings",
    "columns",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
    " connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
SAFE = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
PACKED = (".js", ".css", ".html", ".svg", ".json", ".webmanifest")
TEXT = (b"content-type", b"text/plain; charset=utf-8")
MISSING = (
    "The page was not built into this installation; the API under /api works without it.\n"
    "From a checkout: npm ci --prefix web && npm run build --prefix web\n"
)


class File(NamedTuple):
    """One built file, plain and packed."""

    body: bytes
    packed: bytes | None
    kind: str
    tag: bytes


class PageFiles:
    """The built files of a directory, read once; `root` is the path below which a proxy serves them."""

    def __init__(self, built: Path = BUILT, *, root: str = "") -> None:
        self._files = _load(built, root)

    @staticmethod
    def wants(request: Request) -> bool:
        """Whether a request is for the page and not for the API."""
        return request.method in ("GET", "HEAD") and request.segments[0] != "api"

    def answer(self, request: Request) -> Response:
        """The file asked for, or the document that draws the page of this address."""
        name = "/".join(request.segments)
        asset = name in self._files and name != "index.html"
        if not asset and request.segments[0] == "assets":
            raise HttpError(404, "HTTP 404 Not Found")
        file = self._files.get(name if asset else "index.html")
        if file is None:
            return Response(MISSING.encode(), 404, (TEXT, *SAFE))
        lasting = asset and name.startswith("assets/")
        headers = [
            (b"content-type", file.kind.encode()),
            (b"etag", file.tag),
            (b"cache-control", b"public, max-age=31536000, immutable" if lasting else b"no-cache"),
            (b"vary", b"accept-encoding"),
            *SAFE,
        ]
        if request.header(b"if-none-match") == file.tag:
            return Response(b"", 304, tuple(headers))
        status = 200 if asset or request.segments[0] in PAGES else 404
        if file.packed is not None and b"gzip" in (request.header(b"accept-encoding") or b""):
            headers.append((b"content-encoding", b"gzip"))
            return Response(file.packed, status, tuple(headers))
        return Response(file.body, status, tuple(headers))


@lru_cache(maxsize=8)
def _load(built: Path, root: str) -> dict[str, File]:
    files = [path for path in built.rglob("*") if path.is_file()] if built.is_dir() else []
    return {path.relative_to(built).as_posix(): _read(path, root) for path in sorted(files)}


def _read(path: Path, root: str) -> File:
    body = path.read_bytes()
    if path.name == "index.html":  # one document for addresses of every depth
        mark = f'<meta name="headwater-root" content="{root}" />'
        body = body.replace(b'="./', f'="{root}/'.encode())
        body = body.replace(b"<title>", f"{mark}<title>".encode(), 1)
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if path.suffix == ".js":
        kind = "text/javascript"
    if path.suffix in PACKED:
        kind += "; charset=utf-8"
    packed = gzip.compress(body, 9, mtime=0) if path.suffix in PACKED else None
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'.encode()
    return File(body, packed, kind, tag)
