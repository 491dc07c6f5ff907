"""
Steps with sweeps in parts of a domain end with the bits of one process: drawn sweeps along any
axis, on ranks and on simulated GPUs. No cut crosses the axis of a sweep.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import numpy as np
import pytest

import timetile
from support.drawn_models import How
from support.drawn_sweeps import swept_model
from support.few_schedules import few_schedules
from support.ranks import Ranks, copies
from support.simulated import on_simulated
from support.sizes import seeds
from test_steps_in_parts import any_bits, check, check_on_gpus, found_by_ranks
from timetile import Field, Scalar, sweep
from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import CompileError
from timetile.runtime.explain.exchange_section import exchange_section
from timetile.runtime.program.compiled_program import Executor

__all__ = ["any_bits"]

NOT_CUT = re.compile(
    "sweeps go along all axes of the domain|run on fewer ranks|in a sweep|a sweep begins|twice"
)
"""The only refusals of drawn steps: the last three are refused on one process, too."""


@timetile.stencil
def smooth(u: Field, row: Field, k: Scalar):
    """A step with a sweep only, which reads beside its lines, and a field of one axis."""
    with sweep(axis=0):
        u.next = k * u[0, 1] + (row[None, 0] - k) * u.next[-1, 0]


@timetile.stencil
def table(u: Field):
    """Sweeps along all axes."""
    with sweep(axis=0):
        u.next = u[0, 0] + u.next[-1, 0]
    with sweep(axis=1):
        u.next = u.next[0, 0] + u.next[0, -1]


def case() -> tuple[str, list[Any], list[Any]]:
    """The program of `smooth`, arguments, and the arguments after a run on one process."""
    text, random = str(smooth.module((9, 14))), np.random.default_rng(1)
    program = timetile.compile(text, executor="numpy", fp_contract="off", cache=False)
    arguments = [
        random.random(each.shape) if each.bounds is not None else 4 if each.is_steps else 0.3
        for each in program.parameters
    ]
    expected = copies(arguments)
    program(*expected)
    return text, arguments, expected


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    """All arrays have equal bits."""
    for array, right in zip(found, expected, strict=True):
        assert np.asarray(array).tobytes() == np.asarray(right).tobytes()


@pytest.mark.parametrize("seed", seeds(24))
def test_drawn_sweeps_keep_their_bits_on_ranks(seed: int, monkeypatch: pytest.MonkeyPatch):
    executor: Executor = "numpy" if seed % 4 else "cpu"
    drawn, how = swept_model(Random(2 * seed)), How(executor, 1, 1 + seed % 3)
    try:
        results = found_by_ranks(drawn, how, 2 + seed % 3, monkeypatch)
    except CompileError as refusal:
        assert NOT_CUT.search(str(refusal))
        return
    for found in results:
        check(drawn, how, found)


@pytest.mark.usefixtures("any_bits")
@pytest.mark.parametrize("seed", seeds(16))
def test_drawn_sweeps_keep_their_bits_on_several_gpus(seed: int, monkeypatch: pytest.MonkeyPatch):
    try:
        check_on_gpus(swept_model(Random(seed)), seed, monkeypatch)
    except CompileError as refusal:
        assert NOT_CUT.search(str(refusal))


def test_parts_lie_beside_each_other_across_the_axis_of_a_sweep():
    text, arguments, expected = case()
    found, program = Ranks(3, executor="cpu").run(text, arguments)
    assert program.decomposition.counts == (1, 3)
    for own in found:
        assert_equal(own, expected)
    cuts = Decomposition(((1, 9), (0, 2, 13)))
    for own in Ranks(2, cuts).run(text, arguments)[0]:
        assert_equal(own, expected)


def test_a_field_of_one_axis_is_read_by_sweeps_on_several_gpus():
    text, arguments, expected = case()
    with few_schedules():
        program, world = on_simulated(text, 2, 1)
    program(*arguments)
    assert_equal(arguments, expected)
    assert world.pulled, "lines read cells beside them"
    said = next(fact for fact in exchange_section(program, 2).facts if fact.label == "exchanges")
    assert said.text.startswith("in every step")
    program.close()


def test_cuts_through_lines_of_sweeps_are_refused():
    text, arguments, _ = case()
    with pytest.raises(CompileError) as refusal:
        Ranks(2, (2, 1)).run(text, arguments)
    said = (
        "a sweep along axis 0 goes through whole lines, and the parts (2, 1) cut them; cut another "
        "axis, as parts=(1, 2) does, or leave parts out"
    )
    assert said in str(refusal.value)
    with pytest.raises(CompileError) as refusal:
        on_simulated(str(table.module((9, 14))), 2)
    said = (
        "sweeps go along all axes of the domain, and 2 parts would cut lines of a sweep; run the "
        "program in one process, on one GPU"
    )
    assert said in str(refusal.value)


SHARED = """
!field = !stencil.field<[0,6]x[0,8]xf64>
!line = !stencil.field<[0,6]xf64>
func.func private @faded(%a: f64, %w: f64) -> f64 {
  %m = arith.mulf %a, %w : f64
  func.return %m : f64
}
func.func @shared(%A: !field, %w: !line, %n: index) {
  %wide = temporal.broadcast %w axes [0] : !line to !field
  temporal.sweep %A = @faded(%A[-1, 0], %wide[0, 0]) along 0 ascending in <[1, 0], [6, 8]>
  %r = temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @faded(%a[0, 0], %wide[0, 0]) in <[0, 0], [6, 8]>
  } : !field
  func.return
}
"""


def test_a_field_spread_for_a_sweep_and_a_loop_is_refused():
    program, _ = on_simulated(SHARED, 2, parts=(1, 2))
    with pytest.raises(CompileError, match="a sweep and a time loop read one spread field"):
        program(np.ones((6, 8)), np.ones(6), 3)
