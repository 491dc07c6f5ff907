"""
No read and no store lies outside a field, at any depth, under any schedule, on any side: fields
have separate bounds, and may lack cells of other fields. The executor `simt` reports every access
outside a field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, reject
from hypothesis import strategies as st

import timetile
from support.compare import assert_as_unfused, check_compiled
from support.description import Box, Buffer, Program, Store, Update, random_inputs
from support.executors import compiled_on, executors, kernel_executors
from support.expressions import Expression, Tap
from support.generate_bounds import programs_of_bounds, schedules_of_bounds
from support.programs import program_text
from support.schedules import Schedule, block_plane, block_row, named, warp_row
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp, Published, Storage
from timetile.lowering.tile_to_gpu import fields
from timetile.passes.analysis.geometry.field_access import are_cells_tested, is_plane_tested
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.plane_geometry import FieldShape
from timetile.passes.diagnostics import CompileError
from timetile.passes.tiling.multi_queue_buffering import MultiQueueBufferingPass as Buffering
from timetile.passes.tiling.register_streaming import RegisterStreamingPass as Streaming
from timetile.runtime.executors import planes
from timetile.runtime.executors.homes import PlaneError
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.host.halos import HaloFrame, halos_differ
from timetile.runtime.program.compiled_program import Executor

pytestmark = [pytest.mark.covering, pytest.mark.usefixtures("chosen_among_few")]

Offset = tuple[int, ...]


def tap_sum(name: str, *offsets: Offset) -> Expression:
    """A weighted sum of a field's cells."""
    total: Expression = Tap(name, offsets[0]) * 0.5
    for number, offset in enumerate(offsets[1:]):
        total = total + Tap(name, offset) * (0.3 - 0.1 * number)
    return total


def update(cell: Expression, *stores: tuple[str, Box]) -> Update:
    return Update((cell,), tuple(Store(0, name, box) for name, box in stores))


def staggered() -> Program:
    """Fluxes between cells, each in a field of exactly the faces inside, and the changed cells."""
    cells = Box((0, 0), (11, 70))
    rows, columns = Box((1, 0), (11, 70)), Box((0, 1), (11, 70))
    inside = Box((1, 1), (10, 69))
    change = tap_sum("rows", (1, 0), (0, 0)) + tap_sum("columns", (0, 1), (0, 0))
    return Program(
        "f64",
        (
            Buffer("now", cells, "f64"),
            Buffer("next", cells, "f64"),
            Buffer("rows", rows, "f64"),
            Buffer("columns", columns, "f64"),
        ),
        ("now", "next"),
        (1, 0),
        (
            update(tap_sum("now", (-1, 0), (0, 0)), ("rows", rows)),
            update(tap_sum("now", (0, -1), (0, 0)), ("columns", columns)),
            update(Tap("now", (0, 0)) + change * 0.25, ("next", inside)),
        ),
    )


def stores_of_two_lengths() -> Program:
    """One result goes to all cells of a field and to the few cells of a shorter field."""
    line, short = Box((-1,), (9,)), Box((0,), (4,))
    return Program(
        "f64",
        (Buffer("now", line, "f64"), Buffer("next", line, "f64"), Buffer("short", short, "f64")),
        ("now", "next"),
        (1, 0),
        (update(tap_sum("now", (-1,), (0,)), ("next", Box((0,), (8,))), ("short", short)),),
    )


def first_covers_second() -> Program:
    """
    The second update looks a plane back and begins a plane later: no field has a plane before the
    first.
    """
    cells, out = Box((0, -1), (9, 41)), Box((0, 0), (9, 40))
    return Program(
        "f32",
        (Buffer("now", cells, "f32"), Buffer("next", cells, "f32"), Buffer("out", out, "f32")),
        ("now", "next"),
        (1, 0),
        (
            update(tap_sum("now", (0, -1), (0, 1)), ("next", out)),
            update(tap_sum("next", (-1, 0), (0, -1)), ("out", Box((1, 0), (9, 40)))),
        ),
    )


def behind_the_first_plane() -> Program:
    """
    Three buffers without a halo along the stream; the second update reads a plane behind its own
    plane.
    """
    cells, out = Box((0, -1, -1), (24, 9, 31)), Box((0, 0, 0), (24, 8, 30))
    turns = ("now", "next", "old")
    return Program(
        "f32",
        (*(Buffer(name, cells, "f32") for name in turns), Buffer("out", out, "f32")),
        turns,
        (1, 2, 0),
        (
            update(tap_sum("now", (0, 0, -1)) + tap_sum("old", (0, 0, 1)), ("next", out)),
            update(tap_sum("old", (-1, -1, 0), (0, -1, 0)), ("out", Box((1, 0, 0), (24, 8, 30)))),
        ),
    )


def only_the_last_planes() -> Program:
    """
    A field with the last planes, read by an update of these planes alone. A kernel loads planes of
    the field in all steps.
    """
    cells, inner = Box((0, -1, -1), (40, 9, 31)), Box((0, 0, 0), (40, 8, 30))
    last, turns = Box((30, 0, 0), (40, 8, 30)), ("now", "next", "old")
    return Program(
        "f32",
        (
            *(Buffer(name, cells, "f32") for name in turns),
            *(Buffer(name, last, "f32") for name in ("late", "out")),
        ),
        turns,
        (1, 2, 0),
        (
            update(tap_sum("now", (0, 0, -1)) + tap_sum("old", (0, 0, 1)), ("next", inner)),
            update(tap_sum("now", (-1, 0, 0)) + tap_sum("late", (0, 0, 0)), ("out", last)),
        ),
    )


def apart_from_the_bounds() -> Program:
    """
    A coefficient field lies beyond all written cells, with distant reads; a rotating buffer lies
    beyond, too.
    """
    cells, far = Box((0, 0), (8, 50)), Box((10, 3), (18, 53))
    return Program(
        "f64",
        (
            Buffer("now", Box((0, 0), (14, 50)), "f64"),
            Buffer("next", Box((0, 0), (14, 50)), "f64"),
            Buffer("far", far, "f64"),
        ),
        ("now", "next"),
        (1, 0),
        (update(tap_sum("now", (0, 0), (6, 0)) + tap_sum("far", (10, 3)), ("next", cells)),),
    )


def shorter_on_every_side() -> Program:
    """
    In a volume, fields without a layer on each side in turn, and a step with reads of all fields.
    """
    whole = Box((0, 0, 0), (6, 7, 40))
    low, high = Box((1, 1, 1), (6, 7, 40)), Box((0, 0, 0), (5, 6, 39))
    core = Box((1, 1, 1), (5, 6, 39))
    both = tap_sum("low", (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)) + tap_sum(
        "high", (0, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 0, -1)
    )
    return Program(
        "f32",
        (
            Buffer("now", whole, "f32"),
            Buffer("next", whole, "f32"),
            Buffer("low", low, "f32"),
            Buffer("high", high, "f32"),
        ),
        ("now", "next"),
        (1, 0),
        (
            update(tap_sum("now", (-1, 0, 0), (0, -1, 0), (0, 0, -1)), ("low", low)),
            update(tap_sum("now", (1, 0, 0), (0, 1, 0), (0, 0, 1)), ("high", high)),
            update(both * 0.2, ("next", core)),
        ),
    )


PROGRAMS: tuple[Callable[[], Program], ...] = (
    staggered,
    stores_of_two_lengths,
    first_covers_second,
    behind_the_first_plane,
    only_the_last_planes,
    apart_from_the_bounds,
    shorter_on_every_side,
)


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("make", PROGRAMS)
def test_fields_with_separate_bounds_keep_their_bits(
    make: Callable[[], Program], depth: int, executor: Executor
):
    check_compiled(make(), executor, depth, 2 * depth + 1)


ROWS = (
    Schedule("warps", warp_row(2), Buffering(ahead=3), planes=4),
    Schedule(
        "copies", block_row(2), Buffering(ahead=2), Streaming(what=Published.COPIES), planes=5
    ),
    Schedule("edges", block_row(1, 3), Buffering(ahead=0), Streaming(delay=1), planes=5),
    Schedule("rings", block_row(2), Buffering(storage=Storage.SHARED), streaming=None, planes=5),
)

WHOLE = Schedule(
    "whole columns",
    block_plane((2, 1), (4, 1)),
    Buffering(ahead=2),
    Streaming(what=Published.COPIES),
    planes=24,
)

PLANES = (
    Schedule("copies", block_plane((2, 1), (2, 1)), Buffering(ahead=2), planes=2),
    Schedule("edges", block_plane((2, 1), (4, 1)), Buffering(ahead=0), planes=3),
)


def schedules_of(program: Program) -> tuple[Schedule, ...]:
    return (
        PLANES
        if program.rank == 3
        else ROWS
        if program.rank == 2
        else (Schedule("w", warp_row(1), planes=1),)
    )


CASES = [(make, schedule) for make in PROGRAMS for schedule in schedules_of(make())]


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("executor", kernel_executors())
@pytest.mark.parametrize(
    ("make", "schedule"), CASES, ids=[f"{make.__name__}-{named(how)}" for make, how in CASES]
)
def test_fields_with_separate_bounds_keep_their_bits_in_schedules_by_hand(
    make: Callable[[], Program], schedule: Schedule, executor: Executor
):
    check_compiled(make(), executor, 2, 5, schedule.passes(2))


def check_on(
    executors: Sequence[Executor], program: Program, steps: int, *, common: bool, **options: Any
) -> None:
    """A program, compiled once, ends on each executor like the unfused program."""
    text = program_text(program)
    inputs = random_inputs(program, seed=steps, common_halos=common)
    for compiled in compiled_on(executors, text, fp_contract="off", cache=False, **options):
        assert_as_unfused(compiled, program, inputs, steps, compiled.executor)


@given(
    program=programs_of_bounds(),
    depth=st.integers(1, 4),
    steps=st.integers(1, 9),
    common=st.booleans(),
)
def test_drawn_fields_of_any_bounds_keep_their_bits(
    program: Program, depth: int, steps: int, common: bool
):
    note(program_text(program))
    check_on(executors(), program, steps, common=common, depth=depth)


@given(data=st.data(), depth=st.integers(1, 2), steps=st.integers(1, 5), common=st.booleans())
def test_drawn_fields_of_any_bounds_keep_their_bits_in_any_schedule(
    data: st.DataObject, depth: int, steps: int, common: bool
):
    program = data.draw(programs_of_bounds())
    schedule: Schedule = data.draw(schedules_of_bounds(program.rank))
    note(program_text(program))
    passes = schedule.passes(depth)
    try:
        check_on(kernel_executors(), program, steps, common=common, depth=depth, passes=passes)
    except CompileError as error:
        # Small tiles may leave no room for the taps; nothing else may be refused.
        refused = ("leaves no cell of a tile", "reach further than the tile is wide")
        assert any(sentence in str(error) for sentence in refused)
        reject()


# The decision.


def geometries(program: Program, depth: int) -> list[Geometry]:
    """The geometries of a program's kernels, for streamed tiles."""
    compiled = timetile.compile(
        program_text(program), executor="planes", passes=ROWS[0].passes(depth), cache=False
    )
    return [
        Geometry(kernel) for kernel in compiled.kernels.tiled.ops if isinstance(kernel, KernelOp)
    ]


def test_where_a_field_has_all_cells_steady_loops_and_inner_tiles_test_nothing():
    cells = Box((-1, -1), (65, 4097))
    heat = Program(
        "f64",
        (Buffer("now", cells, "f64"), Buffer("next", cells, "f64")),
        ("now", "next"),
        (1, 0),
        (
            update(
                tap_sum("now", (-1, 0), (0, -1), (0, 1), (1, 0)), ("next", Box((0, 0), (64, 4096)))
            ),
        ),
    )
    for geometry in geometries(heat, 3):
        field = FieldShape.of(geometry.kernel.body.block.args[0])
        short = FieldShape((1, 1), field.upper)
        for lag in range(geometry.largest_lag + 1):
            assert is_plane_tested(geometry, field, lag, steady=False)
            assert not is_plane_tested(geometry, field, lag, steady=True)
            assert not is_plane_tested(geometry, field, lag, steady=False, stores=True)
        # Planes start at 0, and the first step of a steady loop has a plane of every lag.
        assert is_plane_tested(geometry, short, geometry.largest_lag, steady=True)
        assert is_plane_tested(geometry, short, 0, steady=False, stores=True)
        assert geometry.interior_cells(0)
        assert are_cells_tested(geometry, field, 0, interior=False)
        assert not are_cells_tested(geometry, field, 0, interior=True)
        assert not are_cells_tested(geometry, field, 0, interior=False, stores=True)
        assert are_cells_tested(geometry, short, 0, interior=False, stores=True)
        past = field.upper[1] - geometry.interior_cells(0).stop + 1
        assert are_cells_tested(geometry, field, 0, interior=True, far=past)


def untested(
    geometry: Geometry, shape: FieldShape, lag: int, *, steady: bool, stores: bool = False
) -> bool:
    """
    The decision if steady loops never tested a plane, as for fields with all planes of all
    accesses.
    """
    return not steady and is_plane_tested(geometry, shape, lag, steady=False, stores=stores)


def test_planes_reports_a_plane_that_a_field_has_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(planes, "is_plane_tested", untested)
    with pytest.raises(
        PlaneError, match=r"it accesses plane 0 of a field that has \[30, 40\), untested"
    ):
        check_compiled(only_the_last_planes(), "planes", 3, 7, WHOLE.passes(3))


def test_simt_reports_an_access_to_a_plane_that_a_field_has_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fields, "is_plane_tested", untested)
    with pytest.raises(SimtError, match=r"accesses cell -\d+ of a buffer"):
        check_compiled(only_the_last_planes(), "simt", 3, 7, WHOLE.passes(3))


def test_the_halo_of_a_field_without_some_written_cells_is_compared():
    """
    The loop writes cells 0 to 11 of other fields; the rotating buffers have cells 2 to 13, and
    updates write 4 to 9: all others are compared.
    """
    turns, other = Box((2,), (14,)), Box((0,), (12,))
    program = Program(
        "f32",
        (Buffer("now", turns, "f32"), Buffer("next", turns, "f32"), Buffer("other", other, "f32")),
        ("now", "next"),
        (1, 0),
        (
            update(tap_sum("now", (-1,), (1,)), ("next", Box((4,), (10,)))),
            update(tap_sum("other", (0,)), ("other", other)),
        ),
    )
    module = timetile.compile(program_text(program), executor="planes", cache=False).kernels.source
    (loop,) = [op for op in module.walk() if isinstance(op, LoopOp)]
    frame = HaloFrame.of(loop, 0)
    assert (frame.sizes, frame.low, frame.high) == ((12,), (2,), (8,))
    first = np.zeros(12, np.float32)
    for cell, differ in ((1, True), (2, False), (7, False), (8, True), (11, True)):
        second = first.copy()
        second[cell] = 1.0
        assert halos_differ(frame, first, second) is differ
