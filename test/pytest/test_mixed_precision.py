"""
Fields of single precision with cells computed in double precision: partial sums, and the values
that replace them outside the bounds, are of another type than the planes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import timetile
from support.executors import kernel_executors
from support.schedules import Schedule, block_row, warp_row
from timetile.dialects.tile import Form, Storage
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

SHAPE, STEPS = (19, 49), 7
STAR = ((-1, 0), (0, -1), (0, 0), (0, 1), (1, 0))
BOX = tuple(product((-1, 0, 1), repeat=2))

SCHEDULES = [
    Schedule("whole", warp_row()),
    Schedule("rows", warp_row(), form=Form.ROWS),
    Schedule("block", block_row(), form=Form.ROWS),
    Schedule(
        "shared", warp_row(), Buffering(storage=Storage.SHARED), streaming=None, form=Form.ROWS
    ),
]


def program(offsets: tuple[tuple[int, int], ...]) -> str:
    """A weighted sum of the neighbours, extended before and truncated after."""
    field = f"!stencil.field<[-1,{SHAPE[0] + 1}]x[-1,{SHAPE[1] + 1}]xf32>"
    temp = "!stencil.temp<?x?xf32>"
    lines = [f"%w = arith.constant {0.96 / len(offsets)!r} : f64"]
    for n, (y, x) in enumerate(offsets):
        lines.append(f"%x{n} = stencil.access %x[{y}, {x}] : {temp}")
        lines.append(f"%e{n} = arith.extf %x{n} : f32 to f64")
        lines.append(f"%m{n} = arith.mulf %e{n}, %w : f64")
        lines.append(
            f"%s{n} = arith.addf %{'s' if n > 1 else 'm'}{n - 1}, %m{n} : f64" if n else ""
        )
    lines.append(f"%o = arith.truncf %s{len(offsets) - 1} : f64 to f32")
    body = "\n".join(lines)
    return f"""func.func @run(%a: {field}, %b: {field}, %steps: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one
      iter_args(%u = %a, %v = %b) -> ({field}, {field}) {{
    %in = stencil.load %u : {field} -> {temp}
    %out = stencil.apply(%x = %in : {temp}) -> ({temp}) {{
      {body}
      stencil.return %o : f32
    }}
    stencil.store %out to %v(<[0, 0], [{SHAPE[0]}, {SHAPE[1]}]>) : {temp} to {field}
    scf.yield %v, %u : {field}, {field}
  }}
  func.return
}}"""


def results(text: str, executor: Executor, schedule: Schedule | None = None) -> list[bytes]:
    """The bits of both buffers after some steps from random bits."""
    generator = np.random.default_rng(5)
    shape = tuple(n + 2 for n in SHAPE)
    fields = [generator.random(shape, dtype=np.float32) for _ in range(2)]
    passes = None if schedule is None else schedule.passes(3)
    compiled = timetile.compile(text, executor=executor, depth=3, passes=passes, cache=False)
    compiled(*fields, STEPS)
    return [field.tobytes() for field in fields]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(
    "schedule", [None, *SCHEDULES], ids=lambda s: "default" if s is None else s.name
)
@pytest.mark.parametrize("offsets", [STAR, BOX], ids=["star", "box"])
def test_sums_wider_than_their_fields_agree(
    offsets: tuple[tuple[int, int], ...], schedule: Schedule | None, executor: Executor
):
    text = program(offsets)
    assert results(text, executor, schedule) == results(text, "cpu")
