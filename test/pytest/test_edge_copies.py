"""
Updates that copy cells beside the box of a step: kernels of several steps continue the fields, and
every buffer, the cells beside the box included, ends with the bits of the updates as written.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest

import timetile
from support.edge_copies import CopiedEdges
from support.schedules import Schedule, block_row, warp_row
from timetile import Field, Series, repeat
from timetile.dialects.temporal.boundary import Kind
from timetile.dialects.tile import Published
from timetile.frontend.model import Model
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.kernels import edge_kernels
from timetile.runtime.program.compiled_program import CompiledProgram, Executor


@pytest.fixture(autouse=True)
def short_runs_have_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_kernels, "FEWEST_NEAR", 8)


pytestmark = pytest.mark.usefixtures("chosen_among_few")

P, M, R, K = Kind.PERIODIC, Kind.MIRROR, Kind.REFLECT, Kind.KEEP

AHEAD = MultiQueueBufferingPass(ahead=2)
UPRIGHT, LYING = "keep, keep, periodic, periodic", "mirror, reflect, keep, keep"
TURNED, MIXED = "keep, keep, mirror, reflect", "mirror, reflect, value 2.5, mirror"

ROWS = [
    (Schedule("columns", DeviceTilingPass(stream_axis=1, cells=(2,), warps=(1,), pack=2)), UPRIGHT),
    (Schedule("exchanged-plane", block_row(), streaming=Streaming(what=Published.PLANE)), LYING),
    (Schedule("lanes", warp_row(4), AHEAD), TURNED),
    (Schedule("copies", block_row(), AHEAD, streaming=Streaming(what=Published.COPIES)), MIXED),
    (Schedule("memory", DeviceTilingPass(reads="memory"), planes=None), LYING),
]

CASES = {
    "periodic": CopiedEdges((6, 40), [(P, P), (P, P)], corners=True),
    "periodic-before": CopiedEdges((7, 33), [(P, P), (P, P)], before=True),
    "wave": CopiedEdges((40,), [(R, M)], reach=2, wave=True),
    "wave-before": CopiedEdges((5, 36), [(P, P), (M, M)], wave=True, before=True),
    "beside-kept": CopiedEdges((9, 34), [(K, K), (P, P)]),
    "values": CopiedEdges((9, 34), [(0.5, M), (-1.0, -1.0)]),
    "volume": CopiedEdges((5, 6, 36), [(P, P), (M, R), (P, P)]),
}


def ran(program: CompiledProgram, shape: tuple[int, ...], steps: int) -> list[bytes]:
    """All buffers after a run from different cells, beside the box, too."""
    random = np.random.default_rng(3)
    count = sum(parameter.is_field for parameter in program.parameters)
    arrays = [random.random(shape) for _ in range(count)]
    program(*arrays, steps=steps)
    return [array.tobytes() for array in arrays]


@pytest.mark.covering
@pytest.mark.parametrize("executor", ("planes", "simt"))
@pytest.mark.parametrize("name", CASES)
def test_copies_have_the_bits_of_copies(name: str, executor: Executor):
    case = CASES[name]
    text = CopiedEdges(
        case.sizes, case.sides, case.reach, case.before, case.wave, case.corners
    ).text()
    found = timetile.compile(text, executor=executor, cache=False)
    assert found.kernels.edges.steps, "the copies are images"
    assert max(fact.steps for fact in found.kernels.edges.continued.kernels.facts[0]) > 1
    judge = timetile.compile(text, executor="numpy", cache=False)
    for steps in (8, 11):
        assert ran(found, case.shape, steps) == ran(judge, case.shape, steps)


INNER = """
func.func private @cell(%l: f64, %r: f64, %u: f64, %d: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  %t = arith.addf %u, %d : f64
  %o = arith.subf %s, %t : f64
  func.return %o : f64
}
!f = !stencil.field<[0,13]x[0,72]xf64>
func.func @f(%A: !f, %B: !f, %n: index) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] common_halos {
    temporal.update %b = @cell(%a[-1, 0], %a[1, 0], %a[0, -1], %a[0, 1]) in <[1, 1], [12, 71]>
      beyond [#temporal.boundary<BOUNDARY>] inner
  } : !f, !f
  func.return
}
"""
"""A loop on fields with a row or a column on each side of the box, which nothing reads."""


@pytest.mark.parametrize(("schedule", "boundary"), ROWS, ids=lambda each: getattr(each, "name", ""))
def test_cells_beside_the_box_are_not_read(schedule: Schedule, boundary: str):
    """The GPU's threads see the bits of NumPy, with NaN in the cells beside the box."""
    start = np.full((13, 72), np.nan)
    kept = (side.strip() == "keep" for side in boundary.split(",")[::2])
    read = tuple(slice(None) if each else slice(1, -1) for each in kept)
    start[read] = np.random.default_rng(2).random((13, 72))[read]
    text, found = INNER.replace("BOUNDARY", boundary), list[bytes]()
    judge = timetile.compile(text, executor="numpy", cache=False)
    threads = timetile.compile(text, executor="simt", passes=schedule.passes(2), cache=False)
    for program in (judge, threads):
        arrays = start.copy(), start.copy()
        program(*arrays, steps=3)
        found.append(b"".join(array.tobytes() for array in arrays))
    assert found[0] == found[1]


@timetile.stencil
def driven(u: Field, force: Series):
    u.next = 0.5 * u[0] + 0.25 * (u[-1] + u[1]) + force[0]
    u.next[0:1] = u.next[38]
    u.next[-1:] = u.next[-38]


def test_a_series_goes_on_behind_the_first_steps():
    start, force = {"u": np.random.default_rng(1).random(40)}, np.arange(13.0)
    found, judge = (
        driven.on(executor=name).advance(start, steps=13, force=force)["u"]
        for name in ("planes", "numpy")
    )
    assert np.array_equal(found, judge)


@timetile.stencil
def relaxed(p: Field, f: Field):
    for _ in repeat(9):
        p.next = 0.5 * (p.next[-1] + p.next[1] - f[0])
        p.next[0:1] = p.next[1]
        p.next[-1:] = p.next[-1]


def test_inner_sweeps_with_insulated_ends_continue_the_field():
    random = np.random.default_rng(7)
    start = {"p": random.random(50), "f": random.random(50)}
    assert relaxed.on(executor="planes").program((50,)).kernels.edges.steps
    found, judge = (
        relaxed.on(executor=name).advance(start, steps=2)["p"] for name in ("planes", "numpy")
    )
    assert np.array_equal(found, judge)


def test_edges_are_copied_by_several_kernels_of_few_cells():
    """None of them has a notable part of the cells: all count for the schedule."""
    case = CopiedEdges((300, 300), [(P, P)] * 2)
    program = timetile.compile(case.text(), executor="planes", cache=False)
    (facts,) = program.kernels.edges.filling.kernels.facts
    assert len(facts) > 1


def test_short_runs_with_near_copies_take_the_kernels_of_the_step(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    case = CASES["values"]
    program = timetile.compile(CopiedEdges(case.sizes, case.sides).text(), cache=False)
    (loop,) = program.kernels.loops
    assert program.kernels.edges.of(loop, edge_kernels.FEWEST_NEAR - 1) is None
    assert program.kernels.edges.of(loop, edge_kernels.FEWEST_NEAR) is not None


@timetile.stencil
def late(u: Field):
    u.next = 0.5 * u[0] + 0.25 * (u[-1] + u[1])
    u.next[0:1] = u[1]


@timetile.stencil
def one_sided(u: Field):
    u.next = 0.5 * u[0] + 0.25 * u[-1]
    u.next[0:1] = u.next[2]


@timetile.stencil
def half_periodic(u: Field):
    u.next = 0.5 * u[0] + 0.25 * (u[-1] + u[1])
    u.next[0:1] = u.next[38]


REASONS = {
    late: "the cells below the box along axis 0 are copies of no image: another level, or another "
    "distance; copy cells of the newest level at the distance of the image, or give the field a "
    "boundary",
    one_sided: "kernels do not continue these fields by #temporal.boundary<reflect, keep>; read "
    "fields alike on both sides of a cell, and give all fields one boundary",
    half_periodic: "axis 0 is periodic on one side only; copy cells of the newest level at the "
    "distance of the image, or give the field a boundary",
}


@pytest.mark.parametrize("step", REASONS, ids=["late", "one-sided", "half-periodic"])
def test_other_copies_stay_copies_with_a_remark(step: Model, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        program = step.on(executor="planes", depth=2).program((40,))
        assert not program.kernels.edges.steps
    assert not caplog.records, "a run says nothing"
    (remark,) = program.kernels.remarks
    assert remark.partition(": cells beside the box are copied step by step: ")[2] == REASONS[step]


def test_explain_names_the_edges_as_a_cause():
    case = CASES["beside-kept"]
    text = CopiedEdges(case.sizes, case.sides).text()
    (loop,) = timetile.compile(text, executor="planes", depth=2, cache=False).explain().loops
    assert loop.edges == (
        "axis 0 keep, axis 1 periodic; copies of cells beside the box state this, and run at the "
        "start and the end only; tiles at the edges load the cells of the other end, and compute "
        "them as others"
    )
    assert loop.depth == 2


FROM_C = """
!m = memref<10x42xf64>
func.func @from_c(%U: !m, %V: !m, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %c41 = arith.constant 41 : index
  %half = arith.constant 0.5 : f64
  scf.for %t = %c0 to %n step %c1 iter_args(%a = %U, %b = %V) -> (!m, !m) {
    scf.for %j = %c1 to %c41 step %c1 {
      %x = memref.load %a[%c8, %j] : !m
      memref.store %x, %a[%c0, %j] : !m
      %y = memref.load %a[%c1, %j] : !m
      memref.store %y, %a[%c9, %j] : !m
    }
    scf.for %i = %c1 to %c9 step %c1 {
      scf.for %j = %c1 to %c41 step %c1 {
        %up = arith.subi %i, %c1 : index
        %down = arith.addi %i, %c1 : index
        %l = memref.load %a[%up, %j] : !m
        %r = memref.load %a[%down, %j] : !m
        %s = arith.addf %l, %r : f64
        %o = arith.mulf %s, %half : f64
        memref.store %o, %b[%i, %j] : !m
      }
    }
    scf.yield %b, %a : !m, !m
  }
  func.return
}
"""


def test_loops_of_c_that_copy_rows_first_are_periodic():
    program = timetile.compile(FROM_C, executor="planes", cache=False)
    (steps,) = program.kernels.edges.steps.values()
    assert str(steps.boundary) == "#temporal.boundary<periodic, periodic, keep, keep>"
    u, v = np.random.default_rng(6).random((2, 10, 42))
    program(a := u.copy(), b := v.copy(), steps=9)
    for _ in range(9):
        u[0, 1:-1], u[9, 1:-1] = u[8, 1:-1].copy(), u[1, 1:-1].copy()
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1]) * 0.5
        u, v = v, u
    assert np.array_equal(b, u) and np.array_equal(a, v)
