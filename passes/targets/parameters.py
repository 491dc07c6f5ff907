"""The parameters of the cost model, beside the facts of a kernel and of a part.

Each parameter is an effect without a figure documented by NVIDIA. `passes/targets/fits` has the
values, a file for each GPU of a fit. "By bytes" means by the bytes of a cell's element: 8 for f64,
4 for f32.

The origin of the values, by group:

- `registers` and `spare`: assembled kernels (`Fit.assembled`), with `benchmarks/fit.py
  --registers`.
- `computing`, `waiting`, `moving`, `rim` and `worth`: timed kernels (`Fit.samples`), with
  `benchmarks/fit.py --refit`; `benchmarks/fit.py --rules` judges parameters of a few kernels.
- no sample: the names in `Fit.unfitted`, with values measured once by hand. No kept sample depends
  on such a value, and a refit needs new samples first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from timetile.dialects.tile import Sync


@dataclass(frozen=True)
class Registers:
    """Registers of a thread (32-bit registers, unless a field says otherwise)."""

    fixed: int
    """Registers for addresses, masks, counters and loads in flight, in a streaming thread."""
    per_word: float
    """Registers for each 32-bit word of the planes kept by a stream loop."""
    load: int
    """Addresses of each load beside the first."""
    many_taps: int
    """Taps of a stage from which in-plane neighbours of cells count as registers."""
    shared_row: float
    """Registers for each word of a row read from shared memory, in stages of many taps."""
    level: Mapping[int, int]
    """For each level beyond the second in tiles of several warps, by bytes."""
    sum_level: int
    """
    Registers for each word of a level beyond the second, in tiles of several warps with planes
    entering sums on arrival.
    """
    late_copies: float
    """
    Planes kept beside their slot by copies of edges wider than one cell, if warps arrive and wait
    later: inner rows read them a step longer.
    """
    reach: int
    """
    Registers for each cell beyond the first of the reach along the row, in stages of 4-byte cells
    in strips that keep planes.
    """
    dividing_cell: Mapping[int, int]
    """Registers for each cell and each level with quotients or roots, by bytes."""
    dividing: int
    """Registers for a kernel with quotients or roots, beside those of its cells."""
    approximating: int
    """For each word of a thread's cells where quotients and roots are approximate, in strips."""
    values: int
    """A cell's own values with room in other registers."""
    scalars: int
    """Words of scalars with room in other registers."""
    volume: float
    """Factor on all registers of a thread with a resident volume."""
    resident: int
    """Registers for addresses, masks and loads in flight, in a thread with a resident plate."""
    resident_cell: int
    """Registers for each cell of a row beyond the second, in a thread with a resident plate."""
    held: float
    """
    Planes of a thread's cells that a strip keeps beside the kept planes, if some operation reads
    the oldest plane of a queue when the newest has arrived.
    """
    joining: int
    """Registers for chunks going on in the next column."""
    turns: int
    """For a second turn of a loop over rows of sums, where columns may be joined."""
    turns_level: int
    """Registers for each level of a second turn."""


@dataclass(frozen=True)
class Spare:
    """Registers of a thread kept free for guarded code."""

    guards: Mapping[int, int]
    """By bytes."""
    one_level: int
    """Where at most one level of 8-byte cells is kept, in planes of two axes."""
    dividing: int
    """Where cells divide or take roots."""
    tight: int
    """The least free registers: guarded code may spill a little, as few tiles run it."""
    sums: int
    """Free registers for planes entering sums on arrival."""
    resident: int
    """Free registers for resident plates with more planes than one read and one made."""
    turns: int
    """Where a loop over rows of sums has two turns."""


@dataclass(frozen=True)
class Computing:
    """
    Speed of the pipes, as shares and factors, and instructions of a thread in one stream step.
    """

    pipe_efficiency: float
    """Share of the busiest pipe reached by streamed tiles of one warp not bound by memory."""
    word_strips: float
    """That share for strips of 4-byte cells without quotients."""
    one_cell_speed: float
    """Factor on `pipe_efficiency` for lanes with one cell of a row, in planes of two axes."""
    many_warps_speed: float
    """
    Factor on the speed of tiles of several warps where a multiprocessor holds more than
    `few_warps`.
    """
    many_warps_of_systems: float
    """That factor for steps that write several fields."""
    several_blocks: float
    """Factor on the speed for several blocks of a multiprocessor."""
    resident_efficiency: float
    """Share of the floating-point pipe reached by plates resident in a block, waits included."""
    few_warps: int
    """Up to so many warps a multiprocessor, tiles are as fast as tiles of one warp."""
    fixed_instructions: int
    """Instructions for addresses, slots, masks and the loop."""
    overhead_share: float
    """Share of the instructions without arithmetic not hidden by the busier pipe."""
    guard_instructions: float
    """
    Instructions of a guard beside a select, for each word of a cell, where all tiles have guards.
    """
    sum_guard_instructions: float
    """
    Instructions for each word of a guard of a level beyond the first, for planes entering sums on
    arrival.
    """
    spill_instructions: int
    """Instructions for each register missing for a thread: a store, and a load."""
    spill_cycles: float
    """
    Cycles of a multiprocessor for each 32-bit word that a warp moves between registers and local
    memory, if the first-level cache holds the words.
    """
    far_spill_cycles: float
    """These cycles if the cache does not hold them."""
    fetch_cycles: Mapping[int, float]
    """
    Issue slots lost for each instruction missing in the instruction cache, by the scheduler's
    cycles from an instruction of a warp to its next; linear between the given cycles.
    """
    constants_at_hand: int
    """Long constants kept by registers. A kernel with more makes all of them anew in every step."""
    dividing_warps: Mapping[int, int]
    """Warps hiding the chains of quotients and roots, of four cells each, by bytes."""
    exact_side: Mapping[int, float]
    """Instructions of a quotient's exact side, beside the side that runs, by bytes."""
    dividing_power: float
    """Power of the missing share of hiding warps by which steps take longer."""


@dataclass(frozen=True)
class Waiting:
    """Waits of a stream step or a launch, in seconds."""

    tile_step: float
    """For every step of a tile with several warps: chains at the warps' edges, slots, the loop."""
    barrier: float
    """For the other warps of a block at a barrier."""
    several_blocks: float
    """The share left where several blocks of a multiprocessor hide each other's waits."""
    cluster: float
    """For another block of the cluster."""
    message: Mapping[Sync, float]
    """
    Seconds for another block of the tile, by FLAGS in messages, or at a barrier of the whole GRID.
    """
    message_bytes_per_second: float
    """Bytes a second sent and taken by a multiprocessor without other work."""
    launch: float
    """Seconds of a launch in a graph, beside its work."""
    long_step: int
    """
    Instructions of a step above which a launch takes longer: head, steady part and tail are fetched
    at their first run.
    """
    long_step_instruction: float
    """For each instruction beyond."""
    latency: float
    """Seconds from an access to its data, with a busy memory."""
    exposed_latency: float
    """Share of the latency waited for in every step without planes fetched ahead."""
    spilled: Mapping[int, float]
    """Seconds of a step with spilled words, where warps of a tile exchange rows, by bytes."""


@dataclass(frozen=True)
class Moving:
    """Speed of the memory, as shares and factors of a device copy's speed."""

    overlap_power: int
    """A step's time is the norm of this order of the times for computing and moving cells."""
    word_strips: float
    """Share of a device copy's speed reached by strips of 4-byte cells without quotients."""
    double_strips: float
    """That share for strips of 8-byte cells in single steps."""
    parted_vectors: float
    """
    Factor on the speed of strips of 4-byte cells in a single step, where a lane's cells are no
    whole vectors and rows begin within sectors.
    """
    word_strips_power: int
    """The order of the norm for such strips: computing hides moving, or moving computing."""
    short_row_bytes: int
    """Bytes of a tile's row below which the row moves more slowly."""
    short_row: float
    """Factor on the speed for each halving of the row below the limit."""
    found_in_l2: float
    """Share, found in L2, of the cells loaded by several neighbouring tiles."""
    found_beside: float
    """The share found in L2 if all tiles run one copy of the code and advance together."""
    found_together: float
    """The share found in L2 for kernels of several steps with guards in all tiles."""
    one_ahead: float
    """Factor on the speed for one plane of two axes fetched ahead."""
    dealt: float
    """
    Factor on the speed for lanes copying vectors narrower than their cells, in planes of two axes.
    """
    two_vectors: float
    """Share of the speed at each doubling of a lane's cells beyond 16 bytes, in one dimension."""
    crowded: Mapping[int, float]
    """
    Factor on the speed, by bytes, where the planes brought by a step's loads do not fit into the
    first-level cache beside the shared memory.
    """
    many_fields: float
    """Factor on the speed of streamed volumes where tiles store three fields or more."""
    broken_sectors: float
    """A further factor where rows of four fields or more end within sectors of memory."""
    l2: float
    """Factor on the speed where all fields stay in L2 from launch to launch."""
    l2_share: float
    """Share of L2 that fields may fill to stay in L2."""


@dataclass(frozen=True)
class Reading:
    """Kernels that read every tap from memory."""

    memory: float
    """Share of a device copy's speed reached by the memory."""
    l2_bytes_per_cycle: float
    """Bytes a cycle from L2 to all multiprocessors."""
    one_word: float
    """Factor on the speed of moving for accesses of one 32-bit word."""
    pipes: float
    """Share of the busiest pipe's speed."""
    overlap_power: int
    """A step's time is the norm of this order of the times for memory, L2 and computing."""
    registers: Mapping[int, int]
    """Registers for addresses, masks and loads in flight, by bytes."""
    vector: float
    """Registers for each word of a field's own cells where rows are read in vectors."""
    dividing: int
    """Registers for each word of a cell with quotients or roots."""
    loads: float
    """Loads of a thread that pass at full speed. With more, threads wait for cells."""
    loads_power: float
    """The power of the share of loads beyond, by which a kernel is slower."""
    one_block: float
    """Factor on the speed of blocks alone on a multiprocessor: none begins while another ends."""
    latency: float
    """Seconds that a thread takes, in a step of one kernel, to load its cells and store them."""
    vector_word: float
    """
    Cycles that the first-level cache takes for a word of each lane in vectors of 4-byte cells, in a
    step of one kernel: rows of vectors begin and end beside the cache's lines.
    """


@dataclass(frozen=True)
class RimParameters:
    """
    The cost of a guarded step relative to a step inside the bounds; mappings are by axes of a
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
    images: float
    """Where fields go on beyond the bounds."""
    selects: Mapping[int, float]
    """
    Added where a side of the plane is a mirror or a value, by the axes of a plane times the words
    of a cell: of two words, a select is two instructions, and registers are spilled.
    """
    cut_vectors: float
    """Added for each stored field where a bound lies inside a vector."""
    divided: float
    """
    Added for each stored field and each access more of a vector, where the vector is divided at a
    periodic bound.
    """
    points: Mapping[int, float]
    """A factor on all of these where the kernel has lists of points."""
    dividing: Mapping[int, float]
    """
    Added where several levels of 8-byte cells end in a quotient, of stars or of sums of planes: the
    rim has one loop, with guards along all axes, and more branches of quotients than inside.
    """


@dataclass(frozen=True)
class Worth:
    """
    How predictions of different kinds compare: factors on speeds, and limits for the considered
    schedules.
    """

    level: float
    """
    Factor for each level: the rest of a run is done by shallower kernels, and longer loops are
    assembled longer.
    """
    wide_sum_cells: int
    """Cells of a lane from which several levels of sums are slower than predicted."""
    wide_sums: float
    """Factor on the speed of wide sums."""
    divided_row_cells: int
    """
    Cells of a lane from which several levels of sums by rows with quotients are as fast as
    predicted, in FP32.
    """
    divided_rows: float
    """Factor on the speed of such sums with fewer cells of a lane."""
    divided_pairs: float
    """
    Factor on the speed of streamed volumes in FP64, where several levels have quotients of cells
    side by side.
    """
    many_quotients: int
    """Quotients and roots of a cell from which on tiles fall short of predictions."""
    quotients: float
    """Factor for each level of a tile with so many quotients and roots."""
    many_fields_levels: int
    """Levels from which on streamed volumes of many stored fields fall short of predictions."""
    many_fields: float
    """Factor for each level beyond these."""
    double_levels: int
    """
    Levels of 8-byte cells beyond which streamed volumes with code of the rim's own fall short of
    predictions.
    """
    deep_doubles: float
    """Factor on the speed of such volumes."""
    resident_device: float
    """Factor on the speed of tiles resident on the device."""
    turns: float
    """Factor on the speed of a loop over rows of sums with two turns."""
    turns_taps: Mapping[int, int]
    """Most taps of a thread in a loop of two turns, both turns together, by a cell's bytes."""
    least_ahead: int
    """Least planes fetched ahead by kernels of several steps in three dimensions."""
    resident_instructions: int
    """
    Most instructions of a thread with a resident plate: longer code does not stay in the
    instruction cache.
    """


@dataclass(frozen=True)
class Parameters:
    """All parameters of the cost model."""

    registers: Registers
    spare: Spare
    computing: Computing
    waiting: Waiting
    moving: Moving
    reading: Reading
    rim: RimParameters
    worth: Worth
