"""The models of the papers for a time loop and its deepest kernel, beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.dialects.tile import KernelOp
from timetile.dialects.tile.schedule import default_stream
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.cost.papers.an5d import double_buffer_bytes, fits, thread_reads
from timetile.passes.cost.papers.ebisu import (
    bottleneck,
    component_seconds,
    depth_that_shifts,
    depth_that_shifts_device_tile,
    least_width,
    practical,
    shared_reads,
    speed,
    valid_share,
    valid_share_of_time,
)
from timetile.passes.cost.papers.semi_stencil import (
    BLOCK,
    bytes_of_planes,
    partial_sums,
    planes,
    whole_planes,
)
from timetile.passes.cost.papers.ssam import (
    OUTPUTS,
    V100,
    WARP,
    cached_cells,
    gain,
    halo_share,
    valid_outputs,
)
from timetile.passes.cost.terms import Cost
from timetile.passes.targets.target import Target
from timetile.runtime.explain.data import Fact, Section
from timetile.runtime.explain.figures import loop_radius, read_fields, written_fields

DEEPEST_OF_AN5D = 256
"""Most steps of a launch tried with AN5D's register formula."""

THREADS_OF_AN5D = 256
"""Threads of a block in AN5D's register formula."""


def taps_of(loop: LoopOp) -> list[set[tuple[int, ...]]]:
    """The offsets of a step's reads of each field."""
    taps: dict[SSAValue, set[tuple[int, ...]]] = {}
    for update in loop.updates:
        for tap in update.tap_list:
            taps.setdefault(update.sources[tap.operand], set()).add(tap.offset)
    return list(taps.values())


def cell_size(loop: LoopOp) -> int:
    """Bytes of a cell of the loop's widest buffer."""
    return max(CELL_BYTES[element_type(buffer)] for buffer in loop.buffers)


def deepest_of_an5d(loop: LoopOp, target: Target) -> int:
    """The most steps of a launch allowed by AN5D's register formula; 0 if none fits."""
    radius, size = loop_radius(loop), cell_size(loop)
    return max(
        (n for n in range(DEEPEST_OF_AN5D) if fits(n, radius, size, THREADS_OF_AN5D, target)),
        default=0,
    )


def depth_text(steps: float) -> str:
    """Steps of a launch; infinitely many are none."""
    return "never" if steps == inf else f"from {steps:.1f} steps a launch on"


def model_facts(loop: LoopOp, kernel: KernelOp, cost: Cost, target: Target) -> Iterator[Fact]:
    """Accesses to shared memory, with the resulting depths and speeds."""
    stream = default_stream(len(written_bounds(loop).lb))
    taps = taps_of(loop)
    if stream is None or not taps:
        return
    results = sum(len(update.targets) for update in loop.updates)
    plain, kept = (
        results + sum(shared_reads(of, stream, in_registers=way) for of in taps)
        for way in (False, True)
    )
    yield Fact(
        "shared memory",
        f"{plain:g} accesses a cell with all levels there, {kept:g} with planes in registers too "
        "(EBISU, table 2)",
    )
    fields = len(read_fields(loop)) + len(written_fields(loop))
    speeds = (target.part.copy_tb_per_s, target.shared_tb_per_s)
    yield Fact(
        "shared memory limits",
        f"{depth_text(depth_that_shifts(fields, kept, *speeds))} where tiles overlap (EBISU, "
        "equation 17)",
    )
    radius = loop_radius(loop)
    sides = tuple(axis.layout.extent for axis in Geometry(kernel).axes)
    if len(sides) == 2:
        deep = depth_that_shifts_device_tile(fields, kept, *speeds, (sides[0], sides[1]), radius)
        yield Fact(
            "and as device tiles",
            f"{depth_text(deep)} for tiles of {sides[0]} x {sides[1]} cells whose halos go through "
            "global "
            "memory (equations 18 and 19), which pay from "
            f"{least_width(fields, kept, *speeds, radius):.0f} "
            "cells a side on (equation 23)",
        )
    depth = kernel.steps.data
    share = valid_share(sides, depth, radius)
    size, (copied, shared) = cell_size(loop), speeds
    seconds = {
        "global memory": component_seconds(fields, 1, size, copied * 1e12),
        "shared memory": component_seconds(kept * depth, 1, size, shared * 1e12),
    }
    bound = practical(speed(1, depth, seconds), share)
    yield Fact(
        "attainable",
        f"{bound / 1e9:.0f} GCells/s by @{kernel.sym_name.data} if {bottleneck(seconds)} alone "
        f"counts and {share:.0%} of a tile is valid (EBISU, equations 1 to 9)",
    )
    busy = valid_share_of_time(cost.step_seconds - cost.waiting_seconds, cost.waiting_seconds)
    yield Fact("not waiting", f"{busy:.0%} of the time of a step (EBISU, equation 11)")
    beside = sum(thread_reads(of, stream, cached=True) for of in taps)
    yield Fact(
        "planes in registers",
        f"{beside} reads of shared memory a cell and step (AN5D, table 2), and at most "
        f"{deepest_of_an5d(loop, target)} steps a launch with {THREADS_OF_AN5D} threads a block "
        f"(section 6.3), whose two planes take {double_buffer_bytes(THREADS_OF_AN5D, size)} bytes",
    )
    yield from facts_of_sums(taps, size)


def facts_of_sums(taps: Sequence[set[tuple[int, ...]]], size: int) -> Iterator[Fact]:
    """Partial sums that travel from lane to lane, or from plane to plane, of the widest field."""
    widest = max(taps, key=len)
    *_, rows, columns = (max(along) - min(along) + 1 for along in zip(*widest))
    if min(rows, columns) < 2 or columns > WARP:
        return
    yield Fact(
        "sums that travel",
        f"{cached_cells(rows)} cells of a column for {OUTPUTS} outputs, of which "
        f"{halo_share(columns, rows):.0%} are halo, {valid_outputs(columns)} lanes with outputs, "
        f"and {gain(columns, rows, V100):.0f} cycles less for an output by a V100's latencies "
        "(SSAM, equations 3 to 5)",
    )
    radius = max(max(map(abs, offset)) for offset in widest)
    if len(next(iter(widest))) == 3:
        taken = bytes_of_planes(BLOCK, radius, planes(radius), size, fields=1)
        yield Fact(
            "sums in halves",
            f"{planes(radius)} planes in shared memory, where whole sums have "
            f"{whole_planes(radius)}: {taken} bytes a field; partial sums in registers: "
            f"{partial_sums(radius)} (semi-stencil, section III)",
        )


def model_section(loop: LoopOp, kernel: KernelOp, cost: Cost, target: Target) -> Section:
    """The papers' models of a loop and its deepest kernel."""
    return Section("Models of the papers", tuple(model_facts(loop, kernel, cost, target)))
