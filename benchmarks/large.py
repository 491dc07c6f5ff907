"""
Fields of more than 2^31 cells: fused kernels end like kernels of one step, halos included.

python benchmarks/large.py --out benchmarks/results/h200-large.json
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from growth import Plate, make_parser
from measure import commit
from timing import events

import timetile
from timetile.runtime.device.gpu import Device, device

PIECE = 1 << 28
"""Bytes compared at a time."""


def pieces(gpu: Device, pointer: int, size: int) -> Iterator[np.ndarray[Any, Any]]:
    """A field's bytes, a piece at a time."""
    for start in range(0, size, PIECE):
        piece = np.empty(min(PIECE, size - start), np.uint8)
        gpu.download(piece, pointer + start)
        yield piece


def main() -> None:
    parser = make_parser(__doc__, "f32")
    parser.add_argument("--domain", type=int, nargs=2, default=(40000, 60000))
    options = parser.parse_args()
    domain, gpu = (options.domain[0], options.domain[1]), device()
    with gpu.current():
        plates = [Plate(gpu, options.stencil, domain, options.element) for _ in range(2)]
        text = plates[0].text
        fused, single = (timetile.compile(text, executor="gpu", depth=d) for d in (None, 1))
        steps = 2 * fused.kernels.facts[0][0].steps + 3
        for compiled, plate in zip((fused, single), plates):
            compiled(*plate.views, steps, steps=steps)
        gpu.synchronize(0)
        same = all(
            np.array_equal(a, b)
            for one, other in zip(plates[0].pointers, plates[1].pointers)
            for a, b in zip(*(pieces(gpu, p, plates[0].bytes) for p in (one, other)))
        )
        views = plates[0].views
        times = events(gpu, lambda: fused(*views, 100, steps=100), 3)
    cells = domain[0] * domain[1]
    row = {
        "stencil": options.stencil,
        "dtype": options.element,
        "domain": list(domain),
        "cells": cells,
        "steps_compared": steps,
        "bitwise_equal_to_unfused": same,
        "gcells_per_s_100_steps": round(cells * 100 / min(times) / 1e6, 1),
        "device": gpu.name,
        "commit": options.commit or commit(),
    }
    options.out.write_text(json.dumps(row, indent=1) + "\n")
    print(row)


if __name__ == "__main__":
    main()
