"""
Record what a GPU makes of special values: the operations of cells over zeros of both signs,
subnormal numbers, infinities, NaN and numbers at the ends of types, on fields and with literals.

    python test/special_values.py --out test/pytest/data/special_values.npz

The record is the judge of `test_special_values.py` on machines without a GPU. Each result is also
compared with the executor numpy; the exit status is 1 if a bit differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent / "pytest"))

from support.special_record import RECORD, save_record
from support.special_values import SpecialProgram, in_bits, special_programs
from timetile.runtime.device.gpu import device
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.machine.driver import checked


def facts() -> dict[str, str]:
    """The machine of a record."""
    gpu = device()
    return {
        "device": gpu.name,
        "driver": str(int(checked(gpu.cuda.cuDriverGetVersion()))),
        "assembler": str(assembler_version()),
        "numpy": np.__version__,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RECORD, help="the file of the record")
    given = parser.parse_args()
    programs = special_programs()
    made: dict[str, tuple[SpecialProgram, dict[str, NDArray[Any]]]] = {}
    different = 0
    start = time.perf_counter()
    for number, program in enumerate(programs, 1):
        results = program.run("gpu")
        made[program.name] = (program, results)
        for name, wanted in program.run("numpy").items():
            cells = np.flatnonzero(wanted != results[name])
            different += cells.size
            if cells.size:
                cell = int(cells[0])
                operands = [in_bits(given)[cell] for given in program.read]
                print(
                    f"{program.name}: {name} of {[f'{x:#x}' for x in operands]}: "
                    f"GPU {results[name][cell]:#x}, numpy {wanted[cell]:#x}; {cells.size} cells"
                )
        print(f"{number} of {len(programs)}, {time.perf_counter() - start:.0f} s", flush=True)
        if number % 10 == 0 or number == len(programs):
            save_record(given.out, made, facts())
    print(f"{different} cells differ from numpy's")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
