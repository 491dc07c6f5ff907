"""
Cells with shared values as results: a constant, a tap, or one value returned twice. Kernels tell
cells of different planes apart by value: each result becomes a separate value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.passes import ModulePass

import timetile
from timetile.dialects.tile import Addressing, Storage, TileLevel
from timetile.lowering.pipelines import tile_passes
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass
from timetile.runtime.program.compiled_program import Executor

pytestmark = pytest.mark.usefixtures("chosen_among_few")


PLANE, TEMP = "!stencil.field<[-3,2]x[-3,61]xf64>", "!stencil.temp<?x?xf64>"
BOX = "(<[-3, -3], [0, 58]>)"
CONSTANT = f"""
func.func @run(%a0: {PLANE}, %b0: {PLANE}, %c0: {PLANE}, %d0: {PLANE}, %e0: {PLANE}, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:5 = scf.for %t = %zero to %n step %one
      iter_args(%a = %a0, %b = %b0, %c = %c0, %d = %d0, %e = %e0)
      -> ({", ".join([PLANE] * 5)}) {{
    %half = stencil.apply() -> ({TEMP}) {{
      %x = arith.constant 0.5 : f64
      stencil.return %x : f64
    }}
    stencil.store %half to %b{BOX} : {TEMP} to {PLANE}
    %le = stencil.load %e : {PLANE} -> {TEMP}
    %la = stencil.load %a : {PLANE} -> {TEMP}
    %sum = stencil.apply(%x = %le : {TEMP}, %y = %la : {TEMP}) -> ({TEMP}) {{
      %0 = stencil.access %x[1, 2] : {TEMP}
      %1 = stencil.access %x[1, 1] : {TEMP}
      %2 = stencil.access %y[0, 2] : {TEMP}
      %3 = arith.addf %0, %1 : f64
      %4 = arith.addf %3, %2 : f64
      %5 = arith.constant 0.375 : f64
      %6 = arith.mulf %4, %5 : f64
      stencil.return %6 : f64
    }}
    stencil.store %sum to %d{BOX} : {TEMP} to {PLANE}
    scf.yield %b, %a, %d, %e, %c : {", ".join([PLANE] * 5)}
  }}
  return
}}
"""
LINE, TEMP1 = "!stencil.field<[-1,87]xf32>", "!stencil.temp<?xf32>"
TWICE = f"""
func.func @run(%a0: {LINE}, %b0: {LINE}, %c0: {LINE}, %d0: {LINE}, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:4 = scf.for %t = %zero to %n step %one iter_args(%a = %a0, %b = %b0, %c = %c0, %d = %d0)
      -> ({", ".join([LINE] * 4)}) {{
    %la = stencil.load %a : {LINE} -> {TEMP1}
    %lc = stencil.load %c : {LINE} -> {TEMP1}
    %v, %w = stencil.apply(%x = %la : {TEMP1}, %y = %lc : {TEMP1}) -> ({TEMP1}, {TEMP1}) {{
      %0 = stencil.access %x[-1] : {TEMP1}
      %1 = stencil.access %y[-1] : {TEMP1}
      %2 = arith.addf %0, %1 : f32
      %3 = arith.addf %0, %1 : f32
      stencil.return %2, %3 : f32, f32
    }}
    stencil.store %v to %b(<[0], [84]>) : {TEMP1} to {LINE}
    stencil.store %w to %d(<[0], [84]>) : {TEMP1} to {LINE}
    scf.yield %b, %a, %d, %c : {", ".join([LINE] * 4)}
  }}
  return
}}
"""
COPIED = TWICE.replace("stencil.return %2, %3", "stencil.return %1, %0")


def in_shared_memory(depth: int) -> tuple[ModulePass, ...]:
    """The default passes, with tiles of a warp and planes in shared memory."""
    changed: dict[type[ModulePass], ModulePass] = {
        DeviceTilingPass: DeviceTilingPass(
            tile=TileLevel.WARP, cells=(4,), lanes=(32,), warps=(1,), pack=2
        ),
        MultiQueueBufferingPass: MultiQueueBufferingPass(
            storage=Storage.SHARED, addressing=Addressing.FIXED
        ),
    }
    return tuple(changed.get(type(p), p) for p in tile_passes(depth))


def left(
    text: str, executor: Executor, passes: tuple[ModulePass, ...] | None, depth: int | None
) -> list[Any]:
    program = timetile.compile(
        text, executor=executor, depth=depth, passes=passes, halos="apart", cache=False
    )
    fields: list[Any] = []
    for p in program.parameters:
        if p.bounds is not None:
            shape = [high - low for low, high in zip(p.bounds.lb, p.bounds.ub)]
            kind = np.float64 if str(p.kind) == "f64" else np.float32
            fields.append(np.random.default_rng(p.position).random(shape).astype(kind))
    program(*fields, 6)
    return fields


CASES = [(CONSTANT, False), (TWICE, False), (TWICE, True), (COPIED, False), (COPIED, True)]
"""Programs, and whether planes lie in shared memory."""


@pytest.mark.covering
@pytest.mark.parametrize("executor", ["planes", "simt"])
@pytest.mark.parametrize(("text", "shared"), CASES)
def test_an_apply_may_return_one_value_twice_or_a_read_cell(
    text: str, shared: bool, executor: Executor
):
    passes, depth = (in_shared_memory(3), None) if shared else (None, 3)
    right = left(text, "cpu", None, None)
    for a, b in zip(left(text, executor, passes, depth), right, strict=True):
        assert a.tobytes() == b.tobytes()
