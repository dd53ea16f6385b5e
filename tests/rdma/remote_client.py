"""A client of `waywiser serve`: `remote_client.py ADDRESS KEYFILE [plain]`. Says what encrypts, and how many bytes came
back intact.
"""

from __future__ import annotations

import sys

import numpy as np

import waywiser as ww

address, key, *plain = sys.argv[1:]
with ww.remote(address, key=key, data_plain=plain == ["plain"]) as gpu:
    moved = 0
    for count in (0, 1, 7001, 1_000_000):
        a, b = np.arange(float(count)), np.ones(count)
        one, two, summed = gpu.stream(), gpu.stream(), gpu.event()
        total = one.run("add", gpu.array(a), gpu.array(b))
        one.record(summed)
        two.wait(summed)
        if not np.array_equal(two.get(two.run("scale", total, factor=2)), 2 * (a + b)):
            sys.exit(f"{count} elements are wrong")
        moved += 3 * a.nbytes
    print("encrypted", gpu.encrypted_by or "no", gpu.data_encrypted_by or "no", flush=True)
    print("intact", moved, flush=True)
