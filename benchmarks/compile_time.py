"""
The time of compiling: cold, and from the cache in a process with timetile imported.

    python benchmarks/compile_time.py --out benchmarks/results/compile-time.json

Cold is from the program's text to the machine code of the deepest kernel, assembler included;
cached is from the text to the same kernel, ready to be loaded.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

from stencils import STENCILS, program

from timetile.runtime.cache.store import Cache
from timetile.runtime.program.compile import compile as compile_program

CASES = (
    ("j2d5pt", (8352, 8352), 12),
    ("j2d5pt", (8352, 8352), None),
    ("j3d7pt", (512, 512, 512), None),
    ("j2d25pt", (8640, 8640), None),
    ("box3d2r", (512, 512, 512), 1),
)


def deepest_kernel(text: str, depth: int | None, cache: Cache) -> float:
    """Seconds from the text to the deepest kernel."""
    start = time.perf_counter()
    compiled = compile_program(text, executor="cpu", depth=depth, cache=cache)
    name = compiled.kernels.facts[0][0].name
    compiled.kernels.kernel(name)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, domain, depth in CASES:
        text = program(STENCILS[name], domain)
        with tempfile.TemporaryDirectory() as folder:
            cache = Cache(Path(folder))
            cold = deepest_kernel(text, depth, cache)
            cached = min(deepest_kernel(text, depth, cache) for _ in range(3))
        row = {
            "stencil": name,
            "accesses": len(STENCILS[name].terms),
            "domain": list(domain),
            "depth": depth,
            "cold_s": round(cold, 3),
            "cached_s": round(cached, 4),
        }
        rows.append(row)
        print(row, flush=True)
    if options.out is not None:
        report = {"python": platform.python_version(), "machine": platform.machine(), "rows": rows}
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
