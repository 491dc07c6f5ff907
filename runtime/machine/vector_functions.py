"""
C's mathematical functions on vectors: those of libmvec, a part of the GNU C library on x86-64, for
loops that LLVM vectorises.

A function of one number is lane 0 of the function on vectors: a cell gets equal bits within a
vector, at the end of a row, and on the NumPy executor. Without libmvec, functions of one number are
the C library's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.passes.analysis.cells.library import LIBRARY, PREFIX

LIBMVEC = "libmvec.so.1"

INSTRUCTION_SETS = (("d", 4, {"+avx2", "+fma"}), ("b", 2, {"+sse4.1"}))
"""A letter of the ABI of vector functions, lanes of FP64, and features needed; widest first."""

PURE = "nounwind willreturn memory(none)"
"""Attributes of functions without effects, in LLVM's language."""


@dataclass(frozen=True)
class VectorFunction:
    """A scalar function and its counterpart on vectors in libmvec."""

    name: str
    """The name in the C library, `expf`."""
    of_vectors: str
    """The name in libmvec, `_ZGVdN8v_expf`."""
    kind: str
    """The type of the numbers in LLVM's language."""
    lanes: int
    operands: int
    address: int
    """The address of the function on vectors."""

    @property
    def symbol(self) -> str:
        """The name of the function on vectors in compiled code."""
        return PREFIX + self.of_vectors

    @property
    def definition(self) -> str:
        """
        The function of numbers in LLVM's language, with the attribute by which loops call the
        function on vectors (LLVM Language Reference, "vector-function-abi-variant").
        """
        vector, each = f"<{self.lanes} x {self.kind}>", range(self.operands)
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        mapped = f"_ZGV_LLVM_N{self.lanes}{'v' * self.operands}_{PREFIX}{self.name}({self.symbol})"
        spread = [
            line
            for k in each
            for line in (
                f"%i{k} = insertelement {vector} poison, {self.kind} %a{k}, i64 0",
                f"%v{k} = shufflevector {vector} %i{k}, {vector} poison, {zeros}",
            )
        ]
        lines = "\n  ".join(spread)
        numbers = ", ".join(f"{self.kind} %a{k}" for k in each)
        vectors = ", ".join(f"{vector} %v{k}" for k in each)
        return f"""
declare {vector} @"{self.symbol}"({", ".join([vector] * self.operands)}) {PURE}
define linkonce_odr {self.kind} @"{PREFIX}{self.name}"({numbers}) noinline {PURE}
    "vector-function-abi-variant"="{mapped}" {{
  {lines}
  %all = call {vector} @"{self.symbol}"({vectors})
  %first = extractelement {vector} %all, i64 0
  ret {self.kind} %first
}}
"""


def vector_functions(features: Sequence[str]) -> dict[str, VectorFunction]:
    """
    The functions for a processor with LLVM's features (`+avx2`), by the name of the function of
    numbers in compiled code; none where libmvec or its instructions are missing.
    """
    fitting = [row for row in INSTRUCTION_SETS if row[2] <= set(features)]
    try:
        library = ctypes.CDLL(LIBMVEC)
    except OSError:
        return {}
    made: dict[str, VectorFunction] = {}
    for letter, doubles, _ in fitting[:1]:
        for operation, known in LIBRARY.items():
            operands = len(FUNCTIONS[operation].operands)
            for kind, suffix, lanes in (("double", "", doubles), ("float", "f", 2 * doubles)):
                name = f"_ZGV{letter}N{lanes}{'v' * operands}_{known}{suffix}"
                # Versions of libmvec before 2.35 have sin, cos, exp, log and pow alone.
                if hasattr(library, name):
                    # A function of ctypes holds the function's address.
                    address = ctypes.c_size_t.from_buffer(getattr(library, name)).value
                    found = VectorFunction(known + suffix, name, kind, lanes, operands, address)
                    made[PREFIX + found.name] = found
    return made
