"""Bodies sent with `Content-Encoding`: decompressed within a limit, or refused.

A body may be several gzip members or zstd frames one after the other. One that ends too early, or
has anything else behind it, is refused as a whole: half of a body is never taken for all of it.
"""

from __future__ import annotations

import secrets
import zlib

import zstandard

from headwater.server.http import HttpError

__all__ = ["inflate"]

STEP = 1 << 18
FIRST_STEP = 1 << 10
MEMBERS = 100_000
"""More gzip members than this are refused: each costs some microseconds, however empty it is."""

# zstd's reader does not say whether its input ended within a frame. A frame of ours behind the body
# comes out as this text only if the frames before it were whole.
_MARK = secrets.token_bytes(16) * 32
_MARK_FRAME = zstandard.ZstdCompressor().compress(_MARK)


def inflate(body: bytes, encoding: bytes | None, limit: int) -> bytes:
    """The body without its gzip, deflate or zstd encoding, at most `limit` bytes."""
    encoding = (encoding or b"identity").strip().lower()
    if encoding == b"identity":
        return body
    try:
        if encoding == b"zstd":
            return _zstd(body, limit)
        if encoding in (b"gzip", b"x-gzip", b"deflate"):
            return _gzip(body, limit)
    except (zlib.error, zstandard.ZstdError) as error:
        raise HttpError(400, f"the body is not {encoding.decode('latin-1')}: {error}") from None
    raise HttpError(415, "content-encoding must be gzip, deflate, zstd or identity")


def _too_large(limit: int) -> HttpError:
    return HttpError(413, f"the unpacked body is larger than {limit} bytes")


def _too_early() -> HttpError:
    return HttpError(400, "the packed body ends too early")


def _zstd(body: bytes, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(body + _MARK_FRAME, read_across_frames=True)
    parts: list[bytes] = []
    size = 0
    # By steps: reading all at once would set the whole limit aside, however small the body is.
    while part := reader.read(STEP):
        parts.append(part)
        size += len(part)
        if size > limit + len(_MARK):
            raise _too_large(limit)
    inflated = b"".join(parts)
    if not inflated.endswith(_MARK):
        raise _too_early()
    return inflated[: -len(_MARK)]


def _gzip(body: bytes, limit: int) -> bytes:
    """Every member of a gzip body, or the zlib stream of a deflated one."""
    view = memoryview(body)
    parts: list[bytes] = []
    size = position = 0
    for _ in range(MEMBERS):
        stream = zlib.decompressobj(wbits=47)
        # What lies behind a member is copied as often as it was fed: little at first, then more.
        step = FIRST_STEP
        while not stream.eof:
            fed = view[position : position + step]
            if not fed:
                raise _too_early()
            part = stream.decompress(fed, limit - size + 1)
            parts.append(part)
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            position += len(fed) - len(stream.unused_data) - len(stream.unconsumed_tail)
            step = min(step * 2, STEP)
        if position == len(body):
            return b"".join(parts)
    raise HttpError(413, f"the body has more than {MEMBERS} members")
