"""The kernels of the systems by name have the operations that the papers count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from xdsl.dialects import gpu, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation

import timetile
from support.catalogue import box, star, sum_program
from support.expressions import Offset
from support.programs import program_text
from timetile.dialects import simt
from timetile.dialects.tile import ExchangeBufferAttr, ExchangeOp, KernelOp, SharedAttr
from timetile.dialects.tile.kinds import Space
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.cost.papers.ebisu import shared_reads

# One worker has the shared kernels of the file's tests.
pytestmark = [pytest.mark.xdist_group("systems_counts"), pytest.mark.usefixtures("printed_alone")]

DOMAINS = {2: (500, 1100), 3: (40, 96, 96)}
VARIANTS = 2
"""Copies of a kernel: with guards for cells outside the bounds, and without."""


@dataclass(frozen=True)
class Deepest:
    """The deepest kernel of a program, placed and as the code of a thread."""

    placed: KernelOp
    threads: gpu.ModuleOp
    shared_bytes: int

    @property
    def steps(self) -> int:
        return self.placed.steps.data

    @property
    def loops(self) -> list[scf.ForOp]:
        """The innermost loops."""
        found = [op for op in self.threads.walk() if isinstance(op, scf.ForOp)]
        return [op for op in found if not any(isinstance(o, scf.ForOp) for o in op.body.walk())]

    @property
    def exchanges(self) -> list[ExchangeBufferAttr]:
        """The homes of exchanges."""
        found = [op for op in self.placed.stages if isinstance(op, ExchangeOp)]
        return [op.home for op in found if op.home is not None]

    @property
    def rings(self) -> list[int]:
        """Planes of each queue in shared memory."""
        homes: list[Attribute | None] = [getattr(op, "home", None) for op in self.placed.stages]
        return [home.slots.data for home in homes if isinstance(home, SharedAttr)]

    def a_step(self, *kinds: type[Operation], shared: bool = False) -> set[Fraction]:
        """Operations of some kinds in a step, of each loop; of accesses, to shared memory only."""
        period = Geometry(self.placed).period

        def of(loop: scf.ForOp) -> Iterator[Operation]:
            inside = (op for op in loop.body.walk() if isinstance(op, kinds))
            return (op for op in inside if not shared or in_shared(op))

        return {Fraction(len(list(of(loop))), period) for loop in self.loops}


def in_shared(op: Operation) -> bool:
    """Whether an access is to shared memory."""
    types = [value.type for value in op.operands]
    spaces = [kind.memory_space for kind in types if isinstance(kind, MemRefType)]
    return "3 :" in str(spaces[0])


@cache
def kernel(taps: tuple[Offset, ...], spec: str) -> Deepest:
    """The deepest kernel of a sum by a pipeline."""
    text = program_text(sum_program("f64", list(taps))(DOMAINS[len(taps[0])]))
    compiled = timetile.compile(
        text, executor="planes", passes=spec, arch="h100-sxm", halos="common", cache=False
    )
    kernels = compiled.kernels
    name = max(kernels.facts[0], key=lambda fact: fact.steps).name
    placed = [op for op in kernels.tiled.ops if isinstance(op, KernelOp)]
    return Deepest(
        next(op for op in placed if op.sym_name.data == name),
        kernels.threads(name),
        kernels.kernel(name).shared_bytes,
    )


def in_order(taps: list[Offset]) -> tuple[Offset, ...]:
    """Taps from the oldest plane to the newest."""
    return tuple(sorted(taps))


PLATES = {
    "j2d5pt": in_order(star(2, 1)),
    "j2d9pt": in_order(star(2, 2)),
    "j2d9pt-gol": in_order(box((-1, -1), (1, 1))),
    "j2d25pt": in_order(box((-2, -2), (2, 2))),
}


@pytest.mark.parametrize("name", PLATES)
def test_ebisu_reads_shared_memory_less_often_than_table_2(name: str):
    """
    A thread of one cell: a write a cell and level, one barrier a step, and the reads of table 2
    but one.
    """
    taps, depth = PLATES[name], 4
    row = kernel(taps, f"ebisu{{depth={depth} cells=1}}")
    assert row.a_step(gpu.BarrierOp) == {1}
    assert row.a_step(simt.StoreOp, shared=True) == {depth}
    # A further read fetches the cell that asynchronous copies brought.
    beside = {(reads - 1) / depth for reads in row.a_step(simt.LoadOp, shared=True)}
    assert beside == {shared_reads(taps, 0, in_registers=True) - 1}
    assert row.a_step(simt.CopyAsyncOp) == {1}
    assert {home.slots.data for home in row.exchanges} == {2}


def test_a_pair_of_cells_shares_reads():
    """Of two cells beside each other, each reads one neighbour in the thread."""
    row = kernel(PLATES["j2d9pt"], "ebisu{depth=4}")
    (reads,) = row.a_step(simt.LoadOp, shared=True)
    assert (reads - 1) / 4 <= shared_reads(PLATES["j2d9pt"], 0, in_registers=True) - 2


def test_copies_of_ebisu_land_in_the_ring_of_all_levels():
    """No thread writes what copies bring: a write less, one barrier a step, and a ring for all."""
    depth = 4
    row = kernel(PLATES["j2d5pt"], f"ebisu{{depth={depth} cells=1 loads=copies ring=shared}}")
    assert row.a_step(gpu.BarrierOp) == {1}
    assert row.a_step(simt.StoreOp, shared=True) == {depth - 1}
    # A thread's own cell, and the cells around the tile.
    assert row.a_step(simt.CopyAsyncOp) == {2}
    assert {home.slots.data for home in row.exchanges} == {16}
    assert len({str(home.common) for home in row.exchanges}) == depth


@pytest.mark.parametrize(("blocks", "messages"), [("3,1", 4), ("2,2", 8)])
def test_ebisu_has_a_barrier_of_the_grid_and_a_message_a_side_and_step(blocks: str, messages: int):
    """A side sends and takes a message, whatever the depth: two sides in one row of blocks."""
    row = kernel(in_order(star(3, 1)), f"ebisu{{depth=2 blocks={blocks} sync=grid}}")
    assert row.a_step(simt.TileBarrierOp) == {1}
    assert row.a_step(simt.PostOp, simt.TakeOp) == {messages}
    assert [home.slots.data for home in row.exchanges] == [2] * 2
    assert {home.space.data for home in row.exchanges} == {Space.GLOBAL}


def test_ebisu_waits_for_neighbours_alone_without_the_barrier():
    row = kernel(in_order(star(3, 1)), "ebisu{depth=2 blocks=3,1}")
    assert row.a_step(simt.TileBarrierOp) == {0}
    assert min(row.a_step(simt.PostOp, simt.TakeOp)) > 0


CUBE: list[Offset] = list(product((-1, 0, 1), repeat=3))
VOLUMES: dict[str, tuple[list[Offset], int]] = {
    "j3d7pt": (star(3, 1), 8),
    "j3d13pt": (star(3, 2), 5),
    "j3d17pt": ([at for at in CUBE if at[0] == 0 or 0 not in at], 6),
    "j3d27pt": (CUBE, 5),
    "poisson": ([at for at in CUBE if sum(map(abs, at)) < 3], 6),
}
"""Volumes of table 3, and EBISU's depths."""


@pytest.mark.parametrize("name", VOLUMES)
def test_blocks_along_both_axes_fit_a_multiprocessor_at_the_papers_depth(name: str):
    """A block has 227 KB of shared memory, and 11 x 12 blocks of 32 x 32 cells span the domain."""
    taps, depth = VOLUMES[name]
    text = program_text(sum_program("f64", sorted(taps))((40, 348, 380)))
    spec = f"ebisu{{depth={depth} cells=4,1 blocks=11,12 sync=grid}}"
    compiled = timetile.compile(
        text, executor="planes", passes=spec, arch="h100-sxm", halos="common", cache=False
    )
    kernels = [op for op in compiled.kernels.tiled.ops if isinstance(op, KernelOp)]
    geometry = Geometry(next(op for op in kernels if op.steps.data == depth))
    assert [axis.count for axis in geometry.axes] == [1, 1]
    assert BlockMemory.of(geometry).bytes <= 227 << 10


@pytest.mark.parametrize(("rank", "radius"), [(2, 1), (2, 2), (3, 1)])
def test_an5d_reads_shared_memory_as_in_table_2(rank: int, radius: int):
    """
    2 R reads of a star in two axes, 4 R in three, for rows of several warps and without planes
    ahead; head, inner and tail loops.
    """
    warps = "8" if rank == 2 else "16,2"
    row = kernel(in_order(star(rank, radius)), f"an5d{{depth=3 ahead=0 warps={warps}}}")
    assert row.a_step(simt.LoadOp, shared=True) == {2 * (rank - 1) * radius * row.steps}
    assert row.a_step(simt.StoreOp, shared=True) == {row.steps}
    assert row.a_step(gpu.BarrierOp) == {1}
    assert [home.slots.data for home in row.exchanges] == [2] * row.steps
    assert len(row.loops) == 3 * VARIANTS


def test_an5d_shares_two_planes_among_all_levels():
    """Two planes in shared memory whatever the depth, and a barrier for each level."""
    rows = [
        kernel(in_order(star(2, 1)), f"an5d{{depth={depth} ahead=0 warps=8 ring=shared}}")
        for depth in (2, 3)
    ]
    assert rows[0].shared_bytes == rows[1].shared_bytes
    # An even number of levels needs a barrier more: slots move on by one a step.
    assert [row.a_step(gpu.BarrierOp) for row in rows] == [{3}, {3}]
    assert all({home.slots.data for home in row.exchanges} == {2} for row in rows)


def test_ebisu_has_one_barrier_in_four_steps():
    row = kernel(in_order(star(2, 1)), "ebisu{depth=2 every=4 ring=shared}")
    assert row.a_step(gpu.BarrierOp) == {Fraction(1, 4)}
    assert {home.slots.data for home in row.exchanges} == {16}


def test_an5d_ages_planes_by_renaming():
    """A turn of the loop has as many steps as a plane has ages, so that no register moves."""
    row = kernel(in_order(star(2, 2)), "an5d{depth=3}")
    assert Geometry(row.placed).period == 4


def test_stencilgen_shifts_planes_through_registers():
    """A step of code in each loop, two planes a level, a barrier a step, nothing fetched ahead."""
    row = kernel(in_order(star(2, 1)), "stencilgen")
    assert row.steps == 4
    assert Geometry(row.placed).period == 1
    assert row.a_step(gpu.BarrierOp) == {1}
    assert row.a_step(simt.StoreOp, shared=True) == {row.steps}
    assert row.a_step(simt.CopyAsyncOp) == {0}
    assert [home.slots.data for home in row.exchanges] == [2] * row.steps


@pytest.mark.parametrize("side", [3, 5])
def test_ssam_shuffles_sums_and_no_cells(side: int):
    """At most M - 1 shuffles for a cell of a lane, and no barrier."""
    far = side // 2
    columns = sorted(product(range(-far, far + 1), repeat=2), key=lambda at: at[::-1])
    row = kernel(tuple(columns), "ssam")
    (shuffles,) = row.a_step(simt.ShuffleOp)
    whole = kernel(
        tuple(columns),
        "device-tiling{tile=warp cells=4 lanes=32},"
        "multi-queue-buffering,register-streaming,carry-halos,peel-boundaries",
    )
    assert 0 < shuffles <= 4 * (side - 1)
    assert shuffles < max(whole.a_step(simt.ShuffleOp))
    assert row.a_step(gpu.BarrierOp) == {0} and not row.exchanges


def test_sums_written_row_by_row_travel_after_sorting_by_columns():
    rows = sorted(product((-1, 0, 1), repeat=2))
    whole = kernel(tuple(rows), "ssam")
    spec = "raise-time-loop,sort-terms{fp-reassoc=on order=columns},contract-cells,ssam"
    (shuffles,) = kernel(tuple(rows), spec).a_step(simt.ShuffleOp)
    assert 0 < shuffles < min(whole.a_step(simt.ShuffleOp))


def test_dtb_has_a_barrier_of_the_grid_a_level_if_asked_and_no_stream():
    depth = 2
    row = kernel(in_order(star(2, 1)), f"dtb{{depth={depth} blocks=4,1 sync=grid}}")
    assert row.placed.stream_axis is None
    barriers = sum(isinstance(op, simt.TileBarrierOp) for op in row.threads.walk())
    assert barriers == depth * VARIANTS
    alone = kernel(in_order(star(2, 1)), f"dtb{{depth={depth} blocks=4,1}}")
    assert not any(isinstance(op, simt.TileBarrierOp) for op in alone.threads.walk())


def test_a_semi_stencil_has_a_barrier_a_step_and_two_stages_a_level():
    radius = 4
    row = kernel(in_order(star(3, radius)), "semi-stencil")
    assert row.a_step(gpu.BarrierOp) == {1}
    assert row.a_step(simt.StoreOp, shared=True) == {1}
    assert row.rings == [radius + 2], "planes around the cell's own, and one more for the barrier"
