"""Kernels whose code for the rim also serves the ends of the tiles inside."""

from __future__ import annotations

import numpy as np

import timetile
from timetile.runtime.program.compiled_program import CompiledProgram


@timetile.stencil
def limited(u: timetile.Field, w: timetile.Field):
    """A quotient, so that the rim has one loop, and a field along the rows alone."""
    here = u[0, 0]
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * here
    u.next[1:-1, 1:-1] = here + 0.1 * w[None, 0] * around / (1 + here * here)


def after(compiled: CompiledProgram) -> list[bytes]:
    """The bytes of all fields after three steps from random cells."""
    fields = [p.bounds for p in compiled.parameters if p.bounds is not None]
    shapes = [[h - low for low, h in zip(b.lb, b.ub)] for b in fields]
    arrays = [np.random.default_rng(k).random(shape) for k, shape in enumerate(shapes)]
    compiled(*arrays, 3)
    return [array.tobytes() for array in arrays]


def test_no_tile_reads_outside_a_field_without_the_streaming_axis():
    """Cells read ahead of the loops are read by tiles on the rim, too, beyond the field's ends."""
    text = str(limited.module((5, 142), "float64"))
    interpreted = timetile.compile(text, executor="simt", depth=2, halos="apart", cache=False)
    judge = timetile.compile(text, executor="numpy", halos="apart", cache=False)
    assert after(interpreted) == after(judge)
