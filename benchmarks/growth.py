"""How time grows with cells and with steps, beside a device copy of the same bytes.

python benchmarks/growth.py --out benchmarks/results/h200-growth.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from measure import ELEMENTS, View, commit, events, source

import timetile
from timetile.runtime.gpu import Device, checked, device

SIDES = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SIDE_OF_STEPS, STEPS_OF_SIDES = 4096, 100


class Plate:
    """Two fields on the device with a halo of one, filled with random numbers a piece at a time."""

    def __init__(self, gpu: Device, domain: tuple[int, int], element: str):
        self.gpu, self.domain = gpu, domain
        self.shape, kind = (domain[0] + 2, domain[1] + 2), np.dtype(ELEMENTS[element])
        self.bytes = self.shape[0] * self.shape[1] * kind.itemsize
        piece = np.random.default_rng(7).random(min(self.shape[0] * self.shape[1], 1 << 22), kind)
        self.pointers = [gpu.allocate(self.bytes) for _ in range(2)]
        for pointer in self.pointers:
            for start in range(0, self.bytes, piece.nbytes):
                part = piece[: (self.bytes - start) // kind.itemsize]
                gpu.upload(pointer + start, part)
        like: np.ndarray[Any, Any] = np.broadcast_to(piece[0], self.shape)
        self.views = [View(pointer, like) for pointer in self.pointers]

    def copy(self) -> None:
        """Read one field and write the other."""
        a, b = self.pointers
        checked(self.gpu.cuda.cuMemcpyDtoDAsync(b, a, self.bytes, 0))

    def free(self) -> None:
        for pointer in self.pointers:
            self.gpu.free(pointer)


def milliseconds(gpu: Device, plate: Plate, name: str, element: str, steps: int) -> float:
    """A whole run through the public interface, in the median."""
    text, _, _ = source(name, plate.domain, element)
    compiled = timetile.compile(text, executor="gpu")
    times = events(gpu, lambda: compiled(*plate.views, steps, steps=steps), 5)
    compiled.runner(0).close()
    return float(np.median(times))


def make_parser(description: str | None, element: str) -> argparse.ArgumentParser:
    """The options of a measurement on plates."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--stencil", default="j2d5pt")
    parser.add_argument("--element", default=element, choices=sorted(ELEMENTS))
    return parser


def main() -> None:
    options = make_parser(__doc__, "f64").parse_args()
    gpu = device()
    rows: list[dict[str, Any]] = []
    report = {
        "stencil": options.stencil,
        "dtype": options.element,
        "device": gpu.name,
        "commit": options.commit or commit(),
        "rows": rows,
    }
    cases = [(side, STEPS_OF_SIDES) for side in SIDES]
    cases += [(SIDE_OF_STEPS, steps) for steps in STEPS]
    with gpu.current():
        for side, steps in cases:
            plate = Plate(gpu, (side, side), options.element)
            time = milliseconds(gpu, plate, options.stencil, options.element, steps)
            copy = float(np.median(events(gpu, plate.copy, 5)))
            plate.free()
            rate = side * side * steps / time / 1e6
            rows.append(
                {"side": side, "steps": steps, "milliseconds": time, "copy_milliseconds": copy}
            )
            # What is measured stays, should the rest not be.
            options.out.write_text(json.dumps(report, indent=1) + "\n")
            print(
                f"{side}^2, {steps} steps: {time:.4f} ms, {rate:.0f} GCells/s, copy {copy:.4f} ms"
            )


if __name__ == "__main__":
    main()
