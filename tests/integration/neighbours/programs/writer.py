"""Runs of a program of ours that writes one table, told by hand."""

from __future__ import annotations

import sys

import headwater

namespace, name, runs = sys.argv[1:]
columns = {"order_id": "VARCHAR", "supplier": "VARCHAR", "price": "DECIMAL(10,2)"}
for _ in range(int(runs)):
    with headwater.run("writer", namespace="ours") as run:
        run.outputs((namespace, name), schema=columns)
