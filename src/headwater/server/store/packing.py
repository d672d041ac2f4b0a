"""Bodies packed with zstd and a dictionary made from this estate's own events."""

from __future__ import annotations

from collections import deque

import zstandard

__all__ = ["Packer"]

LEVEL = 1
DICTIONARY_BYTES = 48 * 1024
SAMPLES = 64
FIRST_AFTER = 64
RENEW_AFTER = 50_000
WORSE = 1.5


class Packer:
    """Packs and unpacks bodies; says when a new dictionary is worth its place."""

    def __init__(self) -> None:
        self._id = 0
        self._plain = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False)
        self._compressor = self._plain
        self._decompressors: dict[int, zstandard.ZstdDecompressor] = {
            0: zstandard.ZstdDecompressor()
        }
        self._samples: deque[bytes] = deque(maxlen=SAMPLES)
        self._seen = 0
        self._best = 0.0
        self._ratio = 0.0

    def learn(self, dictionary_id: int, data: bytes) -> None:
        """Take a stored dictionary in; the highest id is used for packing."""
        raw = zstandard.DICT_TYPE_RAWCONTENT
        self._decompressors[dictionary_id] = zstandard.ZstdDecompressor(
            dict_data=zstandard.ZstdCompressionDict(data, dict_type=raw)
        )
        if dictionary_id > self._id:
            dictionary = zstandard.ZstdCompressionDict(data, dict_type=raw)
            dictionary.precompute_compress(level=LEVEL)
            self._id = dictionary_id
            self._compressor = zstandard.ZstdCompressor(
                level=LEVEL, dict_data=dictionary, write_checksum=False
            )
            self._seen, self._best, self._ratio = 0, 0.0, 0.0

    def pack(self, body: bytes) -> tuple[int, bytes]:
        """The dictionary's id and the packed body."""
        packed = self._compressor.compress(body)
        self._seen += 1
        if self._seen % 8 == 1 or not self._id:
            self._samples.append(body[: DICTIONARY_BYTES // 2])
        self._ratio += 0.02 * (len(packed) / max(1, len(body)) - self._ratio)
        if self._seen == 256:
            self._best = self._ratio
        return self._id, packed

    def unpack(self, dictionary_id: int, packed: bytes) -> bytes:
        """The body that `pack` was given."""
        return bytes(self._decompressors[dictionary_id].decompress(packed))

    def knows(self, dictionary_id: int) -> bool:
        """Whether bodies packed with that dictionary can be unpacked."""
        return dictionary_id in self._decompressors

    def proposal(self) -> tuple[int, bytes] | None:
        """A new dictionary to store, when the present one no longer fits what comes in."""
        due = self._seen >= FIRST_AFTER if self._id == 0 else self._outgrown()
        if not due or not self._samples:
            return None
        recent = b"".join(reversed(self._samples))[:DICTIONARY_BYTES]
        return self._id + 1, recent

    def _outgrown(self) -> bool:
        if self._seen < RENEW_AFTER:
            return self._seen > 2_000 and self._ratio > WORSE * self._best > 0
        return self._ratio > 1.1 * self._best > 0
