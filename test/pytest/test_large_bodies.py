"""
Cells with more values or scalars than a thread's registers get kernels with few spilled bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.catalogue import two_buffers
from support.compare import assert_as_unfused
from support.description import Element, Program, random_inputs
from support.expressions import Expression, Scalar, Tap, weighted_sum
from support.few_schedules import few_schedules
from support.programs import program_text
from support.sizes import half
from timetile.frontend.field_types import DType
from timetile.passes.scheduling.candidates import LONGEST, candidates, compare
from timetile.passes.scheduling.choose_schedule import choose
from timetile.passes.scheduling.constraints import Constraints
from timetile.passes.scheduling.reasons import LONG_CODE
from timetile.passes.scheduling.turns import instructions_of
from timetile.passes.targets.target import target_named
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading import load

pytestmark = pytest.mark.usefixtures("chosen_by_model")

FEW = 256
"""Allowed bytes of spills of a kernel."""


def plane_of(reach: int) -> list[tuple[int, int]]:
    """The offsets of a plane of neighbours, row by row."""
    return [(y, x) for y in range(-reach, reach + 1) for x in range(-reach, reach + 1)]


def filtered(reach: int, element: Element, domain: tuple[int, int] = (12, 70)) -> Program:
    """A plane of neighbours, each times a separate scalar."""
    offsets = plane_of(reach)
    names = [f"w{k}" for k in range(len(offsets))]
    cell: Expression = Tap("u", offsets[0]) * Scalar(names[0])
    for name, offset in zip(names[1:], offsets[1:], strict=True):
        cell = cell + Tap("u", offset) * Scalar(name)
    return two_buffers(domain, element, offsets, cell, *names)


def tangled(values: int) -> str:
    """
    A program with a given number of values in a cell; the cell uses all values again at the end,
    the first value last.
    """
    field, temp = "!stencil.field<[0,64]x[0,64]xf64>", "!stencil.temp<?x?xf64>"
    lines = [f"%v0 = stencil.access %x[0, 0] : {temp}"]
    for k in range(values):
        lines.append(f"%v{k + 1} = arith.mulf %v{k}, %v{k // 2} : f64")
    lines.append(f"%s{values} = arith.addf %v{values}, %v{values} : f64")
    for k in reversed(range(values)):
        lines.append(f"%s{k} = arith.subf %v{k}, %s{k + 1} : f64")
    body = "\n".join(lines)
    return f"""
func.func @run(%a: {field}, %b: {field}, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%u = %a, %w = %b) -> ({field}, {field}) {{
    %l = stencil.load %u : {field} -> {temp}
    %o = stencil.apply(%x = %l : {temp}) -> ({temp}) {{
      {body}
      stencil.return %s0 : f64
    }}
    stencil.store %o to %w(<[0, 0], [64, 64]>) : {temp} to {field}
    scf.yield %w, %u : {field}, {field}
  }}
  func.return
}}
"""


def kernels(text: str | ModuleOp) -> Iterator[Kernel]:
    """The chosen kernels, assembled, the deepest first."""
    compiled = timetile.compile(text, executor="planes", cache=False)
    for loop in compiled.kernels.facts:
        yield from (compiled.kernels.kernel(facts.name) for facts in loop)


@pytest.mark.parametrize(("reach", "element"), [(5, "f32"), (4, "f64")])
def test_a_filter_of_hundreds_of_scalars_does_not_spill(reach: int, element: Element):
    """Each scalar is loaded at its use: hundreds of waiting scalars would spill."""
    program = filtered(reach, element)
    text = program_text(program)
    with few_schedules():
        checked = timetile.compile(text, executor="planes", fp_contract="off", depth=1, cache=False)
        assert_as_unfused(checked, program, random_inputs(program, seed=3), 2)
    for kernel in kernels(text):
        assert kernel.spill_bytes < FEW
        assert kernel.ptx.rindex("ld.param") > kernel.ptx.index("fma.rn")


def test_hundreds_of_scalars_are_predicted_about_as_fast_as_constants():
    """Weights are no cells: a filter of scalars reads planes as a filter of constants does."""
    domain, offsets = (2048, 2048), plane_of(6)
    cell = weighted_sum({offset: 0.3 + 0.01 * k for k, offset in enumerate(offsets)}, "u")
    speeds: list[float] = []
    for program in (filtered(6, "f32", domain), two_buffers(domain, "f32", offsets, cell)):
        module = raise_program(load(program_text(program)), Options())
        (loop,) = loops_of(module)
        best, *_ = candidates(loop, module, target_named("sm_90"), 1)
        speeds.append(best.cost.gcells_per_second)
    assert 0.8 < speeds[0] / speeds[1] < 1.25


def test_a_body_as_large_as_the_registers_gets_one_level():
    """No level is added to a body that fills the registers alone."""
    found = list(kernels(tangled(110)))
    assert [kernel.name for kernel in found] == ["run_step"]
    assert all(kernel.spill_bytes < FEW for kernel in found)


@timetile.stencil
def fluxes_of_faces(h: timetile.Field, p: timetile.Field, q: timetile.Field):
    """Eight quotients a cell, shared by cells of a row and of three planes."""

    def face(i: int, j: int) -> tuple[timetile.Value, timetile.Value]:
        return p[i, j] * p[i, j] / h[i, j], p[i, j] * q[i, j] / h[i, j]

    (a, b), (c, d), (e, f), (g, k) = face(-1, 0), face(1, 0), face(0, -1), face(0, 1)
    h.next = 0.25 * (h[-1, 0] + h[1, 0] + h[0, -1] + h[0, 1])
    p.next = p[0, 0] - 0.2 * (c - a + k - f)
    q.next = q[0, 0] - 0.2 * (d - b + g - e)


@pytest.mark.parametrize("element", half(["float32", "float64"]))
def test_quotients_shared_by_cells_are_foreseen_in_registers(element: DType):
    """Shared quotients wait in registers for other cells of the row, and for later planes."""
    deepest = next(kernels(fluxes_of_faces.module((4096, 4096), element)))
    assert deepest.spill_bytes < FEW


def test_the_code_of_a_kernel_does_not_depend_on_addresses():
    """Masks of several cells are taken in the order of the code: one program has one PTX."""
    module, texts, kept = fluxes_of_faces.module((512, 512), "float32"), set[str](), list[bytes]()
    for turn in range(4):
        kept += [bytes(17 * turn + k % 400) for k in range(1000 * turn)]
        compiled = timetile.compile(module, executor="planes", depth=1, halos="common", cache=False)
        with few_schedules():
            ((facts, *_),) = compiled.kernels.facts
        texts.add(compiled.kernels.kernel(facts.name).ptx)
    assert len(texts) == 1


@timetile.stencil
def remainders(n: timetile.Field):
    """Dozens of 64-bit quotients, each some dozens of instructions long."""
    value = n[0, 0]
    for k in range(24):
        value = value % ((n[1, k % 3 - 1] & 7) + k + 1) + n[-1, 0]
    n.next = value


def test_long_code_gives_way_to_fewer_steps_and_cells(monkeypatch: pytest.MonkeyPatch):
    """Deep kernels take the assembler a minute. Without another schedule, long code is made."""
    module = raise_program(remainders.module((64, 64), "int64"), Options(halos="common"))
    (loop,) = loops_of(module)
    target = target_named("sm_90")
    compared = compare(loop, module, target, None)
    assert max(instructions_of(each.cost) for each in compared.found) <= LONGEST
    left_out = [each for each in compared.rejected if each.reason.kind is LONG_CODE]
    assert left_out and all(each.reason.taken > LONGEST for each in left_out)
    assert choose(loop, module, target, 8)[1] == 2
    tiles = Constraints({"reads_memory": False})
    monkeypatch.setattr("timetile.passes.scheduling.candidates.LONGEST", 100)
    chosen, depth = choose(loop, module, target, None, tiles)
    assert depth == 1 and not chosen.reads_memory
