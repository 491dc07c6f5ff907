"""Sweeps in parts: one long line, in a fixed order of terms, with equal bits on all executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any, TypeVar

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64

import timetile
from support.steps import noise
from timetile import Field, Scalar, coordinate, sweep
from timetile.dialects.temporal import SweepOp
from timetile.lowering.parted_layout import PartedLayout
from timetile.lowering.sweep_frames import SweepFrame
from timetile.passes.diagnostics import CompileError
from timetile.runtime.kernels.reducing import OLDEST_ARCH
from timetile.runtime.kernels.sweeping import sweep_module
from timetile.runtime.program.compiled_program import CompiledProgram, Executor

Change = TypeVar("Change")

LONG = 16 * 4096 + 4133
"""Places of a line with 18 sections, of two groups, and a part of a part."""

SHORT = 2 * 4096 + 77

LONGER = 257 * 4096 + 1
"""Places of a line of more than 256 sections, which have three levels of words."""


def before(
    changes: Sequence[Change], join: Callable[[Change, Change], Change]
) -> list[Change | None]:
    """The change of all before each, by the definition: of larger groups, then of the own group."""
    if len(changes) <= 1:
        return [None] * len(changes)
    groups = [changes[k : k + 16] for k in range(0, len(changes), 16)]
    larger = before([reduce(join, group) for group in groups], join)
    found: list[Change | None] = []
    for group, outer in zip(groups, larger):
        own: Change | None = None
        for change in group:
            both = [each for each in (outer, own) if each is not None]
            found.append(reduce(join, both) if both else None)
            own = change if own is None else join(own, change)
    return found


def summed(cells: Sequence[Any], first: Any) -> list[Any]:
    """Sums of cells behind a first value, in parts."""
    parts = [cells[k : k + 16] for k in range(0, len(cells), 16)]
    found: list[Any] = []
    totals = [reduce(lambda a, b: a + b, part) for part in parts]
    for part, change in zip(parts, before(totals, lambda a, b: a + b)):
        value = first if change is None else first + change
        for cell in part:
            found.append(value := cell + value)
    return found


def running(kind: str, line: str, cell: str, box: str = "[1], [{}]", at: int = -1) -> str:
    """A program with a sweep of a field of a type, whose cell adds, say."""
    way = "ascending" if at < 0 else "descending"
    return f"""
func.func private @cell(%a: {kind}, %b: {kind}) -> {kind} {{
  %c = {cell} : {kind}
  func.return %c : {kind}
}}
func.func @run(%s: !stencil.field<{line}x{kind}>, %u: !stencil.field<{line}x{kind}>) {{
  temporal.sweep %s = @cell(%s[{at}], %u[0]) along 0 {way} in <{box}>
  func.return
}}
"""


@cache
def sums(places: int, executor: Executor) -> CompiledProgram:
    """Sums of a line of FP32."""
    text = running(
        "f32",
        f"[0,{places + 1}]",
        "arith.addf %b, %a fastmath<reassoc>",
        box=f"[1], [{places + 1}]",
    )
    return timetile.compile(text, executor=executor, cache=False)


def swept(program: CompiledProgram) -> SweepOp:
    """The sweep of a program."""
    (op,) = (op for op in program.module.walk() if isinstance(op, SweepOp))
    return op


@cache
def wanted(places: int) -> bytes:
    """The sums of a line by the definition."""
    u = noise(places + 1).astype(np.float32)
    return np.array([u[0], *summed(list(u[1:]), u[0])], np.float32).tobytes()


@pytest.mark.parametrize(
    ("executor", "places"),
    [("numpy", LONG), ("cpu", LONG), ("simt", LONG), ("planes", SHORT), ("ptx", SHORT)],
)
def test_sums_of_parts_have_the_order_of_the_definition(executor: Executor, places: int):
    u = noise(places + 1).astype(np.float32)
    s = u.copy()
    sums(places, executor)(s, u)
    assert s.tobytes() == wanted(places)
    assert s.tobytes() != np.cumsum(u, dtype=np.float32).tobytes()


def test_groups_of_groups_of_blocks_hand_their_sums_on():
    u = noise(LONGER + 1).astype(np.float32)
    found: list[bytes] = []
    for executor in ("simt", "numpy"):
        s = u.copy()
        sums(LONGER, executor)(s, u)
        found.append(s.tobytes())
    assert len(SweepFrame.of(swept(sums(LONGER, "simt"))).levels) == 3
    assert found[0] == found[1]


@pytest.mark.parametrize("executor", ["numpy", "simt", "ptx"])
def test_a_linear_recurrence_joins_factors_and_sums(executor: Executor):
    @timetile.stencil
    def decay(u: Field, v: Field, k: Scalar):
        with sweep(axis=0, descending=True):
            v.next = (k + u[0]) * v.next[1] + coordinate(0) * u[1]

    u, k = noise(SHORT), 0.25
    made = decay.on(executor=executor, fp_reassoc="on", fp_contract="off", cache=False)
    found = made.advance({"u": u, "v": np.ones(SHORT)}, steps=1, k=k)["v"]
    pairs = [(k + float(u[i]), i * float(u[i + 1])) for i in range(SHORT - 2, -1, -1)]
    parts = [pairs[n : n + 16] for n in range(0, len(pairs), 16)]

    def join(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
        return two[0] * one[0], two[0] * one[1] + two[1]

    result = [1.0]
    for part, change in zip(parts, before([reduce(join, part) for part in parts], join)):
        value = 1.0 if change is None else change[0] * 1.0 + change[1]
        for a, b in part:
            result.append(value := a * value + b)
    assert np.array_equal(found, np.array(result[::-1]))


@pytest.mark.parametrize("executor", ["simt", "cpu"])
def test_sums_of_integers_are_cut_without_permission(executor: Executor):
    text = running("i32", "[0,5000]", "arith.addi %a, %b", box="[1], [5000]")
    program = timetile.compile(text, executor=executor, cache=False)
    assert swept(program).parts is not None
    u = np.arange(5000, dtype=np.int32)
    s = u.copy()
    program(s, u)
    assert np.array_equal(s, np.cumsum(u, dtype=np.int32))


LINES = [
    ("f32", "f32", 1, 3, 4096, "simt"),  # the last vector belongs to the block in part
    ("f32", "f16", -1, 2, 4099, "ptx"),  # narrow cells are loaded one by one
    ("f64", "f64", -1, 1, 8192 - 5, "simt"),
    ("i64", "i64", 1, 2, 4097, "simt"),
    ("i32", "i32", 1, 1, 7, "simt"),  # fewer places than a part
]
"""Types of results and cells read, direction, first place, places and executor of a line."""


@pytest.mark.parametrize(("kind", "read", "at", "first", "places", "executor"), LINES)
def test_lines_begin_and_end_anywhere_in_a_vector(
    kind: str, read: str, at: int, first: int, places: int, executor: Executor
):
    add = "addf" if kind[0] == "f" else "addi"
    end, way = first + places, "ascending" if at < 0 else "descending"
    text = f"""
func.func private @cell(%a: {kind}, %b: {kind}, %c: {kind}) -> {kind} {{
  %d = arith.{add} %b, %c : {kind}
  %e = arith.{add} %a, %d : {kind}
  func.return %e : {kind}
}}
func.func @run(
    %s: !stencil.field<[0,{end + 1}]x{kind}>, %u: !stencil.field<[0,{end + 2}]x{read}>) {{
  temporal.sweep %s = @cell(%s[{at}], %u[1], %s[0]) along 0 {way} parts in <[{first}], [{end}]>
  func.return
}}
"""
    types = {
        "f32": np.float32,
        "f16": np.float16,
        "f64": np.float64,
        "i32": np.int32,
        "i64": np.int64,
    }
    cells = (8 * noise(end + 1)).astype(types[kind]), (8 * noise(end + 2)).astype(types[read])
    found: list[bytes] = []
    for each in (executor, "numpy"):
        program = timetile.compile(text, executor=each, cache=False)
        s, u = cells[0].copy(), cells[1].copy()
        for _ in range(2):
            program(s, u)
        found.append(s.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(("first", "places", "executor"), [(3, 4097, "simt"), (2, 12293, "simt")])
def test_blocks_of_two_sections_go_down_from_anywhere_in_a_vector(
    first: int, places: int, executor: Executor
):
    end = first + places
    text = running(
        "f32", f"[0,{end + 1}]", "arith.addf %b, %a fastmath<reassoc>", f"[{first}], [{end}]", at=1
    )
    u, found = noise(end + 1).astype(np.float32), list[bytes]()
    for each in (executor, "numpy"):
        program = timetile.compile(text, executor=each, cache=False)
        s = u.copy()
        for _ in range(2):
            program(s, u)
        found.append(s.tobytes())
        assert SweepFrame.of(swept(program)).sections == 2
    assert found[0] == found[1]


def test_slots_of_vectors_are_different_and_parts_meet_each_bank_once():
    for kind, shift, sections in ((f32, 1, 2), (f64, 0, 1)):
        layout = PartedLayout(kind, shift, sections)
        slots = [layout.slot(vector) for vector in range(layout.vectors + 1)]
        assert sorted(slots) == list(range(layout.vectors + 1))
        for place in range(layout.row):
            rows = [layout.slot(row * layout.row + place) % 8 for row in range(24, 32)]
            assert len(set(rows)) == 8
        assert [piece.width for piece in layout.pieces()] == (
            [1, 2, 4, 4, 4, 1] if kind == f32 else [2] * 8
        )


def test_blocks_wait_for_fewer_than_16_words_of_each_level():
    def words(places: int) -> tuple[int, int, int, list[int]]:
        frame = SweepFrame.of(swept(sums(places, "numpy")))
        text = str(sweep_module(frame, OLDEST_ARCH))
        return frame.grid, text.count("simt.post"), text.count("simt.take"), frame.levels

    assert words(4096) == (1, 0, 0, [])
    # Two sections a block, with a message each.
    assert words(SHORT) == (2, 1, 1, [2])
    assert words(LONG) == (9, 2, 2, [2, 20])
    assert words(1 << 24)[:3] == (2048, 3, 4)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("arith.addf %a, %b", "allow another order with fp_reassoc=on, and the line goes on"),
        ("arith.subf %b, %a", "write the cell as one of these"),
    ],
)
def test_a_long_line_of_one_thread_has_a_remark(
    cell: str, said: str, caplog: pytest.LogCaptureFixture
):
    text = running("f64", "[0,5000]", cell, box="[1], [5000]")
    program = timetile.compile(text, executor="numpy", cache=False)
    assert swept(program).parts is None
    assert said in caplog.text and "the line is work for a single thread" in caplog.text


def test_explain_tells_of_parts():
    (sweep,) = sums(SHORT, "numpy").explain().sweeps
    assert (sweep.parts, sweep.blocks, sweep.threads) == (517, 2, 256) and not sweep.advice
    assert "a thread for each of 517 parts of 16 places" in str(sums(SHORT, "numpy").explain())


def test_parts_of_another_cell_are_refused():
    text = running("f64", "[0,5000]", "arith.subf %b, %a", box="[1], [5000]")
    text = text.replace("ascending in", "ascending parts in")
    with pytest.raises(CompileError) as refused:
        timetile.compile(text, executor="numpy", cache=False)(np.ones(5000), np.ones(5000))
    assert "a * before + b of the value before; leave out parts" in str(refused.value)
