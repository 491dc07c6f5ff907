"""The report of `timetile explain`: the compiled program, and the predicted figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import timetile
from support.catalogue import entry, star, sum_program
from support.command_line import HEAT, run
from support.driver import BookKeeper
from support.programs import program_text
from timetile.dialects.tile import LaunchOp
from timetile.passes.targets.target import target_named
from timetile.runtime.cli import compiled, main
from timetile.runtime.explain.figures import (
    launch_counts,
    loop_flops,
    occupancy,
    offset_ranges,
    redundancy,
)
from timetile.runtime.kernels.assembler import assembler_version
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.kernels.planning import planned_function

pytestmark = pytest.mark.usefixtures("cache_of_file", "chosen_by_model")


# timetile explain.


def test_explain_says_what_was_recognised(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 4 --steps 30 --all") == 0
    said = " ".join(capsys.readouterr().out.split())
    for expected in (
        "0 %u f64 [-1, 15) x [-1, 20) buffer",
        "2 %k f64 scalar",
        "3 %steps index number of steps",
        "rotation %a <- %b, %b <- %a",
        "live before a step %a",
        "coefficient fields none",
        "scalars %k",
        "%b = heat_cell0 in [0, 14) x [0, 19): 3 reads of %a; 1 mulf, 2 fma = 5 flops",
        "offsets that are read [-1, +0] x [-1, +1]",
        "8 bytes read, 8 written, 5 flops",
        "steps of a launch 4, 2, 1",
        "streaming axis none",
        "shared memory 4 accesses a cell with all levels there, 4 with planes in registers too",
        "shared memory limits from",
        "Predicted on sm_90 kernel GCells/s stream steps ns/stream step pipe issue shared not "
        "hidden computing waiting memory",
        "@heat_d4",
        "Queues of @heat_d4",
        "load of %a",
        "30 steps",
    ):
        assert expected in said
    assert ("limited by" in said) == (assembler_version() is not None)
    assert ("unknown without the assembler" in said) == (assembler_version() is None)


def test_explain_says_along_which_axis_planes_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "large.mlir"
    path.write_text(program_text(entry("heat-2d").make((2500, 2500))))
    assert run(f"explain {path} --depth 3 --all") == 0
    assert re.search(r"streaming axis +axis 0\n", capsys.readouterr().out)


def test_explain_shows_the_schedules_that_lost(heat: Path, capsys: pytest.CaptureFixture[str]):
    """
    The chosen schedule is the first of the model's compared schedules; a pipeline by hand compares
    nothing.
    """
    assert run(f"explain {heat} --all") == 0
    said = capsys.readouterr().out
    depth = re.search(r"steps of a launch +(\d+)", said)
    best = re.search(r"The best of \d+ schedules\n.*\n.*\n(\d+) ", said)
    assert depth is not None
    assert best is not None
    assert depth.group(1) == best.group(1)
    # A plate of 14 x 19 cells may have resident tiles.
    assert re.search(r"each level that may hold a tile\n.*\n.*\nblock, resident ", said)
    assert re.search(r"^warp ", said, re.MULTILINE)
    passes = "temporal-fusion{depths=2},device-tiling,multi-queue-buffering,peel-boundaries"
    assert main(["explain", str(heat), "--all", "--pipeline", passes]) == 0
    assert "schedules" not in capsys.readouterr().out


def test_explain_compares_the_levels_that_may_hold_a_tile(
    heat: Path, capsys: pytest.CaptureFixture[str]
):
    """
    For a star in 3D: each larger level overlaps less, and waits longer; a block need not wait at
    all.
    """
    heat.write_text(program_text(sum_program("f64", star(3, 1))((512, 512, 512))))
    assert run(f"explain {heat} --all") == 0
    said = capsys.readouterr().out
    title = "The best of each level that may hold a tile\n"
    columns, _, *lines = said.partition(title)[2].splitlines()
    assert re.split(" {2,}", columns.strip()) == [
        "tile",
        "depth",
        "cells",
        "blocks/tile",
        "sync",
        "GCells/s",
        "valid",
        "stream steps",
        "ns/stream step",
        "waiting",
    ]
    rows = {row[0]: row[1:] for row in (re.split(" {2,}", line.strip()) for line in lines[:5])}
    assert list(rows) == ["block", "cluster", "device", "memory", "device, resident"]
    # Kernels that read memory wait for nobody.
    assert rows.pop("memory")[3] == "barrier"
    assert [row[3] for row in rows.values()] == ["mbarrier", "mbarrier", "flags", "grid"]
    resident = rows.pop("device, resident")
    assert re.fullmatch(r"\d+ x 1 x 1", resident[2])
    assert rows["block"][2] == "1"
    assert rows["cluster"][2] == "2 x 1"
    assert re.fullmatch(r"\d+ x 1", rows["device"][2])
    valid = [int(row[5].removesuffix("%")) for row in rows.values()]
    waiting = [int(row[8]) for row in rows.values()]
    assert valid == sorted(valid) and valid[-1] <= 100
    assert waiting == sorted(waiting) and waiting[0] == 0 < waiting[1]
    assert int(resident[8]) > waiting[-1]
    # The first row is the chosen schedule.
    best = re.search(r"The best of \d+ schedules\n.*\n.*\n(\d+) +([\dx ]+?) {2,}", said)
    assert best is not None
    assert list(best.groups()) == rows["block"][:2]
    # Notes below explain the columns.
    assert [re.split(" {2,}", line.strip())[0] for line in lines[5:10]] == [
        "blocks/tile",
        "sync",
        "valid",
        "stream steps",
        "waiting",
    ]
    columns, *lines = said.partition("Schedules that were left out\n")[2].splitlines()
    assert re.split(" {2,}", columns.strip()) == ["schedules", "at depth", "why"]
    rows_of_reasons = [re.split(" {2,}", line.strip()) for line in lines[1:4]]
    left_out = {why: int(count) for count, _, why in rows_of_reasons}
    assert left_out["planes do not fit the registers of a thread"] > 10
    assert left_out == dict(sorted(left_out.items(), key=lambda item: -item[1]))


def test_explain_says_what_was_not_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A depth with an overlap wider than any tile."""
    far = tmp_path / "far.mlir"
    far.write_text(program_text(sum_program("f64", [(0, -200), (0, 200)])((9, 37))))
    assert run(f"explain {far} --depth 2 --function run") == 0
    captured = capsys.readouterr()
    assert "Not done, and why" in captured.out
    assert (
        "no tile holds 2 steps at once, as their overlap, planes, fields or code are too much"
        in captured.out
    )
    # Said once, in the answer.
    assert captured.err == ""


def test_explain_says_why_a_loop_runs_step_by_step(heat: Path, capsys: pytest.CaptureFixture[str]):
    heat.write_text(HEAT.replace("scf.yield %b, %a", "scf.yield %b, %b"))
    assert run(f"explain {heat} --all") == 0
    captured = capsys.readouterr()
    line = HEAT.splitlines().index("    scf.yield %b, %a : !field, !field") + 1
    assert (
        f"scf.yield in @heat ({heat}:{line}): the time loop runs a step at a time: the loop "
        "yields a field twice; yield each carried field once\n"
    ) in captured.out


@pytest.mark.parametrize("steps", [0, 1, 7, 100])
def test_launch_counts_are_those_of_the_plan(steps: int):
    program = timetile.compile(HEAT, executor="cpu", depth=4, cache=False)
    (loop,) = loops_of(program.module)
    kernels = program.kernels.facts_of(loop)
    counts = launch_counts(loop, kernels, steps)
    depths = {kernel.name: kernel.steps for kernel in kernels}
    assert sum(depths[name] * n for name, n in counts.launches.items()) == steps
    launches = [
        op for op in planned_function(loop, kernels, steps).walk() if isinstance(op, LaunchOp)
    ]
    assert set(counts.launches) == {launch.kernel.string_value() for launch in launches}


def test_explain_counts_the_operations_and_the_reach_of_a_step():
    program = timetile.compile(HEAT, executor="cpu", depth=3, cache=False)
    (loop,) = loops_of(program.module)
    assert loop_flops(loop) == 5
    assert offset_ranges(loop.updates) == [(-1, 0), (-1, 1)]


def test_more_overlap_is_more_redundancy():
    """
    A deeper kernel computes more of its tile twice; no kernel computes less than the useful cells.
    """
    totals: list[float] = []
    text = program_text(sum_program("f64", star(2, 1))((5000, 5000)))
    for depth in (2, 6):
        program = timetile.compile(text, executor="cpu", depth=depth, cache=False)
        (deepest,) = (k for k in compiled.placed_kernels(program) if k.steps.data == depth)
        found = redundancy(deepest)
        assert found.plane >= 1 and found.stream >= 1
        totals.append(found.total)
    assert totals[0] < totals[1]


@pytest.mark.parametrize(
    ("registers", "shared", "blocks", "limit"),
    [(128, 0, 4, "registers"), (121, 0, 4, "registers"), (32, 100_000, 2, "shared memory"),
     (16, 0, 16, "warps")],
)  # fmt: skip
def test_occupancy_is_limited_by_registers_shared_memory_or_warps(
    registers: int, shared: int, blocks: int, limit: str
):
    kernel = Kernel(
        "k",
        "",
        None,
        "sm_90",
        grid=1,
        block=128,
        cluster=1,
        blocks_per_tile=1,
        message_words=0,
        bound_waits=False,
        shared_bytes=shared,
        registers=registers,
        spill_bytes=0,
    )
    found = occupancy(kernel, target_named("sm_90"))
    assert (found.blocks, found.warps, found.limit) == (blocks, 4, limit)


def test_verbose_says_what_is_being_done(heat: Path, capsys: pytest.CaptureFixture[str]):
    assert run(f"explain {heat} --depth 1 --verbose") == 0
    said = capsys.readouterr().err
    assert "info: compiling @heat_step\n" in said
    assert re.search(r"^info: @heat for the executor \w+, target sm_\d+$", said, re.MULTILINE)
    assert "info: time loop 0: kernels of 1 steps\n" in said
    assert run(f"explain {heat} --depth 1") == 0
    assert capsys.readouterr().err == ""


def test_kernels_of_a_newer_architecture_than_the_gpu_are_explained(
    heat: Path, driver: BookKeeper, capsys: pytest.CaptureFixture[str]
):
    driver.arch = (9, 0)
    assert run(f"explain {heat} --depth 1 --arch b200") == 0
    assert re.search(r"GCells/s predicted +\S+ on sm_100", capsys.readouterr().out)
