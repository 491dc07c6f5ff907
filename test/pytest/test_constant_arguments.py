"""Fields that a program only reads may share memory; a field that it writes shares none."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from timetile.runtime.program.compiled_program import Executor


@timetile.stencil
def flux(u: timetile.Field, c: timetile.Field, d: timetile.Field) -> None:
    u.next = c[0, 0] * u[-1, 0] + d[0, 0] * u[1, 0]


WHOLE = np.random.default_rng(2).random((21, 30))
SHARED = {
    "one array twice": (WHOLE[:-1], WHOLE[:-1]),
    "views of neighbours": (WHOLE[:-1], WHOLE[1:]),
    "neighbours turned round": (WHOLE[1:], WHOLE[:-1]),
}


@pytest.mark.covering
@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("executor", ["cpu", "numpy", "planes", "simt"])
def test_coefficients_are_views_of_one_array(executor: Executor, name: str):
    c, d = SHARED[name]
    u = np.random.default_rng(3).random((20, 30))
    model = flux.on(executor=executor, fp_contract="off")
    shared = model.advance({"u": u, "c": c, "d": d}, 3)["u"]
    apart = model.advance({"u": u, "c": c.copy(), "d": d.copy()}, 3)["u"]
    np.testing.assert_array_equal(shared, apart)


def test_a_written_field_shares_no_memory():
    program = flux.on(executor="numpy").program((20, 30))
    names = [parameter.name for parameter in program.parameters]
    assert sorted(names[k] or "" for k in program.constant_arguments) == ["c", "d", "steps"]
    u, following, d = (np.zeros((20, 30)) for _ in range(3))
    with pytest.raises(ValueError, match=r"0 \(%u\) and 2 \(%c\) share memory; give every field"):
        program(u, following, u, d, steps=1)


PICKED = """
func.func @run(%n: index, %a: !stencil.field<[0,8]xf64>, %b: !stencil.field<[0,8]xf64>,
    %c: !stencil.field<[0,8]xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    %rest = arith.remui %t, %c2 : index
    %even = arith.cmpi eq, %rest, %c0 : index
    %picked = arith.select %even, %a, %b : !stencil.field<[0,8]xf64>
    %v = stencil.load %c : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
    stencil.store %v to %picked(<[0], [8]>) : !stencil.temp<?xf64> to !stencil.field<[0,8]xf64>
  }
  return
}
"""


def test_a_field_written_by_a_picked_name_is_no_constant():
    program = timetile.compile(PICKED, executor="numpy", cache=False)
    names = {parameter.position: parameter.name for parameter in program.parameters}
    assert {names[k] for k in program.constant_arguments} & {"a", "b", "c"} == {"c"}
