"""Bodies packed with zstd and a dictionary made from this estate's own events."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import zstandard

from headwater.server.store.database import DamagedError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Packer"]

# Up to 16 KB at this level, the dictionary's tables are used in place; at level 1 they are copied
# for each body beyond 8 KB, which takes longer than packing it.
LEVEL = 3
DICTIONARY_BYTES = 48 * 1024
SAMPLES = 64
FIRST_AFTER = 64
RENEW_AFTER = 50_000
WORSE = 1.5
MANY = 64
"""As many bodies are worth another thread."""


class _Unpackers(threading.local):
    """The decompressors of one thread: zstd lets go of the GIL, and none may serve two at once."""

    def __init__(self) -> None:
        self.by_id: dict[int, tuple[bytes, zstandard.ZstdDecompressor]] = {}


class Packer:
    """Packs and unpacks bodies; decides when a new dictionary is worth its place.

    One thread packs; any thread unpacks and learns.
    """

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False)
        # Together in one place: another thread may learn a dictionary while a body is packed.
        self._packing = (0, self._plain)
        self._dictionaries: dict[int, bytes] = {0: b""}
        self._unpackers = _Unpackers()
        self._samples: deque[bytes] = deque(maxlen=SAMPLES)
        self._seen = 0
        self._best = 0.0
        self._ratio = 0.0
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="headwater-packer")
        self._begun: tuple[zstandard.ZstdCompressor, Future[dict[int, bytes]]] | None = None
        self._done: dict[int, bytes] | None = None

    def follow(self, stored: list[tuple[int, bytes]]) -> None:
        """Know the stored dictionaries and no others: what a failed commit made was never kept."""
        known = self._dictionaries
        kept = dict(stored)
        for number in [n for n, data in known.items() if n and kept.get(n) != data]:
            del known[number]
        if self._packing[0] not in known:
            self._packing = (0, self._plain)
            for number in kept:
                known.pop(number, None)
        for number, data in sorted(stored):
            if number not in known:
                self.learn(number, data)

    def learn(self, dictionary_id: int, data: bytes) -> None:
        """Take a stored dictionary in; the highest id is used for packing."""
        self._dictionaries[dictionary_id] = data
        if dictionary_id > self._packing[0]:
            dictionary = _raw(data)
            dictionary.precompute_compress(level=LEVEL)
            compressor = zstandard.ZstdCompressor(
                level=LEVEL, dict_data=dictionary, write_checksum=False
            )
            self._packing = (dictionary_id, compressor)
            self._seen, self._best, self._ratio = 0, 0.0, 0.0

    def begin(self, bodies: Sequence[bytes]) -> None:
        """Start packing many bodies beside the work on them; none may go before `end`.

        It is one call that does not need the interpreter, so that it takes none of its time.
        """
        if len(bodies) >= MANY:
            compressor = self._packing[1]
            self._begun = compressor, self._beside.submit(_pack_all, compressor, bodies)

    def end(self) -> None:
        """Forget what `begin` has packed."""
        if self._begun is not None:
            self._begun[1].exception()
            self._begun = self._done = None

    def pack(self, body: bytes) -> tuple[int, bytes]:
        """The dictionary's id and the packed body."""
        number, compressor = self._packing
        packed = None
        if self._begun is not None:
            used, done = self._begun
            if self._done is None:
                self._done = done.result()
            packed = self._done.get(id(body)) if used is compressor else None
        if packed is None:
            packed = compressor.compress(body)
        self._seen += 1
        if self._seen % 8 == 1 or not number:
            self._samples.append(body[: DICTIONARY_BYTES // 2])
        self._ratio += 0.02 * (len(packed) / (len(body) or 1) - self._ratio)
        if self._seen == 256:
            self._best = self._ratio
        return number, packed

    def unpack(self, dictionary_id: int, packed: bytes) -> bytes:
        """The body that `pack` was given."""
        mine, data = self._unpackers.by_id, self._dictionaries.get(dictionary_id)
        if data is None:
            raise DamagedError(f"the store is damaged: it has no dictionary {dictionary_id}")
        held = mine.get(dictionary_id)
        if held is None or held[0] is not data:
            unpacker = zstandard.ZstdDecompressor(dict_data=_raw(data) if data else None)
            held = mine[dictionary_id] = (data, unpacker)
        try:
            return bytes(held[1].decompress(packed))
        except zstandard.ZstdError as error:
            raise DamagedError(
                f"the store is damaged: a body cannot be unpacked: {error}"
            ) from None

    def knows(self, dictionary_id: int) -> bool:
        """Whether bodies packed with that dictionary can be unpacked."""
        return dictionary_id in self._dictionaries

    def proposal(self) -> tuple[int, bytes] | None:
        """A new dictionary to store, when the present one no longer fits what comes in."""
        number = self._packing[0]
        due = self._seen >= FIRST_AFTER if number == 0 else self._outgrown()
        if not due or not self._samples:
            return None
        return number + 1, self.make(list(reversed(self._samples)))

    @staticmethod
    def make(samples: list[bytes]) -> bytes:
        """A dictionary from bodies, the best first."""
        return b"".join(body[: DICTIONARY_BYTES // 2] for body in samples)[:DICTIONARY_BYTES]

    def forget_samples(self) -> None:
        """Let go of the bodies that the next dictionary would be made from."""
        self._samples.clear()

    def _outgrown(self) -> bool:
        if self._seen < RENEW_AFTER:
            return self._seen > 2_000 and self._ratio > WORSE * self._best > 0
        return self._ratio > 1.1 * self._best > 0


def _pack_all(compressor: zstandard.ZstdCompressor, bodies: Sequence[bytes]) -> dict[int, bytes]:
    try:
        packed = compressor.multi_compress_to_buffer(list(bodies))
    except (ValueError, zstandard.ZstdError):  # one of them is empty: each on its own, then
        return {}
    return {id(body): packed[i].tobytes() for i, body in enumerate(bodies)}


def _raw(data: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
