"""How time grows with cells and with steps, beside a device copy of the same bytes.

python benchmarks/growth.py --out benchmarks/results/h200-growth.json
python benchmarks/growth.py --stencil j3d7pt --out benchmarks/results/h200-growth-3d.json
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from fields import ELEMENTS, View
from measure import commit
from rows import assemble, source
from stencils import STENCILS
from timing import events

import timetile
from timetile.runtime.device.gpu import Device, device
from timetile.runtime.machine.driver import checked

SIDES = {
    2: (256, 512, 1024, 2048, 4096, 8192, 16384, 32768),
    3: (64, 96, 128, 192, 256, 384, 512, 768, 1024),
}
"""Of squares and cubes, by axes."""

OTHERS = {
    2: (),
    3: (
        (16, 2048, 4096),
        (4096, 16, 2048),
        (4096, 2048, 16),
        (32768, 64, 64),
        (64, 32768, 64),
        (64, 64, 32768),
    ),
}
"""Thin and long domains of as many cells as the cube of 512, by axes."""

STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SIDE_OF_STEPS, STEPS_OF_SIDES = {2: 4096, 3: 256}, 100


class Plate:
    """A program's fields on the device, filled with random numbers a piece at a time."""

    def __init__(self, gpu: Device, stencil: str, domain: tuple[int, ...], element: str):
        self.gpu, self.domain = gpu, domain
        self.text, halo, count = source(stencil, domain, element)
        self.shape = tuple(side + 2 * halo for side in domain)
        kind, cells = np.dtype(ELEMENTS[element]), int(np.prod(self.shape, dtype=np.int64))
        self.bytes = cells * kind.itemsize
        piece = np.random.default_rng(7).random(min(cells, 1 << 22)).astype(kind)
        self.pointers = [gpu.allocate(self.bytes) for _ in range(count)]
        for pointer in self.pointers:
            for start in range(0, self.bytes, piece.nbytes):
                part = piece[: (self.bytes - start) // kind.itemsize]
                gpu.upload(pointer + start, part)
        like: np.ndarray[Any, Any] = np.broadcast_to(piece[0], self.shape)
        self.views = [View(pointer, like) for pointer in self.pointers]

    def copy(self) -> None:
        """Read one field and write the other."""
        a, b = self.pointers[:2]
        checked(self.gpu.cuda.cuMemcpyDtoDAsync(b, a, self.bytes, 0))

    def free(self) -> None:
        for pointer in self.pointers:
            self.gpu.free(pointer)


def milliseconds(gpu: Device, plate: Plate, steps: int) -> float:
    """A whole run through the public interface, in the median."""
    compiled = timetile.compile(plate.text, executor="gpu")
    times = events(gpu, lambda: compiled(*plate.views, steps, steps=steps), 5)
    compiled.runner(0).close()
    return float(np.median(times))


def assemble_domain(stencil: str, domain: tuple[int, ...], element: str) -> None:
    """Put the kernels for a domain into the cache."""
    text, _, _ = source(stencil, domain, element)
    # The fields are alike, and have equal halos.
    assemble(timetile.compile(text, executor="gpu", halos="common"))


def make_parser(description: str | None, element: str) -> argparse.ArgumentParser:
    """The options of a measurement on large fields."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", default=None)
    parser.add_argument("--stencil", default="j2d5pt", choices=sorted(STENCILS), metavar="NAME")
    parser.add_argument("--element", default=element, choices=sorted(ELEMENTS))
    return parser


def main() -> None:
    parser = make_parser(__doc__, "f64")
    options = parser.parse_args()
    axes = STENCILS[options.stencil].rank
    domains = [*((side,) * axes for side in SIDES[axes]), *OTHERS[axes]]
    with ProcessPoolExecutor() as pool:
        count = len(domains)
        jobs = ([options.stencil] * count, domains, [options.element] * count)
        list(pool.map(assemble_domain, *jobs))
    gpu = device()
    rows: list[dict[str, Any]] = []
    report = {
        "stencil": options.stencil,
        "dtype": options.element,
        "device": gpu.name,
        "commit": options.commit or commit(),
        "rows": rows,
    }
    cases = [(domain, STEPS_OF_SIDES) for domain in domains]
    cases += [((SIDE_OF_STEPS[axes],) * axes, steps) for steps in STEPS]
    with gpu.current():
        for domain, steps in cases:
            plate = Plate(gpu, options.stencil, domain, options.element)
            time = milliseconds(gpu, plate, steps)
            copy = float(np.median(events(gpu, plate.copy, 5)))
            plate.free()
            rate = float(np.prod(domain, dtype=np.int64)) * steps / time / 1e6
            rows.append(
                {
                    "domain": list(domain),
                    "steps": steps,
                    "milliseconds": time,
                    "copy_milliseconds": copy,
                }
            )
            # Measured rows stay, even if later rows fail.
            options.out.write_text(json.dumps(report, indent=1) + "\n")
            print(
                f"{' x '.join(map(str, domain))}, {steps} steps: {time:.4f} ms, {rate:.0f} "
                f"GCells/s, copy {copy:.4f} ms"
            )


if __name__ == "__main__":
    main()
