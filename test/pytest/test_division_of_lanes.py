"""Lanes without cells: their quotients are never stored, and do not decide a side of a warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import timetile
from support.division import Votes, counted_votes
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


@timetile.stencil
def quotient_of_neighbours(u: timetile.Field, v: timetile.Field):
    """A row of neighbours divided by another row, and by the cell above."""
    u.next = v[0, -1] / u[0, 1] + v[0, 1] / u[-1, 0]
    v.next = 0.5 * (u[0, 0] / v[0, 0]) + 1.0


@pytest.fixture
def votes(monkeypatch: pytest.MonkeyPatch) -> Votes:
    """Counts the sides taken by the SIMT interpreter."""
    return counted_votes(monkeypatch)


SHAPE = (24, 40)

ONE_CHUNK = (
    "temporal-fusion{{depths={depth}}},choose-schedule,device-tiling,split-sums,"
    "multi-queue-buffering,register-streaming,carry-halos,peel-boundaries{{planes=40}}"
)
"""The default passes, with all planes of the domain in one chunk."""


def advanced(
    executor: Executor, state: dict[str, np.ndarray[Any, Any]], depth: int
) -> dict[str, np.ndarray[Any, Any]]:
    """The state after four steps."""
    program = timetile.compile(
        quotient_of_neighbours.module(SHAPE, "float32"),
        executor=executor,
        passes=ONE_CHUNK.format(depth=depth),
        halos="common",
        cache=False,
    )
    u, v = state["u"], state["v"]
    result = program(u.copy(), u.copy(), v.copy(), v.copy(), steps=4)
    return dict(zip("uv", result.buffers[:4:2], strict=True))


@pytest.mark.parametrize("depth", [1, 2])
def test_lanes_without_cells_do_not_decide_a_warps_side(depth: int, votes: Votes):
    """The plate is narrower than a tile: each warp has lanes with missing divisors."""
    random = np.random.default_rng(depth)
    state = {name: random.random(SHAPE).astype(np.float32) + 1 for name in "uv"}
    found, right = advanced("simt", state, depth), advanced("numpy", state, depth)
    for name in "uv":
        assert found[name].tobytes() == right[name].tobytes()
    assert votes.quick > 2 * votes.exact


def test_an_operand_of_a_stored_cell_decides_its_warps_side(votes: Votes):
    """A tiny divisor takes the warp of its cell to the exact side."""
    state = {name: np.full(SHAPE, 1.5, np.float32) for name in "uv"}
    advanced("simt", state, 1)
    ordinary = votes.exact
    state["u"][14, 20] = 1e-30
    found, right = advanced("simt", state, 1), advanced("numpy", state, 1)
    for name in "uv":
        assert found[name].tobytes() == right[name].tobytes()
    assert votes.exact > 2 * ordinary


DIVIDED_INSIDE = """
!whole = !stencil.field<[0,64]x[0,300]xf32>
!inner = !stencil.field<[8,64]x[8,300]xf32>
!temp = !stencil.temp<?x?xf32>
func.func @divided_inside(%u: !whole, %u_next: !whole, %w: !inner, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a, %b = scf.for %t = %zero to %steps step %one
      iter_args(%old = %u, %new = %u_next) -> (!whole, !whole) {
    %x = stencil.load %old : !whole -> !temp
    %y = stencil.load %w : !inner -> !temp
    %mean = stencil.apply(%p = %x : !temp) -> (!temp) {
      %left = stencil.access %p[0, -1] : !temp
      %below = stencil.access %p[1, 0] : !temp
      %half = arith.constant 0.5 : f32
      %sum = arith.addf %left, %below : f32
      %r = arith.mulf %sum, %half : f32
      stencil.return %r : f32
    }
    %quotient = stencil.apply(%p = %x : !temp, %q = %y : !temp) -> (!temp) {
      %here = stencil.access %p[0, 0] : !temp
      %over = stencil.access %q[-1, 0] : !temp
      %r = arith.divf %here, %over : f32
      stencil.return %r : f32
    }
    stencil.store %mean to %new(<[1, 1], [63, 299]>) : !temp to !whole
    stencil.store %quotient to %new(<[10, 10], [60, 290]>) : !temp to !whole
    scf.yield %new, %old : !whole, !whole
  }
  func.return
}
"""


@pytest.mark.parametrize("depth", [1, 2])
def test_lanes_without_cells_read_a_divisor_of_few_cells_inside_it(depth: int):
    """The divisor begins behind the first updated cell; the interpreter checks every address."""
    random = np.random.default_rng(depth)
    u, w = (random.random(shape).astype(np.float32) + 1 for shape in ((64, 300), (56, 292)))

    def ends(executor: Executor, depth: int | None) -> tuple[np.ndarray[Any, Any], ...]:
        program = timetile.compile(
            DIVIDED_INSIDE, executor=executor, depth=depth, halos="common", cache=False
        )
        return program(u.copy(), u.copy(), w.copy(), steps=4).buffers[:2]

    for found, right in zip(ends("simt", depth), ends("numpy", None), strict=True):
        assert found.tobytes() == right.tobytes()


@pytest.mark.parametrize("depth", [1, 2])
def test_lanes_without_cells_read_no_cell_that_other_threads_store(depth: int):
    """
    The buffer with the planes outside the bounds is the target, too: the interpreter reports a read
    of a stored cell.
    """

    @timetile.stencil
    def relaxed(v: timetile.Field) -> None:
        for _ in timetile.repeat(2):
            sum_ = 1 / (abs(v.next[0, 1, 0]) + 1) + v.next[1, 1, 1]
            v.next[0:4, 2:3, 0:23] = sum_ + 0 * v[0, 0, 0]

    v = np.random.default_rng(depth).random((5, 5, 24)).astype(np.float32)
    executors: tuple[Executor, ...] = ("simt", "numpy")
    found, right = (
        relaxed.on(executor=executor, depth=depth, cache=False).advance({"v": v}, 2)["v"]
        for executor in executors
    )
    assert found.tobytes() == right.tobytes()
