"""Bodies are packed by one thread and unpacked by many at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

# A process of its own: zstd state shared between threads does not raise, it ends the process.
PROGRAM = textwrap.dedent(
    """
    import json, sys, threading
    from headwater.server.store.packing import Packer

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
