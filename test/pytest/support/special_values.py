"""
Programs over special values: each operation of cells on fields, each operation of two floats with a
literal, and choices of literals with what follows a choice. An assembler may fold literals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import math as xmath
from xdsl.dialects.builtin import IndexType, f32, f64
from xdsl.ir import Attribute

import timetile
from support.cell_operations import Case, cases
from support.cell_programs import program_of, stored
from timetile.passes.analysis.cells.cell_operations import FUNCTIONS
from timetile.runtime.program.compiled_program import Executor

Array = NDArray[Any]

DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}

INF, NAN = float("inf"), float("nan")

MAGNITUDES: dict[str, tuple[float, ...]] = {
    "f64": (
        0.0,
        5e-324,
        np.nextafter(2.0**-1022, 0.0),
        2.0**-1022,
        2.0**-149,
        2.0**-150,
        0.49999999999999994,
        0.5,
        1.0,
        2.5,
        2.0**31 - 1,
        2.0**31,
        2.0**63,
        2.0**64,
        3.4028235677973366e38,
        np.finfo(np.float64).max,
        INF,
    ),
    "f32": (
        0.0,
        2.0**-149,
        2.0**-126 - 2.0**-149,
        2.0**-126,
        0.49999997,
        0.5,
        1.0,
        2.5,
        2.0**31 - 128,
        2.0**31,
        2.0**63,
        2.0**64,
        float(np.finfo(np.float32).max),
        INF,
    ),
}
"""
Zero, the least and the largest subnormal, the least normal number, numbers at halves and at the
ends of integers and of FP32, the largest number, infinity. 3.40...e38 lies halfway between the
largest number of FP32 and the next.
"""

FEW: dict[str, tuple[float, ...]] = {
    "f64": (0.0, 5e-324, 2.0**-1022, 1.0, 1 + 2.0**-52, np.finfo(np.float64).max, INF),
    "f32": (0.0, 2.0**-149, 2.0**-126, 1.0, 1 + 2.0**-23, float(np.finfo(np.float32).max), INF),
}
"""Magnitudes for operations of three numbers."""

WORDS = (0, 1, -1, 2, -2, 3, -7, 31, 32, 63, 64, 2**24 + 1, 2**31 - 1, -(2**31), 2**53 + 1)
WIDE = (*WORDS, 2**63 - 1, -(2**63))
"""Integers: ordinary, and at the ends of their types and of the floats' whole numbers."""


def samples(kind: Attribute, operands: int) -> Array:
    """Numbers of a type for an operation of some operands: both signs, and one NaN."""
    name = str(kind)
    if name in MAGNITUDES:
        found = (FEW if operands > 2 else MAGNITUDES)[name]
        return np.array([*found, *(-x for x in found), NAN], DTYPES[name])
    if name == "i1":
        return np.array([0, 1], np.int32)
    return np.array(WORDS if name == "i32" else WIDE, np.int64).astype(DTYPES[stored(kind)])


def grid(kinds: Sequence[Attribute]) -> list[Array]:
    """All combinations of the operands' numbers, the last operand's fastest."""
    axes = np.meshgrid(*(samples(kind, len(kinds)) for kind in kinds), indexing="ij")
    return [np.ascontiguousarray(axis.ravel()) for axis in axes]


@dataclass(frozen=True)
class SpecialProgram:
    """
    A program of one step: names of its results by field, the fields that the program reads, and the
    types of the results.
    """

    name: str
    text: str
    results: tuple[str, ...]
    read: tuple[Array, ...]
    types: tuple[str, ...]

    def run(self, executor: Executor) -> dict[str, Array]:
        """The bits of the results, by name."""
        arch = "sm_90" if executor in ("planes", "simt", "ptx") else None
        made = [np.zeros(self.read[0].size, DTYPES[kind]) for kind in self.types]
        with timetile.compile(
            self.text, executor=executor, arch=arch, cache=False, fp_contract="off"
        ) as compiled:
            compiled(*(axis.copy() for axis in self.read), *made, 1)
        return {name: in_bits(array) for name, array in zip(self.results, made)}


def in_bits(numbers: Array) -> Array:
    """The bits of floats, of every NaN the same; integers as they are."""
    if numbers.dtype.kind != "f":
        return numbers
    width = 8 * numbers.dtype.itemsize
    one_nan = np.where(np.isnan(numbers), numbers.dtype.type(NAN), numbers)
    sign = np.signbit(one_nan).astype(f"u{width // 8}") << (width - 1)
    return np.abs(one_nan).view(f"u{width // 8}") | sign


# Operations on fields.

AT_ONCE = 24


def is_recorded(case: Case) -> bool:
    """
    The library's functions have bounds in place of bits; index has the operations of i64; a
    variable power of floats is the library's.
    """
    kinds = (*case.operands, case.result)
    is_index = any(isinstance(kind, IndexType) for kind in kinds)
    return case.operation not in FUNCTIONS and case.operation is not xmath.FPowIOp and not is_index


def on_fields() -> Iterator[SpecialProgram]:
    """Every operation of cells, on fields with all combinations of special values."""
    wanted = sorted(filter(is_recorded, cases()), key=lambda case: str(case.operands))
    for kinds, same in groupby(wanted, key=lambda case: case.operands):
        every = list(same)
        read = grid(kinds)
        for first in range(0, len(every), AT_ONCE):
            group = every[first : first + AT_ONCE]
            yield SpecialProgram(
                f"fields-{','.join(map(str, kinds))}-{first}",
                program_of(group, read[0].size),
                tuple(map(str, group)),
                tuple(read),
                tuple(stored(case.result) for case in group),
            )


# Operations with literals.

LITERALS: dict[str, tuple[float, ...]] = {
    "f32": (0.0, 1.0, 2.0, 3.0, 0.1, 6.0, 2.0**-149, 2.0**-126, 3.4028234663852886e38, INF, NAN),
    "f64": (0.0, 1.0, 2.0, 3.0, 0.1, 6.0, 5e-324, 2.0**-1022, 1.7976931348623157e308, INF, NAN),
}
"""Magnitudes: zero, ordinary numbers, subnormals, the ends of the type, infinity and NaN."""


def literal(number: float, kind: str) -> str:
    """A literal of MLIR by its bits."""
    return f"0x{np.array(number, DTYPES[kind]).view(f'u{DTYPES[kind]().itemsize}'):0X}"


BINARY = (
    *(f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf")),
    *(f"arith.{name}" for name in ("maxnumf", "minnumf")),
    "math.copysign",
)


def step_of(name: str, kind: str, lines: Sequence[str], made: int, cells: int) -> str:
    """A program of one apply: `lines` compute `%r0`, `%r1`, ... from the cell `%x`."""
    field, temp = f"!stencil.field<[0,{cells}]x{kind}>", f"!stencil.temp<?x{kind}>"
    outs = ", ".join(f"%o{k}: {field}" for k in range(made))
    stores = "\n".join(
        f"    stencil.store %y{k} to %o{k}(<[0], [{cells}]>) : {temp} to {field}"
        for k in range(made)
    )
    return f"""func.func @{name}(%f: {field}, {outs}, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {{
    %t0 = stencil.load %f : {field} -> {temp}
    {", ".join(f"%y{k}" for k in range(made))} = stencil.apply(%p = %t0 : {temp})
        -> ({", ".join([temp] * made)}) {{
      %x = stencil.access %p[0] : {temp}
      %half = arith.constant 0.5 : {kind}
{chr(10).join("      " + line for line in lines)}
      stencil.return {", ".join(f"%r{k}" for k in range(made))} : {", ".join([kind] * made)}
    }}
{stores}
  }}
  func.return
}}"""


def with_literals() -> Iterator[SpecialProgram]:
    """Every operation of two floats with literals, first and last; a cell may be a quotient."""
    for kind, magnitudes in LITERALS.items():
        literals = [*magnitudes[:-1], *(-x for x in magnitudes)]
        constants = [
            f"%l{k} = arith.constant {literal(x, kind)} : {kind}" for k, x in enumerate(literals)
        ]
        numbers = range(len(literals))
        read = samples(kind_named(kind), 1)
        for operation in BINARY:
            last = [f"%r{k} = {operation} %x, %l{k} : {kind}" for k in numbers]
            first = [f"%r{len(last) + k} = {operation} %l{k}, %x : {kind}" for k in numbers]
            names = [f"x {x}" for x in literals] + [f"{x} x" for x in literals]
            lines = [*constants, *last, *first]
            yield SpecialProgram(
                f"literals-{operation}-{kind}",
                step_of("literals", kind, lines, len(names), read.size),
                tuple(names),
                (read,),
                (kind,) * len(names),
            )


# Choices.

LEAST = {"f32": 2.0**-149, "f64": 5e-324}
"""The least subnormal numbers."""


def pairs(kind: str) -> tuple[tuple[float, float], ...]:
    """Literals to choose between."""
    return (
        *((1.0, 0.0), (0.0, 1.0), (1.0, -0.0), (-0.0, 1.0), (-1.0, 0.0), (-1.0, -0.0), (0.0, -0.0)),
        *((-0.0, 0.0), (-0.0, INF), (NAN, -0.0), (LEAST[kind], -0.0), (-0.0, 2.0), (0.5, -0.0)),
    )


CONVERTED = {
    "uitofp i1": ("%{s} = arith.uitofp %c : i1 to {kind}",),
    "uitofp i32": (
        "%{s}w = arith.extui %c : i1 to i32",
        "%{s} = arith.uitofp %{s}w : i32 to {kind}",
    ),
    "sitofp i64": (
        "%{s}w = arith.extui %c : i1 to i64",
        "%{s} = arith.sitofp %{s}w : i64 to {kind}",
    ),
    "sitofp choice": (
        "%{s}a = arith.constant 1 : i32",
        "%{s}b = arith.constant 0 : i32",
        "%{s}w = arith.select %c, %{s}a, %{s}b : i32",
        "%{s} = arith.sitofp %{s}w : i32 to {kind}",
    ),
    "choice of cell": (
        "%{s}b = arith.constant -0.0 : {kind}",
        "%{s} = arith.select %c, %x, %{s}b : {kind}",
    ),
}
"""Numbers made of a condition in other ways than by a choice of literals."""

FOLLOWED: dict[str, tuple[str, ...]] = {
    "itself": ("%{r} = arith.addf %{s}, %minus : {kind}",),
    "neg": ("%{r} = arith.negf %{s} : {kind}",),
    "abs": ("%{r} = math.absf %{s} : {kind}",),
    "sum with 0": ("%{r} = arith.addf %{s}, %zero : {kind}",),
    "0 less": ("%{r} = arith.subf %zero, %{s} : {kind}",),
    "product with -1": ("%{r} = arith.mulf %{s}, %one : {kind}",),
    "product with cell": ("%{r} = arith.mulf %{s}, %x : {kind}",),
    "quotient by 3": ("%{r} = arith.divf %{s}, %three : {kind}",),
    "quotient by cell": ("%{r} = arith.divf %{s}, %x : {kind}",),
    "reciprocal": ("%{r} = arith.divf %one, %{s} : {kind}",),
    "root": ("%{r} = math.sqrt %{s} : {kind}",),
    "reciprocal root": ("%{r} = math.rsqrt %{s} : {kind}",),
    "neg quotient": (
        "%{r}n = arith.negf %{s} : {kind}",
        "%{r} = arith.divf %{r}n, %three : {kind}",
    ),
    "neg quotient by cell": (
        "%{r}n = arith.negf %{s} : {kind}",
        "%{r} = arith.divf %{r}n, %x : {kind}",
    ),
    "neg root": ("%{r}n = arith.negf %{s} : {kind}", "%{r} = math.sqrt %{r}n : {kind}"),
    "maximum with 0": ("%{r} = arith.maximumf %{s}, %zero : {kind}",),
    "minimum with 0": ("%{r} = arith.minimumf %{s}, %zero : {kind}",),
    "maxnum with cell": ("%{r} = arith.maxnumf %{s}, %x : {kind}",),
    "minnum with cell": ("%{r} = arith.minnumf %{s}, %x : {kind}",),
    "sign of": ("%{r} = math.copysign %three, %{s} : {kind}",),
    "fma": ("%{r} = math.fma %{s}, %x, %minus : {kind}",),
    "comparison": (
        "%{r}c = arith.cmpf olt, %{s}, %half : {kind}",
        "%{r} = arith.select %{r}c, %minus, %{s} : {kind}",
    ),
    "sign bit": (
        "%{r}n = arith.negf %{s} : {kind}",
        "%{r}i = arith.bitcast %{r}n : {kind} to {word}",
        "%{r}z = arith.constant 0 : {word}",
        "%{r}c = arith.cmpi slt, %{r}i, %{r}z : {word}",
        "%{r} = arith.select %{r}c, %three, %zero : {kind}",
    ),
}
"""What is made of the number, `%{s}`, and named `%{r}`."""


def chosen(kind: str) -> tuple[list[str], list[str]]:
    """Lines that make `%s0`, `%s1`, ..., and the numbers' names."""
    lines: list[str] = []
    names: list[str] = []
    for first, last in pairs(kind):
        s = f"s{len(names)}"
        lines += [
            f"%{s}a = arith.constant {literal(first, kind)} : {kind}",
            f"%{s}b = arith.constant {literal(last, kind)} : {kind}",
            f"%{s} = arith.select %c, %{s}a, %{s}b : {kind}",
        ]
        names.append(f"choice of {first} and {last}")
    for name, made in CONVERTED.items():
        lines += [line.format(s=f"s{len(names)}", kind=kind) for line in made]
        names.append(name)
    return lines, names


def choices() -> Iterator[SpecialProgram]:
    """Choices of literals, and conversions of conditions, each followed by an operation."""
    shared = {"zero": "0.0", "minus": "-0.0", "one": "-1.0", "three": "3.0"}
    for kind in ("f32", "f64"):
        made, names = chosen(kind)
        read = samples(kind_named(kind), 1)
        begin = [f"%{name} = arith.constant {x} : {kind}" for name, x in shared.items()]
        begin += [f"%c = arith.cmpf ogt, %x, %half : {kind}", *made]
        word = "i32" if kind == "f32" else "i64"
        for follows, lines in FOLLOWED.items():
            body = [
                line.format(s=f"s{k}", r=f"r{k}", kind=kind, word=word)
                for k in range(len(names))
                for line in lines
            ]
            yield SpecialProgram(
                f"choices-{follows}-{kind}",
                step_of("choices", kind, [*begin, *body], len(names), read.size),
                tuple(names),
                (read,),
                (kind,) * len(names),
            )


def kind_named(name: str) -> Attribute:
    """The float type of a name."""
    return f32 if name == "f32" else f64


def special_programs() -> list[SpecialProgram]:
    """All programs, in a fixed order."""
    return [*on_fields(), *with_literals(), *choices()]
