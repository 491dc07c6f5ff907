"""Canonicalization changes no bit of a program's fields, and ends."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass

import timetile
from support.sizes import seeds
from timetile.dialects.temporal import LoopOp, UpdateOp
from timetile.lowering.pipelines import thread_passes
from timetile.runtime.loading.modules import load_text

FIELD, CELLS = "!stencil.field<[0,12]xf64>", 12
NAMES = ("u", "v", "w")
CELL_FUNCTIONS = """
func.func private @same(%c: f64, %d: f64) -> f64 {
  func.return %c : f64
}
func.func private @mean(%c: f64, %d: f64) -> f64 {
  %half = arith.constant 0.5 : f64
  %s = arith.addf %c, %d : f64
  %m = arith.mulf %s, %half : f64
  func.return %m : f64
}
"""
BOUNDARIES = (
    "",
    " outside #temporal.boundary<keep, keep>",
    " outside #temporal.boundary<mirror, mirror>",
)


def drawn_update(random: Random, written: str, readable: tuple[str, ...]) -> str:
    """An update over a random box; boxes come from a few nested boxes."""
    low, high = random.choice([(2, 10), (2, 6), (3, 9)])
    first, second = random.choice(readable), random.choice(readable)
    near = 0 if written in (first, second) else random.choice([-1, 0, 1])
    boundary = random.choice(BOUNDARIES) if (low, high) == (2, 10) else ""
    cell = random.choice(["same", "same", "mean"])
    return (
        f"    temporal.update %{written} = @{cell}(%{first}[{near}], %{second}[0]) in "
        f"<[{low}], [{high}]>{boundary}"
    )


def drawn_program(seed: int) -> str:
    """
    A loop of random updates over two rotating buffers, a fixed buffer, and a buffer of the
    function.
    """
    random = Random(seed)
    updates = [
        drawn_update(random, random.choice((*NAMES, "x")), random.choice([NAMES, (*NAMES, "x")]))
        for _ in range(random.randint(1, 6))
    ]
    loop = "\n".join(updates)
    kinds = ", ".join([FIELD] * 4)
    return f"""{CELL_FUNCTIONS}
func.func @run(%n: index, %A: {FIELD}, %B: {FIELD}, %C: {FIELD}) {{
  %X = temporal.scratch : {FIELD}
  temporal.loop %n (%u = %A, %v = %B, %w = %C, %x = %X) rotate [1, 0, 2, 3] {{
    temporal.update %x = @same(%u[0], %u[0]) in <[0], [12]>
{loop}
  }} : {kinds}
  func.return
}}
"""


def canonical(text: str) -> ModuleOp:
    """The program of a text, canonicalized."""
    context = Context()
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    module = load_text(text)
    CanonicalizePass().apply(context, module)
    module.verify()
    return module


def updates_in(module: ModuleOp) -> int:
    return sum(isinstance(op, UpdateOp) for op in module.walk())


def left(text: str, steps: int) -> list[NDArray[np.float64]]:
    """The fields after a program."""
    random = np.random.default_rng(7)
    fields = [random.random(CELLS) for _ in NAMES]
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(steps, *fields)
    return fields


@pytest.mark.parametrize("seed", seeds(60))
def test_a_canonical_program_leaves_equal_bits(seed: int):
    text = drawn_program(seed)
    module = canonical(text)
    if not any(isinstance(op, LoopOp) for op in module.walk()) or not updates_in(module):
        before = left(text, 0)
        found = left(text, 3)
    else:
        before, found = left(text, 3), left(str(module), 3)
    for right, other in zip(before, found, strict=True):
        assert right.tobytes() == other.tobytes(), text


@pytest.mark.parametrize("seed", seeds(60))
def test_a_canonical_program_is_canonical(seed: int):
    text = str(canonical(drawn_program(seed)))
    assert str(canonical(text)) == text


def test_drawn_programs_have_updates_without_effect():
    """
    The law above is about something: in the first programs a third of the updates have no effect.
    """
    texts = [drawn_program(seed) for seed in range(15)]
    before, after = (
        sum(updates_in(module) for module in modules)
        for modules in (map(load_text, texts), map(canonical, texts))
    )
    assert after <= before * 2 // 3, f"{after} of {before} updates are left"


def threads_leave(passes: tuple[ModulePass, ...]) -> bytes:
    """
    The fields after the heat program of the examples, with given passes down to the code of
    threads.
    """
    text = (Path(__file__).parents[2] / "examples" / "heat2d.mlir").read_text()
    program = timetile.compile(
        text, executor="simt", depth=2, passes=passes, halos="apart", cache=False
    )
    random = np.random.default_rng(3)
    u, v = random.random((258, 258)), random.random((258, 258))
    program(u, v, 3)
    return u.tobytes() + v.tobytes()


def test_the_canonical_code_of_threads_leaves_equal_bits():
    passes = thread_passes()
    assert threads_leave((*passes, CanonicalizePass())) == threads_leave(passes)
