"""
The parameters of the cost model: what predictions take beside the facts of a kernel and of a part.

Each is an effect that NVIDIA documents no figure for. `passes/targets/fits` has their values, a
file for each GPU they were fitted on. "By bytes" means by the bytes of a cell's element: 8 for f64,
4 for f32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Registers:
    """Registers of a thread (32-bit registers, unless a field says otherwise)."""

    fixed: int
    """Addresses, masks, counters and what is in flight, in a thread that streams."""
    per_word: float
    """For each 32-bit word of the planes that a stream loop keeps."""
    load: int
    """Addresses of each load beside the first."""
    many_taps: int
    """Taps of a stage from which the neighbours of its cells in a plane count as registers."""
    shared_row: float
    """Registers for each word of a row that is read from shared memory, in stages of many taps."""
    level: Mapping[int, int]
    """For each level beyond the second in tiles of several warps, by bytes."""
    sum_level: int
    """
    For each word of a level beyond the second in tiles of several warps whose planes enter sums as
    they arrive.
    """
    late_copies: float
    """
    Planes that copies of edges wider than one cell keep beside their slot where warps arrive and
    wait later: inner rows read them a step longer.
    """
    reach: int
    """
    For each cell beyond the first that stages of 4-byte cells look along the row, in strips that
    keep planes.
    """
    dividing_cell: Mapping[int, int]
    """For each cell and each level that divides or takes roots, by bytes."""
    dividing: int
    """For a kernel that divides or takes roots, beside those of its cells."""
    approximating: int
    """For each word of a thread's cells where quotients and roots are approximate, in strips."""
    values: int
    """A cell's own values that the other registers have room for."""
    scalars: int
    """Words of scalars that the other registers have room for."""
    volume: float
    """Factor on all registers of a thread whose volume stays, without a stream."""
    staying: int
    """Addresses, masks and what is in flight, in a thread whose plate stays."""
    staying_cell: int
    """For each cell of a row beyond the second, in a thread whose plate stays."""
    joining: int
    """For chunks that go on in the next column."""
    turns: int
    """For a second turn of a loop over rows of sums, where columns may be joined."""
    turns_level: int
    """For each level of such a second turn."""


@dataclass(frozen=True)
class Spare:
    """Registers of a thread that are kept free: guarded copies need them beside what is counted."""

    guards: Mapping[int, int]
    """By bytes."""
    one_level: int
    """Where at most one level of 8-byte cells is kept, in planes of two axes."""
    dividing: int
    """Where cells divide or take roots."""
    tight: int
    """The least: guarded copies may spill a little, as few tiles run them."""
    sums: int
    """Where planes enter sums as they arrive."""
    staying: int
    """
    Where a plate stays and keeps more planes than the one that is read and the one that is made.
    """
    turns: int
    """Where a loop over rows of sums has two turns."""


@dataclass(frozen=True)
class Computing:
    """
    Speed of the pipes, as shares and factors, and instructions of a thread in one stream step.
    """

    pipe_efficiency: float
    """
    Share of the busiest pipe that streamed tiles of one warp reach where memory does not limit
    them.
    """
    one_cell_speed: float
    """Share that is left of this where a lane holds one cell of a row, in planes of two axes."""
    many_warps_speed: float
    """
    Factor on the speed of tiles of several warps where a multiprocessor holds more than
    `few_warps`.
    """
    several_blocks: float
    """Share of the speed that is left where a multiprocessor holds several blocks."""
    staying_efficiency: float
    """
    Share of the floating-point pipe that plates reach which stay in a block, with all that they
    wait for.
    """
    few_warps: int
    """Warps of a multiprocessor up to which fetching the instructions of a long loop shows."""
    long_loop: int
    """
    Instructions of a turn of the loop from which fetching them limits, for lanes of 16 bytes in
    tiles of one warp.
    """
    long_loop_factor: float
    """Factor on the issue slots of such a loop."""
    fixed_instructions: int
    """Addresses, slots, masks and the loop itself."""
    overhead_share: float
    """Share of the instructions without arithmetic that the busier pipe does not hide."""
    guard_instructions: float
    """
    Instructions of a guard beside a select, for each word of a cell, where all tiles have guards.
    """
    sum_guard_instructions: float
    """
    Instructions for each word of a guard of a level beyond the first, where planes enter sums as
    they arrive.
    """
    spill_instructions: int
    """
    Instructions for each register that a thread has no room for: it is stored, and loaded again.
    """
    constants_at_hand: int
    """
    Long constants that registers keep; a kernel with more makes all of them anew in every step.
    """
    dividing_warps: Mapping[int, int]
    """Warps of a multiprocessor that hide the chains of quotients and roots, by bytes."""
    dividing_power: float
    """Power of the missing share of these warps by which steps take longer."""


@dataclass(frozen=True)
class Waiting:
    """Seconds that a stream step or a launch waits."""

    tile_step: float
    """Of every step of a tile of several warps: chains at the warps' edges, slots, the loop."""
    barrier: float
    """For the other warps of a block at a barrier."""
    cluster: float
    """For another block of the cluster."""
    message: Mapping[str, float]
    """
    For another block of the tile, by `flags` in what it sends, or at a barrier of the whole `grid`.
    """
    message_bytes_per_second: float
    """
    Bytes a second that a multiprocessor sends and takes, where it has nothing else to do meanwhile.
    """
    launch: float
    """Of a launch in a graph, beside its work."""
    long_step: int
    """
    Instructions of a step beyond which a launch takes longer: head, steady part and tail are
    fetched when first run.
    """
    long_step_instruction: float
    """For each instruction beyond."""
    latency: float
    """From an access to its data, when the memory is busy."""
    exposed_latency: float
    """Share of the latency that every step waits where no plane is fetched ahead of its use."""


@dataclass(frozen=True)
class Moving:
    """Speed of the memory, as shares and factors of that of a device copy."""

    overlap_power: int
    """A step's time is the norm of this order of the times to compute and to move its cells."""
    short_row_bytes: int
    """Bytes of a row of a tile below which it moves more slowly."""
    short_row: float
    """Share of the speed that is left at each halving of the row below that."""
    found_in_l2: float
    """Share of the cells that neighbouring tiles load in common which are found in L2."""
    found_beside: float
    """That share where all tiles run one copy of the code, and so advance together."""
    found_together: float
    """That share in kernels of several steps whose tiles all have guards."""
    one_ahead: float
    """Share of the speed where one plane of two axes is fetched ahead of its use."""
    dealt: float
    """
    Share of the speed where lanes copy vectors narrower than they hold, in planes of two axes.
    """
    two_vectors: float
    """Share of the speed at each doubling of a lane's cells beyond 16 bytes, in one dimension."""
    l2: float
    """Factor on the speed where all fields stay in L2 from launch to launch."""
    l2_share: float
    """Share of L2 that fields may fill to stay there."""


@dataclass(frozen=True)
class Rim:
    """
    What a step of a guarded copy costs, by that of a tile inside the bounds; mappings by axes of a
    plane.
    """

    halos: Mapping[int, float]
    """Where the copy reads halos of other buffers."""
    guards: Mapping[int, float]
    """Where cells outside the bounds come from registers."""
    word_sums: float
    """Where planes of one axis enter sums of 4-byte cells, in wide accesses."""
    sums: float
    """Where planes of two axes enter sums of 8-byte cells."""
    wide: float
    """
    Where levels keep more than two planes of 8-byte cells, of one axis: registers are spilled.
    """


@dataclass(frozen=True)
class Worth:
    """
    How predictions of different kinds are compared: factors on speeds, and limits on what is
    considered.
    """

    level: float
    """
    Factor for each level: the rest of a run is done by shallower kernels, and longer loops are
    assembled longer.
    """
    tight: float
    """Factor where guarded copies spill and the rim's weight does not count it."""
    wide_sum_cells: int
    """Cells of a lane from which several levels of sums are slower than predicted."""
    wide_sums: float
    """Factor on their speed."""
    device_stays: float
    """Factor on the speed of tiles that stay in the registers of the device."""
    turns: float
    """Factor on the speed of a loop over rows of sums with two turns."""
    turns_taps: Mapping[int, int]
    """Most taps of a thread in both turns of such a loop, by bytes."""
    least_ahead: int
    """Planes that kernels of several steps fetch ahead in three dimensions, at least."""
    staying_instructions: int
    """
    Most instructions of a thread whose plate stays: longer code does not stay in the instruction
    cache.
    """


@dataclass(frozen=True)
class Parameters:
    """All parameters of the cost model."""

    registers: Registers
    spare: Spare
    computing: Computing
    waiting: Waiting
    moving: Moving
    rim: Rim
    worth: Worth
