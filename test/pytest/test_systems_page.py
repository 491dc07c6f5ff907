"""The rows of docs/systems.md, and the kernels of its pages, run as printed, with the stated IR."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation
from xdsl.xdsl_opt_main import xDSLOptMain

import timetile
from support.sizes import spread
from timetile.dialects import simt
from timetile.dialects.tile import (
    ApplyOp,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    RegistersAttr,
    SharedAttr,
)
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.runtime.loading.modules import load_text, make_context
from timetile.runtime.loading.plugins import parsed_passes

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("systems_page")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text()
SECTION = PAGE.partition("## Systems as points")[2].partition("\n## ")[0]
STEPS = 4
SIDES = 2
VARIANTS = 2
"""Copies of the code of a kernel: with guards for cells outside the bounds, and without."""

Row = tuple[str, str]
"""A program and the passes in place of PASSES."""


def printed_rows() -> dict[str, Row]:
    """The rows by system."""
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|", SECTION, re.MULTILINE)
    return {system: (program, passes) for system, program, passes in rows}


ROWS = printed_rows()
BLOCK = "device-tiling{tile=block cells=4,1 lanes=1,32 warps=8,1}"
DEVICE = "device-tiling{tile=device cells=4,1 lanes=1,32 warps=4,1 blocks=2,1 occupancy=1}"
WARP = "device-tiling{tile=warp cells=4 lanes=32}"
REGISTERS = "multi-queue-buffering,register-streaming"

WITHOUT = {
    "SSAM, registers as a cache": f"{WARP},multi-queue-buffering{{storage=shared}}",
    "SSAM, travelling sums": f"{WARP},{REGISTERS}",
    "AN5D": f"{BLOCK},multi-queue-buffering{{ahead=0}},register-streaming",
    "EBISU, multi-queue": f"{DEVICE},multi-queue-buffering{{storage=shared}}",
    "EBISU, register streaming": f"{DEVICE},multi-queue-buffering{{storage=shared "
    f"addressing=computed every=2}}",
    "DTB": f"{WARP},{REGISTERS}",
    "semi-stencil": f"{BLOCK},{REGISTERS}",
    "its finer relative": f"{BLOCK},{REGISTERS}",
}
"""The passes of a row, without the passes added by the system."""


def printed_ptx(program: str, passes: str) -> str:
    """The output of the printed command for a row."""
    (command,) = re.findall(r"^```sh\n(xdsl-opt [^\n]*)\n```$", SECTION, re.MULTILINE)
    words = shlex.split(command.replace("PROGRAM", str(ROOT / program)).replace("PASSES", passes))
    output = io.StringIO()
    with redirect_stdout(output):
        xDSLOptMain(args=words[1:]).run()
    return output.getvalue()


@dataclass(frozen=True)
class Contents:
    """The kernel of four steps of a row: the stages with homes, and the code of threads."""

    placed: KernelOp
    threads: gpu.ModuleOp

    @property
    def applies(self) -> list[ApplyOp]:
        return [stage for stage in self.placed.stages if isinstance(stage, ApplyOp)]

    @property
    def homes(self) -> list[object]:
        """The homes of stages' planes, without planes read from memory."""
        loads = [s for s in self.placed.stages if isinstance(s, LoadOp) and not s.keeps_no_plane]
        return [stage.home for stage in (*loads, *self.applies)]

    @property
    def rings(self) -> list[SharedAttr]:
        return [home for home in self.homes if isinstance(home, SharedAttr)]

    @property
    def exchanges(self) -> list[tuple[str, ExchangeBufferAttr]]:
        """The published cells, and the synchronisation."""
        found = [stage for stage in self.placed.stages if isinstance(stage, ExchangeOp)]
        return [(e.what.data, e.home) for e in found if e.home is not None]

    @property
    def kept_in_registers(self) -> bool:
        return all(isinstance(home, RegistersAttr) for home in self.homes)

    @property
    def stages_a_level(self) -> Fraction:
        return Fraction(len(self.applies), STEPS)

    @property
    def loops_over_planes(self) -> int:
        """The innermost loops, or the loop of a block over its tiles."""
        if self.placed.stream_axis is None:
            return self.count(scf.ForOp) - (self.count(simt.PostOp) > 0)
        loops = [op for op in self.threads.walk() if isinstance(op, scf.ForOp)]
        return sum(not any(isinstance(o, scf.ForOp) for o in op.body.walk()) for op in loops)

    def a_step(self, kind: type[Operation]) -> Fraction:
        """Operations of a kind in one step of a loop over planes."""
        inside = [
            op
            for op in self.threads.walk()
            if isinstance(op, kind) and isinstance(op.parent_op(), scf.ForOp)
        ]
        return Fraction(len(inside), self.loops_over_planes * Geometry(self.placed).period)

    def count(self, kind: type[Operation]) -> int:
        return sum(isinstance(op, kind) for op in self.threads.walk())

    def shared_cells(self) -> list[int]:
        """Cells of each piece of shared memory."""
        shared = [op.result.type for op in self.threads.walk() if isinstance(op, simt.SharedOp)]
        return [kind.get_shape()[0] for kind in shared if isinstance(kind, MemRefType)]


@cache
def contents(program: str, passes: str) -> Contents:
    """The kernel of four steps made by a row's passes, at both levels."""
    (spec,) = re.findall(r"-p '([^']*)'", SECTION)
    before, _, after = spec.replace("PASSES", passes).partition(",lower-tile-to-gpu")
    assert after
    module, context = load_text((ROOT / program).read_text()), make_context()
    for item in parsed_passes(before):
        item.apply(context, module)
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    placed = next(k for k in kernels if k.steps.data == STEPS).clone()
    for item in parsed_passes("lower-tile-to-gpu"):
        item.apply(context, module)
    threads = [op for op in module.ops if isinstance(op, gpu.ModuleOp)]
    return Contents(placed, next(t for t in threads if t.sym_name == placed.sym_name))


# The statements of the last column.


def registers_as_a_cache(row: Contents, without: Contents) -> None:
    assert row.kept_in_registers and not row.exchanges
    assert row.count(simt.ShuffleOp) > 0 == without.count(simt.ShuffleOp)
    assert row.count(gpu.BarrierOp) == 0


def travelling_sums(row: Contents, without: Contents) -> None:
    assert (row.stages_a_level, without.stages_a_level) == (4, 1)
    assert 2 * row.count(simt.ShuffleOp) == without.count(simt.ShuffleOp)
    sums = {apply.res[0] for apply in row.applies}
    for apply in row.applies:
        queues = apply.queues
        beside = {queues[tap.operand] for tap in apply.tap_list if tap.offset[-1]}
        assert beside <= sums


def two_planes_of_each_level(row: Contents, without: Contents) -> None:
    assert row.kept_in_registers
    assert [(what, home.slots.data) for what, home in row.exchanges] == [("plane", 2)] * STEPS
    # Planes of 32 rows, and the rows before and after, for the readers.
    assert row.shared_cells() == [2 * (32 + 2) * 32] * STEPS
    assert row.a_step(gpu.BarrierOp) == 1
    assert sum(without.shared_cells()) < sum(row.shared_cells())


def one_ring_for_all_levels(row: Contents, without: Contents) -> None:
    ring = {(home.slots.data, home.addressing.data) for home in row.rings}
    assert ring == {(32, "computed")} and len(row.rings) == STEPS
    assert len({home.common for home in row.rings}) == STEPS
    assert (len(row.shared_cells()), len(without.shared_cells())) == (1, STEPS)
    meets_in_two_steps(row)
    assert without.a_step(simt.TileBarrierOp) == 1


def planes_beside_registers(row: Contents, without: Contents) -> None:
    assert row.kept_in_registers and not without.kept_in_registers
    planes = [home.slots.data for what, home in row.exchanges if what == "plane"]
    assert planes == [4] * STEPS
    assert row.shared_cells()[1:] == [4 * (16 + 2) * 32] * STEPS
    meets_in_two_steps(row)


def meets_in_two_steps(row: Contents) -> None:
    assert {home.every.data for _, home in row.exchanges} == {2}
    assert row.a_step(simt.TileBarrierOp) == Fraction(1, 2)
    assert {home.space.data for _, home in row.exchanges} == {"global"}
    assert row.count(simt.PostOp) == row.count(simt.TakeOp) > 0


def a_resident_tile(row: Contents, without: Contents) -> None:
    assert row.loops_over_planes == 0 < without.loops_over_planes
    assert row.kept_in_registers
    # The edges of the warps, with a warp's more at each end, in two slots.
    assert row.shared_cells() == [2 * 2 * (8 + 2) * 128]
    assert row.count(simt.PostOp) == row.count(simt.TakeOp) == STEPS * SIDES * VARIANTS
    assert without.count(simt.PostOp) == 0


def two_halves(row: Contents, without: Contents) -> None:
    parts(row, without, 2)


def a_part_for_each_plane(row: Contents, without: Contents) -> None:
    parts(row, without, 3)
    for apply in row.applies:
        sums = [k for k, q in enumerate(apply.queues) if is_partial(q.owner)]
        taps = [tap for tap in apply.tap_list if tap.operand not in sums]
        assert len({tap.offset[0] for tap in taps}) == 1


def is_partial(stage: object) -> bool:
    """A sum read at the cell itself only."""
    if not isinstance(stage, ApplyOp):
        return False
    readers = [use.operation for use in stage.res[0].uses]
    taps = [
        tap
        for reader in readers
        if isinstance(reader, ApplyOp)
        for tap in reader.tap_list
        if reader.queues[tap.operand] is stage.res[0]
    ]
    return bool(taps) and not any(any(tap.offset) for tap in taps)


def parts(row: Contents, without: Contents, count: int) -> None:
    assert (row.stages_a_level, without.stages_a_level) == (count, 1)
    assert row.kept_in_registers
    assert sum(map(is_partial, row.applies)) == (count - 1) * STEPS


SAID: dict[str, Callable[[Contents, Contents], None]] = {
    "SSAM, registers as a cache": registers_as_a_cache,
    "SSAM, travelling sums": travelling_sums,
    "AN5D": two_planes_of_each_level,
    "EBISU, multi-queue": one_ring_for_all_levels,
    "EBISU, register streaming": planes_beside_registers,
    "DTB": a_resident_tile,
    "semi-stencil": two_halves,
    "its finer relative": a_part_for_each_plane,
}


def test_every_row_is_tested():
    assert ROWS.keys() == WITHOUT.keys() == SAID.keys()


@pytest.mark.parametrize("system", SAID)
def test_the_kernel_has_the_properties_of_its_row(system: str, caplog: pytest.LogCaptureFixture):
    """The passes of a row run without a remark, and make the row's kernel."""
    program, passes = ROWS[system]
    row = contents(program, passes)
    assert not caplog.records
    SAID[system](row, contents(program, WITHOUT[system]))


@pytest.mark.parametrize("system", spread(sorted(SAID)))
def test_a_row_is_printed(system: str, caplog: pytest.LogCaptureFixture):
    """The command runs without a remark, and prints the kernel."""
    program, passes = ROWS[system]
    ptx = printed_ptx(program, passes)
    assert not caplog.records
    assert f"_d{STEPS}(" in ptx


@pytest.mark.covering(every=4)
@pytest.mark.parametrize("system", SAID)
def test_a_row_leaves_what_the_unfused_program_leaves(system: str):
    program, passes = ROWS[system]
    text, tiled = (ROOT / program).read_text(), f"temporal-fusion{{depths={STEPS}}},{passes}"
    tiled += ",carry-halos,peel-boundaries"
    fused = timetile.compile(text, executor="planes", passes=tiled, cache=False)
    single = timetile.compile(text, executor="numpy", cache=False)
    fields = [p for p in single.parameters if p.bounds is not None]
    shapes = [[h - low for low, h in zip(p.bounds.lb, p.bounds.ub)] for p in fields if p.bounds]
    arrays = [[np.random.default_rng(k).random(s) for k, s in enumerate(shapes)] for _ in range(2)]
    for compiled, given in zip((fused, single), arrays, strict=True):
        compiled(*given, 2 * STEPS + 1)
    for found, right in zip(*arrays, strict=True):
        assert found.tobytes() == right.tobytes()


BY_NAME = PAGE.partition("## By name")[2].partition("\n## ")[0]
LINKED = re.findall(r"^- \[[^]]+\]\((systems/\w+\.md)\)$", PAGE, re.MULTILINE)
PRINTED = [
    found
    for page in LINKED
    for found in re.findall(
        r"```sh\n(xdsl-opt [^\n]*)\n```\n\n```text\n(.*?)\n```",
        (ROOT / "docs" / page).read_text(),
        re.DOTALL,
    )
]


def lines_of(command: str) -> list[str]:
    """The lines printed by a command of the page, without indentation."""
    words = [str(ROOT / w) if w.endswith(".mlir") else w for w in shlex.split(command)]
    output = io.StringIO()
    with redirect_stdout(output):
        xDSLOptMain(args=words[1:]).run()
    return [line.strip() for line in output.getvalue().splitlines()]


@pytest.mark.parametrize(("command", "kernel"), PRINTED)
def test_a_system_prints_the_kernel_of_its_page(command: str, kernel: str):
    lines = lines_of(command)
    assert kernel.splitlines()[0] in lines
    start = lines.index(kernel.splitlines()[0])
    assert lines[start : start + len(kernel.splitlines())] == kernel.splitlines()


PARTS = ("The kernel", "What is different here", "Measured")
"""The headings of each page, behind what the paper says."""


def test_every_system_has_a_page_and_a_name():
    names = ["ebisu", "an5d", "ssam", "dtb", "semi-stencil", "stencilgen"]
    assert [re.split(r"['{]", command)[1].strip("'") for command, _ in PRINTED] == names
    assert set(re.findall(r"^\| `([^`]+)` \|", BY_NAME, re.MULTILINE)) == set(names)
    for page in LINKED:
        headings = re.findall(r"^## (.*)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
        assert headings[0] in ("The paper", "The system") and headings[1:] == list(PARTS)
    (command,) = re.findall(r"^(xdsl-opt .*)$", BY_NAME, re.MULTILINE)
    assert any("#tile.schedule<tile block" in line for line in lines_of(command))
