"""
Steps too large for tiles: kernels that read every tap from memory, a step in as many kernels as
needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from xdsl.passes import ModulePass

import timetile
from support.catalogue import star, sum_program
from support.compare import assert_as_unfused
from support.description import Box, Buffer, Element, Program, Store, Update, random_inputs
from support.executors import compiled_on, kernel_executors
from support.expressions import Expression, Offset, Tap, weighted_sum
from support.generate import programs
from support.programs import program_text
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import LoadOp
from timetile.lowering.pipelines import tile_passes
from timetile.passes.scheduling.choose_schedule import ChooseSchedulePass
from timetile.passes.tiling.device_tiling import DeviceTilingPass
from timetile.runtime.kernels.loops import loops_of

# Bits do not depend on the choice: `test_part_schedules.py` looks at the assembler's part in it.
pytestmark = pytest.mark.usefixtures("chosen_by_model")


def memory_passes() -> tuple[ModulePass, ...]:
    """The default passes, with steps always read from memory."""
    return tuple(
        DeviceTilingPass(reads="memory") if isinstance(item, DeviceTilingPass) else item
        for item in tile_passes(depth=1)
        if not isinstance(item, ChooseSchedulePass)
    )


def check(
    program: Program, steps: int, passes: tuple[ModulePass, ...] | None = None
) -> list[LoopOp]:
    """
    Every executor of kernels ends like the unfused program; returns the loops with their kernels.
    """
    inputs = random_inputs(program, seed=steps)
    loops: list[LoopOp] = []
    options: Any = {"passes": passes, "fp_contract": "off", "cache": False}
    for compiled in compiled_on(kernel_executors(), program_text(program), **options):
        assert_as_unfused(compiled, program, inputs, steps, compiled.executor)
        loops = loops_of(compiled.kernels.tiled)
    return loops


@given(program=programs(), steps=st.integers(0, 9))
def test_drawn_programs_keep_their_bits_where_cells_are_read_from_memory(
    program: Program, steps: int
):
    note(program_text(program))
    for loop in check(program, steps, memory_passes()):
        module = loop.get_toplevel_object()
        loads = [op for op in module.walk() if isinstance(op, LoadOp)]
        assert all(load.offset is not None for load in loads)


def chain(updates: int, reach: Offset, domain: tuple[int, ...], element: Element) -> Program:
    """
    Each update reads results of the update before on both sides; the last update writes the first
    update's buffer.
    """
    bounds = Box.of(domain).grown(reach, reach)
    names = [f"b{k}" for k in range(updates)]
    back = tuple(-distance for distance in reach)
    here = (0,) * len(domain)
    steps = [
        Update(
            (weighted_sum({back: 0.25, here: 0.5, reach: 0.25}, names[k - 1]),),
            (Store(0, names[k], Box.of(domain)),),
        )
        for k in range(updates)
    ]
    buffers = tuple(Buffer(name, bounds, element) for name in names)
    return Program(element, buffers, tuple(names), tuple(range(updates)), tuple(steps))


def in_place(domain: tuple[int, ...], reach: int) -> Program:
    """Two pairs of coupled fields; each adds to a cell a distant cell of the other."""
    bounds = Box.of(domain).grown((reach,) * len(domain), (reach,) * len(domain))

    def added(own: str, other: str) -> Expression:
        ends = {o: 0.01 for o in star(len(domain), reach) if max(map(abs, o)) == reach}
        return Tap(own, (0,) * len(domain)) * 0.5 + weighted_sum(ends, other)

    updates = tuple(
        Update((added(a, b),), (Store(0, a, Box.of(domain)),))
        for a, b in (("v", "s"), ("w", "s"), ("s", "v"))
    )
    buffers = tuple(Buffer(name, bounds, "f32") for name in "vws")
    return Program("f32", buffers, ("v", "w", "s"), (0, 1, 2), updates)


@dataclass(frozen=True)
class Wide:
    """A program too large for tiles, and the number of kernels of a step."""

    name: str
    program: Program
    parts: int
    steps: int = field(default=3)


WIDE = (
    Wide(
        "a line of 600 cells on both sides", sum_program("f64", [(-600,), (0,), (600,)])((70,)), 1
    ),
    Wide("a plane of 200 columns", sum_program("f32", [(0, -200), (1, 0), (0, 200)])((9, 37)), 1),
    Wide("coupled updates", chain(2, (0, 0, 40), (5, 6, 37), "f64"), 2),
    Wide("many updates", chain(12, (1, 1, 1), (3, 5, 34), "f64"), 12, 2),
    Wide("in place", in_place((3, 4, 35), 40), 2),
)


@pytest.mark.parametrize("wide", WIDE, ids=lambda wide: wide.name)
def test_steps_too_large_for_tiles_are_cut_into_parts_with_reads_from_memory(wide: Wide):
    (loop,) = check(wide.program, wide.steps)
    assert len(loop.kernel_names) == wide.parts
    assert loop.depth_list == (1,)
    assert loop.schedule is not None and loop.schedule.data.reads_memory


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(
    ("rank", "radius", "domain"),
    [
        (3, 8, (9, 10, 35)),
        (3, 6, (7, 9, 33)),
        (2, 32, (40, 70)),
        (2, 17, (33, 45)),
        (1, 64, (300,)),
    ],
)
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_stars_of_a_large_radius_keep_their_bits(
    rank: int, radius: int, domain: tuple[int, ...], element: Element
):
    """Every chosen schedule lowers, and computes the bits of the unfused program."""
    check(sum_program(element, star(rank, radius))(domain), 2)


@pytest.mark.parametrize("depth", [2, 7])
def test_a_depth_that_no_tile_holds_gives_way(depth: int, caplog: pytest.LogCaptureFixture):
    program = sum_program("f64", [(0, -200), (0, 200)])((9, 37))
    compiled = timetile.compile(
        program_text(program), executor="planes", depth=depth, fp_contract="off", cache=False
    )
    assert_as_unfused(compiled, program, random_inputs(program, seed=1), 5)
    assert f"no tile holds {depth} steps at once" in caplog.text


def test_an_update_overwritten_before_any_read_is_left_out():
    """
    A result without a reader is left out; a result read by the next update at the cell itself
    stays.
    """
    box = Box.of((5, 40))
    bounds = box.grown((1, 1), (1, 1))

    def update(target: str, cell: Expression) -> Update:
        return Update((cell,), (Store(0, target, box),))

    b, b_here, c_beside = Tap("b", (0, 0)), Tap("b", (0, 0)) * 0.5, Tap("c", (1, -1)) * 0.25
    updates = (
        update("b", b * 3.0),
        update("b", c_beside),
        update("b", b_here + c_beside),
        update("a", c_beside),
        update("a", Tap("c", (0, 1)) * 0.75),
    )
    buffers = tuple(Buffer(name, bounds, "f64") for name in "abc")
    program = Program("f64", buffers, ("a", "b", "c"), (1, 2, 0), updates)
    check(program, 4, memory_passes())
