"""Kernels of sweeps: turns of several places, kept cells, masks, indices, and faults found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import timetile
from support.steps import noise
from support.swept import thomas, thomas_text
from timetile.dialects.temporal import SweepOp
from timetile.lowering import sweep_frames
from timetile.lowering.sweep_frames import PLACES_AHEAD, SweepFrame
from timetile.runtime.cache.store import Cache
from timetile.runtime.cli.emit import emitted
from timetile.runtime.executors.homes import PlaneError
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.explain.html import as_html
from timetile.runtime.kernels import sweeping
from timetile.runtime.kernels.assembler import assemble, assembler_version
from timetile.runtime.kernels.reducing import OLDEST_ARCH
from timetile.runtime.kernels.sweeping import sweep_image, sweep_module, sweep_text
from timetile.runtime.program.compiled_program import Executor


def sweeps_of(text: str) -> list[SweepOp]:
    """The sweeps of a program, with contracted cells."""
    program = timetile.compile(text, executor="numpy", cache=False)
    return [op for op in program.module.walk() if isinstance(op, SweepOp)]


@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize("places", [2, 3, 9, 10, 34, 42, 50])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_any_number_of_places_is_some_turns(places: int, element: str, executor: Executor):
    """
    Turns in a ring or asking for places ahead, turns that copy nothing more, and single places.
    """
    kind = {"f32": np.float32, "f64": np.float64}[element]
    u, c, d = (noise(places, 33).astype(kind) + kind(k) for k in range(3))
    wanted = thomas(u, c, d, kind(0.3), 0)
    text = thomas_text((places, 33), 0, element)
    timetile.compile(text, executor=executor, fp_contract="off", cache=False)(u, c, d, 0.3)
    assert np.array_equal(u, wanted[0]) and np.array_equal(c, wanted[1])


def test_a_thread_loads_the_cells_of_a_turn_at_once_and_keeps_its_own_results():
    ups = sweeps_of(thomas_text((81, 64), 0))
    up, down = (SweepFrame(op, PLACES_AHEAD) for op in ups)
    assert (up.threads, up.grid, up.places_of_turn, up.ahead) == (32, 2, 8, PLACES_AHEAD)
    text = str(sweep_module(up, OLDEST_ARCH))
    first, asking, turns = text.split("scf.for")
    # Lines are a multiple of a warp: no access has a mask. Two kept cells are loaded before.
    assert "mask" not in text and first.count("simt.load") == 2
    assert asking.count("simt.load") == asking.count("simt.prefetch") == 8
    assert asking.count("simt.store") == turns.count("simt.store") == 16
    assert "simt.prefetch" not in turns and turns.count("simt.load") == 8
    assert down.places_of_turn == 8 and down.carried == {down.op.targets[0]: 1}


def test_few_lines_have_a_ring_of_turns_in_shared_memory():
    up, down = (SweepFrame.of(op) for op in sweeps_of(thomas_text((321, 64), 0, "f32")))
    assert (up.ring, up.ahead, up.places_of_turn, up.shared_bytes) == (32, 0, 8, 32 * 8 * 32 * 4)
    assert (down.ring, down.shared_bytes) == (32, 32 * 8 * 2 * 32 * 4)
    text = str(sweep_module(up, OLDEST_ARCH))
    first, copying, last = text.split("scf.for")[1:]
    # Lines are a multiple of a warp: no access has a mask. Two kept cells are loaded before.
    assert "mask" not in text and first.count("simt.copy_async") == 8
    assert copying.count("simt.copy_async") == copying.count("simt.load") == 8
    assert "simt.copy_async" not in last and last.count("simt.load") == 8
    assert text.count("wait.group") == 2


def test_rings_need_copies_of_4_bytes_and_lines_of_as_many_turns():
    """Cells of 2 bytes are asked for instead, and cells of FP64, of which memory is fast enough."""
    text = skewed_text(0, "f16").replace("[0,9]", "[0,99]").replace("[9, 60]", "[99, 60]")
    (narrow,) = (SweepFrame.of(op) for op in sweeps_of(text))
    short, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((42, 64), 0, "f32")))
    wide, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((42, 64), 0)))
    assert (narrow.ring, narrow.ahead) == (wide.ring, wide.ahead) == (0, PLACES_AHEAD)
    assert (short.ring, short.ahead) == (4, 0)


def test_threads_without_a_line_are_masked():
    (up, _) = (SweepFrame.of(op) for op in sweeps_of(thomas_text((81, 65), 0)))
    up = SweepFrame(up.op, PLACES_AHEAD)
    text = str(sweep_module(up, OLDEST_ARCH))
    assert up.grid == 3 and "simt.load" not in text
    assert all("mask" in line for line in text.splitlines() if "simt.override" in line)
    assert all("mask" in line for line in text.splitlines() if "simt.store" in line)


def test_many_lines_are_large_blocks_that_ask_for_nothing():
    up, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((512, 512, 512), 1, "f32")))
    assert (up.threads, up.grid, up.ahead, up.lines) == (256, 512, 0, 512 * 512)
    text = str(sweep_module(up, OLDEST_ARCH))
    assert "simt.prefetch" not in text and "arith.extsi" not in text


def test_a_sweep_of_rows_asks_for_nothing():
    """Lines along the last axis are copied to shared memory ahead of their use."""
    along_rows, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((64, 81), 1)))
    single, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((81,), 0)))
    assert (along_rows.ahead, along_rows.slots) == (0, 3)
    assert (single.ahead, single.slots) == (0, 3)


@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_thread_of_several_lines_has_the_bits_of_one(
    axis: int, executor: Executor, monkeypatch: pytest.MonkeyPatch
):
    """With a mask, as 65 pairs of lines are no whole blocks."""
    monkeypatch.setattr(sweep_frames, "MANY_LINES", 1)
    shape = (13, 5, 26) if axis == 0 else (5, 13, 26)
    (op, _) = sweeps_of(thomas_text(shape, axis, "f32"))
    assert (SweepFrame.of(op).beside, SweepFrame.of(op).seats) == (2, 65)
    u, c, d = (noise(*shape).astype(np.float32) + np.float32(k) for k in range(3))
    wanted = thomas(u, c, d, np.float32(0.3), axis)
    text = thomas_text(shape, axis, "f32")
    timetile.compile(text, executor=executor, fp_contract="off", cache=False)(u, c, d, 0.3)
    assert [a.tobytes() for a in (u, c, d)] == [a.tobytes() for a in wanted]


def skewed_text(first: int, element: str) -> str:
    """A recurrence with cells of the line beside, and coordinates, from cell `first` of a row."""
    field = f"!stencil.field<[0,9]x[0,64]x{element}>"
    return f"""
func.func private @add(%b: f32, %a: f32, %i: index) -> f32 {{
  %n = arith.index_cast %i : index to i32
  %f = arith.sitofp %n : i32 to f32
  %s = arith.addf %b, %a : f32
  %t = arith.addf %s, %f : f32
  func.return %t : f32
}}
func.func @skewed(%u: {field}, %v: {field}) {{
  temporal.sweep %u = @add(%u[-1, 0], %v[0, 1]) indices [1]
    along 0 ascending in <[1, {first}], [9, {first + 60}]>
  func.return
}}
"""


@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize(("first", "beside"), [(0, 2), (2, 2), (1, 1)])
def test_lines_beside_each_other_begin_at_vectors_of_memory(
    first: int, beside: int, executor: Executor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sweep_frames, "MANY_LINES", 1)
    text = skewed_text(first, "f32")
    (op,) = sweeps_of(text)
    assert SweepFrame.of(op).beside == beside
    u, v = (noise(9, 64).astype(np.float32) + np.float32(k) for k in range(2))
    wanted, cells = u.copy(), slice(first, first + 60)
    for k in range(1, 9):
        beyond = wanted[k - 1, cells] + v[k, first + 1 : first + 61]
        wanted[k, cells] = beyond + np.arange(first, first + 60).astype(np.float32)
    timetile.compile(text, executor=executor, cache=False)(u, v)
    assert np.array_equal(u, wanted)


def test_cells_of_8_bytes_are_loaded_together():
    for element, beside in (("f32", 2), ("f64", 1)):
        up, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((512,) * 3, 0, element)))
        assert (up.beside, up.threads) == (beside, 256)
        text = str(sweep_module(up, OLDEST_ARCH))
        # Two kept cells, eight places of a turn, and the single places behind.
        loads = [line for line in text.splitlines() if "simt.load" in line]
        assert len(loads) == 11 and all(line.count(element) == beside for line in loads)


def test_large_fields_have_wide_indices():
    up, _ = (SweepFrame.of(op) for op in sweeps_of(thomas_text((1200, 1000, 1000), 0)))
    assert "arith.extsi" in str(sweep_module(up, OLDEST_ARCH))


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(9, 700), (8192, 8192), (512, 512, 512)], ids=str)
def test_kernels_of_sweeps_spill_no_register(shape: tuple[int, ...], element: str):
    if assembler_version() is None:
        pytest.skip("no assembler")
    for op in sweeps_of(thomas_text(shape, 0, element)):
        kernel = assemble(sweep_text(SweepFrame.of(op), "sm_90"), "sm_90")
        assert kernel.spill_bytes == 0 and 0 < kernel.registers <= 128


def test_the_image_of_a_sweep_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []

    def image(frame: SweepFrame, arch: str) -> bytes:
        made.append(frame.name)
        return f"{len(made)} {arch}".encode()

    monkeypatch.setattr(sweeping, "made_image", image)
    ops, cache = sweeps_of(thomas_text((9, 16), 0)), Cache(tmp_path)
    frames = [SweepFrame.of(op) for op in (*ops, *ops)]
    images = [sweep_image(frame, "sm_90", cache) for frame in frames]
    assert images[:2] == images[2:] == [b"1 sm_90", b"2 sm_90"] and len(made) == 2
    assert sweep_image(frames[0], "sm_100", cache) == b"3 sm_100"


@pytest.mark.parametrize("executor", ["planes", "simt", "ptx"])
def test_a_sweep_that_reads_an_unset_cell_is_reported(executor: Executor):
    """The first place of a scratch field is written by nobody."""
    field = "!stencil.field<[0,9]x[0,4]xf64>"
    text = f"""
func.func private @add(%a: f64, %b: f64) -> f64 {{
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}}
func.func @unset(%u: {field}) {{
  %s = stencil.alloc : {field}
  temporal.sweep %s = @add(%s[-1, 0], %u[0, 0]) along 0 ascending in <[1, 0], [9, 4]>
  temporal.sweep %u = @add(%u[-1, 0], %s[0, 0]) along 0 ascending in <[1, 0], [9, 4]>
  func.return
}}
"""
    program = timetile.compile(text, executor=executor, cache=False)
    with pytest.raises((SimtError, PlaneError), match=r"unset|never set"):
        program(noise(9, 4))


def test_compile_shows_the_kernels_of_sweeps():
    program = timetile.compile(thomas_text((81, 40), 0), executor="cpu", cache=False)
    threads, hardware, ptx = (emitted(program, level) for level in ("gpu", "hardware", "ptx"))
    assert "sweep.up" in threads and "simt.prefetch" in threads and "scf.for" in hardware
    assert ptx.count(".visible .entry sweep$2e$") == 2


def test_explain_tells_what_a_sweep_costs():
    program = timetile.compile(thomas_text((81, 40, 9), 2), executor="cpu", cache=False)
    up, down = program.explain().sweeps
    assert (up.lines, up.bytes_read, up.bytes_written, up.flops) == (81 * 40, 8, 16, 8)
    assert (down.bytes_read, down.bytes_written, down.ahead) == (16, 8, 0)
    text = str(program.explain())
    for said in (
        "@solve, sweep 0 along axis 2",
        "goes through 81 x 40 x 8 cells (f64) along axis 2, ascending; 8 bytes read, 16 written",
        "%c (1 place), %d (1 place)",
        "GCells/s on sm_90, as each field goes through memory once in a sweep",
        "of @sweep.up has 102 blocks of 32 threads, a thread for each of 3240 lines; a thread "
        "loads 8 places at once",
        "of a block holds 2 segments of each of 32 lines, copied by all threads of the block",
        "more lines: 3240 are too few threads to hide the time of memory",
    ):
        assert said in text
    assert "sweep 1 along axis 2" in as_html(program.explain())
    roles = {row[0]: row[3] for row in program.explain().sections[0].rows}
    assert roles["0 %u"] == "field of a sweep"


@pytest.mark.parametrize("executor", ["simt", "ptx"])
@pytest.mark.parametrize("places", [41, 75])
def test_rings_have_cells_of_lines_beside_and_of_places_before_and_behind(
    places: int, executor: Executor
):
    """Old cells of the target ahead, on 33 lines: most threads of the last block have none."""
    field = f"!stencil.field<[0,{places}]x[0,35]xf32>"
    text = f"""
func.func private @add(%b: f32, %u: f32, %a: f32, %c: f32, %i: index) -> f32 {{
  %n = arith.index_cast %i : index to i32
  %f = arith.sitofp %n : i32 to f32
  %0 = arith.addf %b, %u : f32
  %1 = arith.mulf %a, %c : f32
  %2 = arith.addf %0, %1 : f32
  %3 = arith.addf %2, %f : f32
  func.return %3 : f32
}}
func.func @mixed(%u: {field}, %v: {field}) {{
  temporal.sweep %u = @add(%u[2, 0], %u[-1, 0], %v[-2, 1], %v[1, -1]) indices [0]
    along 0 descending in <[2, 1], [{places - 2}, 34]>
  func.return
}}
"""
    (op,) = sweeps_of(text)
    assert SweepFrame.of(op).ring in (8, 16)
    u, v = (noise(places, 35).astype(np.float32) + np.float32(k) for k in range(2))
    wanted, inner = u.copy(), slice(1, 34)
    for k in range(places - 3, 1, -1):
        old = wanted[k + 2, inner] + u[k - 1, inner]
        wanted[k, inner] = (old + v[k - 2, 2:] * v[k + 1, :-2]) + np.float32(k)
    timetile.compile(text, executor=executor, fp_contract="off", cache=False)(u, v)
    assert np.array_equal(u, wanted)
