"""
Compare the functions of the mathematical library on the GPU with the CPU's: the largest distance of
each, in ulps.

    python benchmarks/check_math.py
    python benchmarks/check_math.py --cells 10000000 exp tanh

For every function and type a line: the largest distance between both results over a range of
ordinary numbers, over all magnitudes, and at special numbers; the place of the largest distance;
and the bound, the sum of the documented errors of both libraries. The exit status is 1 if a
distance is larger than its bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import timetile
from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.passes.analysis.cells.library import PREFIX
from timetile.runtime.machine.llvm import functions_on_vectors
from timetile.runtime.program.compiled_program import Executor

Array = NDArray[Any]

ERRORS: dict[str, tuple[int, int, int, int]] = {
    "acos": (2, 1, 2, 1),
    "acosh": (3, 2, 4, 2),
    "asin": (2, 1, 2, 1),
    "asinh": (3, 2, 3, 2),
    "atan": (2, 1, 2, 1),
    "atanh": (2, 2, 3, 2),
    "atan2": (2, 1, 3, 2),
    "cbrt": (1, 4, 1, 1),
    "cos": (2, 1, 2, 1),
    "cosh": (1, 2, 2, 2),
    "erf": (2, 1, 2, 1),
    "exp": (1, 1, 2, 1),
    "exp2": (1, 1, 2, 1),
    "expm1": (1, 1, 1, 1),
    "log": (1, 1, 1, 1),
    "log10": (1, 2, 2, 2),
    "log1p": (1, 1, 1, 1),
    "log2": (1, 2, 1, 1),
    "pow": (2, 1, 4, 1),
    "sin": (2, 1, 2, 1),
    "sinh": (2, 2, 3, 2),
    "tan": (2, 1, 4, 1),
    "tanh": (1, 2, 2, 2),
}
"""
Documented maximum errors in ulps: of CUDA and of the GNU C library in FP64, of both in FP32. (CUDA
C++ programming guide, mathematical functions, standard functions; the GNU C library manual, errors
in math functions, x86_64.)
"""

LIBMVEC = 4
"""Documented maximum error of the GNU C library's functions on vectors, in ulps."""

RANGES: dict[str, tuple[float, float]] = {
    "acos": (-1, 1),
    "acosh": (1, 100),
    "asin": (-1, 1),
    "atanh": (-1, 1),
    "exp": (-80, 80),
    "exp2": (-120, 120),
    "expm1": (-20, 20),
    "cosh": (-80, 80),
    "sinh": (-80, 80),
    "log": (0, 10),
    "log10": (0, 10),
    "log2": (0, 10),
    "log1p": (-1, 10),
    "pow": (0, 20),
    "cos": (-1000, 1000),
    "sin": (-1000, 1000),
    "tan": (-1000, 1000),
}
"""Where ordinary arguments lie; from -10 to 10 for the others."""

SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, np.inf, -np.inf, np.nan)

DTYPES = {"f64": np.float64, "f32": np.float32}


@dataclass(frozen=True)
class Worst:
    """The largest distance in ulps, and the arguments of the largest distance."""

    distance: int
    arguments: tuple[float, ...]


def program_text(operation: str, operands: int, element: str, cells: int) -> str:
    """A step with one function of fields."""
    field, temp = f"!stencil.field<[0,{cells}]x{element}>", f"!stencil.temp<?x{element}>"
    names = "ab"[:operands]
    given = ", ".join(f"%{n}: {field}" for n in names)
    loads = "\n".join(f"    %t{n} = stencil.load %{n} : {field} -> {temp}" for n in names)
    taken = ", ".join(f"%p{n} = %t{n} : {temp}" for n in names)
    cells_of = "\n".join(f"      %x{n} = stencil.access %p{n}[0] : {temp}" for n in names)
    return f"""func.func @run({given}, %o: {field}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {{
{loads}
    %y = stencil.apply({taken}) -> ({temp}) {{
{cells_of}
      %r = {operation} {", ".join(f"%x{n}" for n in names)} : {element}
      stencil.return %r : {element}
    }}
    stencil.store %y to %o(<[0], [{cells}]>) : {temp} to {field}
  }}
  func.return
}}"""


def results(operation: str, arguments: Sequence[Array], element: str, executor: Executor) -> Array:
    """An executor's results for the arguments."""
    found = np.zeros_like(arguments[0])
    text = program_text(operation, len(arguments), element, found.size)
    timetile.compile(text, executor=executor, arch=None if executor == "gpu" else "sm_90")(
        *(argument.copy() for argument in arguments), found, 1
    )
    return found


def places(numbers: Array) -> list[int]:
    """
    The numbers' places among all numbers of the type: neighbours differ by 1, both zeros are at 0.
    """
    width = 8 * numbers.dtype.itemsize
    bits = numbers.view(np.int64 if width == 64 else np.int32).tolist()
    return [b if b >= 0 else -(b + 2 ** (width - 1)) for b in bits]


def worst(found: Array, expected: Array, arguments: Sequence[Array]) -> Worst:
    """The largest distance; above any bound if only one result is NaN."""
    nan, also = np.isnan(found), np.isnan(expected)
    different = np.flatnonzero(~((nan & also) | (found == expected)))
    largest = Worst(0, ())
    pairs = zip(different.tolist(), places(found[different]), places(expected[different]))
    for cell, one, other in pairs:
        distance = abs(one - other) if nan[cell] == also[cell] else 2**62
        if distance > largest.distance:
            largest = Worst(distance, tuple(float(a[cell]) for a in arguments))
    return largest


def samples(name: str, operands: int, element: str, cells: int) -> list[list[Array]]:
    """Arguments of a function: ordinary numbers, all magnitudes, and pairs of special numbers."""
    random = np.random.default_rng(11)
    dtype = DTYPES[element]
    low, high = RANGES.get(name, (-10, 10))
    ordinary = [random.uniform(low, high, cells).astype(dtype) for _ in range(operands)]
    if operands == 2:
        ordinary[1] = random.uniform(-10, 10, cells).astype(dtype)
    exponents = 300 if element == "f64" else 37
    signs = [random.choice([-1.0, 1.0], cells) for _ in range(operands)]
    wide = [(s * 10 ** random.uniform(-exponents, exponents, cells)).astype(dtype) for s in signs]
    grid = np.meshgrid(*[np.array(SPECIAL, dtype)] * operands)
    return [ordinary, wide, [np.ascontiguousarray(axis.ravel()) for axis in grid]]


def of_gnu(name: str, element: str) -> int:
    """The maximum error of a function of one number of the GNU C library."""
    return ERRORS[name][1 if element == "f64" else 3]


def of_processor(name: str, element: str) -> int:
    """The maximum error of a function on the processor at hand."""
    symbol = PREFIX + name + ("" if element == "f64" else "f")
    return LIBMVEC if symbol in functions_on_vectors() else of_gnu(name, element)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=int, default=1_000_000, help="arguments of each range")
    parser.add_argument(
        "--executor", default="gpu", choices=["gpu", "planes"], help="what is compared with the CPU"
    )
    parser.add_argument("names", nargs="*", help="functions, all if none is named")
    given = parser.parse_args()
    late = 0
    print(f"{'function':10} {'type':4} {'ulps':>6} {'bound':>6}  at")
    for operation, known in FUNCTIONS.items():
        if given.names and known.library not in given.names:
            continue
        for element in DTYPES:
            of_cuda = ERRORS[known.library][0 if element == "f64" else 2]
            bound = of_cuda + of_processor(known.library, element)
            found = Worst(0, ())
            for arguments in samples(known.library, len(known.operands), element, given.cells):
                mine = results(operation.name, arguments, element, given.executor)
                other = results(operation.name, arguments, element, "cpu")
                found = max(found, worst(mine, other, arguments), key=lambda w: w.distance)
            late += found.distance > bound
            mark = "" if found.distance <= bound else "  LARGER"
            print(
                f"{known.library:10} {element:4} {found.distance:6} {bound:6}  "
                f"{', '.join(map(repr, found.arguments))}{mark}",
                flush=True,
            )
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
