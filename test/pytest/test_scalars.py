"""
Scalars of every type reach cells: as arguments, constants, numbers of steps, and results of the
host's arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.executors import compiled_on, executors

pytestmark = pytest.mark.usefixtures("chosen_among_few")


FIELD, TEMP = "!stencil.field<[-1,33]xf64>", "!stencil.temp<?xf64>"

TO_F64 = {
    "f64": "arith.addf %q, %zero : f64",
    "f32": "arith.extf %q : f32 to f64",
    "i64": "arith.sitofp %q : i64 to f64",
    "i32": "arith.sitofp %q : i32 to f64",
    "i1": "arith.uitofp %q : i1 to f64",
    "index": "arith.sitofp %whole : i64 to f64",
}
VALUES: dict[str, Any] = {"f64": 0.75, "f32": 0.5, "i64": -3, "i32": 5, "i1": True, "index": 4}
TWICE = {
    "f64": "arith.addf %k, %k : f64",
    "f32": "arith.addf %k, %k : f32",
    "i64": "arith.addi %k, %k : i64",
    "i32": "arith.addi %k, %k : i32",
    "i1": "arith.andi %k, %k : i1",
    "index": "arith.addi %k, %k : index",
}


def program(kind: str, before: str, *, given: bool) -> str:
    """
    Each cell becomes the left neighbour plus a scalar of a type; `before` computes %s from %k ahead
    of the loop.
    """
    whole = "      %whole = arith.index_cast %q : index to i64\n" if kind == "index" else ""
    argument = f"%k: {kind}, " if given else ""
    return f"""func.func @add(%u: {FIELD}, %v: {FIELD}, {argument}%n: i32) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
{before}
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %u, %b = %v) -> ({FIELD}, {FIELD}) : i32 {{
    %x = stencil.load %a : {FIELD} -> {TEMP}
    %y = stencil.apply(%p = %x : {TEMP}, %q = %s : {kind}) -> ({TEMP}) {{
      %l = stencil.access %p[-1] : {TEMP}
      %zero = arith.constant 0.0 : f64
{whole}      %w = {TO_F64[kind]}
      %o = arith.addf %l, %w : f64
      stencil.return %o : f64
    }}
    stencil.store %y to %b(<[0], [32]>) : {TEMP} to {FIELD}
    scf.yield %b, %a : {FIELD}, {FIELD}
  }}
  func.return
}}"""


def expected(scalar: float, steps: int) -> list[NDArray[np.float64]]:
    """The fields after some steps."""
    fields = inputs()
    for step in range(steps):
        source, target = fields[step % 2], fields[1 - step % 2]
        target[1:33] = source[0:32] + scalar
    return fields


def inputs() -> list[NDArray[np.float64]]:
    field = np.random.default_rng(5).uniform(-1, 1, 34)
    return [field, field.copy()]


def check(text: str, scalars: tuple[Any, ...], scalar: float) -> None:
    """All executors end like Python, and the kernels assemble."""
    # A given depth saves the search, and one launch is one kernel.
    options: Any = {"depth": 3, "arch": "sm_90", "cache": False}
    for compiled in compiled_on(executors(), text, **options):
        fields = inputs()
        compiled(*fields, *scalars, 3)
        for found, wanted in zip(fields, expected(scalar, 3)):
            np.testing.assert_array_equal(found, wanted)
        if compiled.executor == "planes":
            for deepest, *_ in compiled.kernels.facts:
                assert compiled.kernels.kernel(deepest.name).registers > 0


@pytest.mark.parametrize("kind", VALUES)
def test_a_scalar_argument_reaches_the_cells(kind: str):
    text = program(kind, "", given=True).replace("%q = %s", "%q = %k")
    check(text, (VALUES[kind],), float(VALUES[kind]))


@pytest.mark.parametrize("kind", VALUES)
def test_a_constant_before_the_loop_reaches_the_cells(kind: str):
    number = "true" if kind == "i1" else f"{VALUES[kind]} : {kind}"
    check(program(kind, f"  %s = arith.constant {number}", given=False), (), float(VALUES[kind]))


@pytest.mark.parametrize("kind", VALUES)
def test_a_number_that_the_host_computes_reaches_the_cells(kind: str):
    text = program(kind, f"  %s = {TWICE[kind]}", given=True)
    twice = 1.0 if kind == "i1" else 2.0 * VALUES[kind]
    check(text, (VALUES[kind],), twice)


def test_the_number_of_steps_reaches_the_cells():
    check(program("i32", "", given=False).replace("%q = %s", "%q = %n"), (), 3.0)
