"""Bodies are packed by one thread and unpacked by many at once."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

from headwater.server.store.database.packing import MANY, Packer

# A process of its own: zstd state shared between threads does not raise, it ends the process.
PROGRAM = textwrap.dedent(
    """
    import json, sys, threading
    from headwater.server.store.database.packing import Packer

    sys.setswitchinterval(0.0001)
    packer = Packer()
    bodies = [json.dumps([{"name": f"c{k}"} for k in range(i % 60)]).encode() for i in range(200)]
    def dictionary(number):
        return (json.dumps({"dictionary": number}).encode() * 2_000)[:40_000]
    packed = [packer.pack(body) for body in bodies]
    packer.learn(1, dictionary(1))
    packed += [packer.pack(body) for body in bodies]
    faults = []
    packing = threading.Event()

    def unpack():
        try:
            for _ in range(25):
                for body, (number, data) in zip(bodies * 2, packed, strict=True):
                    if packer.unpack(number, data) != body:
                        faults.append("another body")
        except Exception as error:
            faults.append(str(error))

    def learn():
        number = 2
        while not packing.is_set():
            packer.learn(number, dictionary(number))
            number += 1

    threads = [threading.Thread(target=unpack) for _ in range(4)]
    learner = threading.Thread(target=learn)
    for thread in (*threads, learner):
        thread.start()
    late = [(body, *packer.pack(body)) for _ in range(10) for body in bodies]
    packing.set()
    for thread in (*threads, learner):
        thread.join()
    for body, number, data in late:
        if packer.unpack(number, data) != body:
            faults.append(f"not packed with dictionary {number}")
    sys.exit(f"{len(faults)} faults: {faults[:3]}" if faults else 0)
    """
)


def test_threads_share_a_packer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:] or f"ended by signal {-done.returncode}"


def _bodies(count: int) -> list[bytes]:
    return [
        json.dumps({"number": i, "text": "again and again " * 20}).encode() for i in range(count)
    ]


@pytest.mark.parametrize("odd", [None, b"", b"x"])
def test_what_was_packed_beside_is_the_same(odd: bytes | None) -> None:
    bodies = _bodies(MANY)
    if odd is not None:
        bodies[5] = odd
    packer = Packer()
    packer.begin(bodies)
    packed = [packer.pack(body) for body in [*bodies, b"another"]]
    packer.end()
    assert packed == [Packer().pack(body) for body in [*bodies, b"another"]]
    assert [packer.unpack(*one) for one in packed] == [*bodies, b"another"]


def test_a_dictionary_learnt_meanwhile_is_used() -> None:
    bodies = _bodies(MANY)
    packer = Packer()
    packer.begin(bodies)
    packer.learn(1, b"".join(bodies)[:10_000])
    packed = [packer.pack(body) for body in bodies]
    packer.end()
    assert {number for number, _ in packed} == {1}
    assert [packer.unpack(*one) for one in packed] == bodies
