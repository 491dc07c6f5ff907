"""The computing of a stream step: instructions of a thread, cycles of the pipes, and seconds of a
multiprocessor.
"""

from __future__ import annotations

from functools import partial

from xdsl.ir import Attribute, SSAValue

from timetile.dialects.cell_types import CELL_BYTES, STORED_TYPES
from timetile.dialects.syntax import element_type
from timetile.dialects.tile import ExchangeOp, Guards, LoadOp, queue_type
from timetile.passes.analysis.geometry.plane_geometry import vector_cells
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.analysis.queues.shared_coefficients import lives_in_copies
from timetile.passes.cost.facts import (
    ExchangeFacts,
    KernelFacts,
    field_bytes,
    is_widened,
    queue_bytes,
)
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.stage_facts import StageFacts
from timetile.passes.cost.taps import neighbours, wavefronts
from timetile.passes.cost.terms import Moves, StepCycles
from timetile.passes.cost.turn import period_of
from timetile.passes.cost.waiting import is_resident_in_a_block, waiting_seconds
from timetile.passes.targets.hardware import LANES, SCHEDULERS, VECTOR_BYTES
from timetile.passes.targets.target import Target

USUAL_CELLS = 4
"""
Cells of a thread side by side with which chains of quotients were timed. Where each level has a
branch of its own, a row of more cells has more chains at once: boxes of nine in FP32, seven levels
in rows of eight cells by eight warps, run at 1636 and 1542 GCells/s on an H200, and four levels of
more warps at 1525 and 1516. Levels of stars share branches of some registers, fewer levels with
more cells: eight cells are 3 to 13% slower there. FP64 was not timed.
"""

ADDRESS_OF_A_SLOT = 3
"""Instructions for the slot of an older plane in a ring of copies: add, mask, scale."""


def stage_work(stage: StageFacts, setting: Setting) -> tuple[float, float]:
    """
    Instructions of a stage for a thread's cells in a step, on the floating-point pipe and beside
    the pipe. Work shared by cells, side by side or from step to step, counts once.
    """
    if stage.sharing is None:
        return setting.thread_cells * stage.operations, setting.thread_cells * stage.helpers
    # What a further step adds: the work of two steps less the work of one.
    pipe, beside = stage.sharing.work((2, *setting.patch))
    alone = stage.sharing.work((1, *setting.patch))
    return pipe - alone[0], beside - alone[1]


def fetches(facts: KernelFacts, setting: Setting) -> Moves:
    """Shuffled words, and aligned vectors from shared memory, for all queues tapped by a thread."""
    moves = Moves(0.0, 0.0)
    for queue, taps in facts.tapped:
        element = element_in_shared(queue)
        group = vector_cells(setting.row_cells, element)
        shuffled, vectors = neighbours(taps, setting.patch, group)
        words = shuffled * (queue_bytes(queue) // 4)
        # Each narrow cell has a conversion.
        converted = vectors * group if element != queue_type(queue).element else 0
        shared = words + vectors * wavefronts(group, CELL_BYTES[element])
        moves = moves.and_also(Moves(words + vectors + converted, shared))
    return moves


def element_in_shared(queue: SSAValue) -> Attribute:
    """The type of a queue's cells where other warps find them."""
    stage = queue.owner
    return stage.element if isinstance(stage, ExchangeOp) else queue_type(queue).element


def older_reads(facts: KernelFacts, load: LoadOp) -> int:
    """The older planes of a load's copies that levels read in a stream step."""
    if not lives_in_copies(load.result):
        return 0
    ages = {tap.age for queue, taps in facts.tapped if queue is load.result for tap in taps}
    return len(ages - {0})


def loads_and_edges(facts: KernelFacts, setting: Setting) -> Moves:
    """Copies arriving in shared memory and read again, and published edges."""
    moves, cells = Moves(0.0, 0.0), setting.thread_cells
    for load in facts.loads:
        size = field_bytes(load.field)
        vectors = cells / vector_cells(setting.row_cells, element_type(load.field))
        converted = cells if is_widened(load) else 0
        moves = moves.and_also(Moves(2 * vectors + converted, 2 * wavefronts(cells, size)))
        # Each level finds the slot of its plane, and reads own cells.
        more = older_reads(facts, load)
        each = ADDRESS_OF_A_SLOT + vectors + converted
        moves = moves.and_also(Moves(more * each, more * wavefronts(cells, size)))
    for exchange in facts.exchanges:
        if not exchange.copies:
            moves = moves.and_also(published_edges(exchange, setting))
    return moves


def published_edges(exchange: ExchangeFacts, setting: Setting) -> Moves:
    """
    The cells of an exchange that a warp stores for others. Of a single row, the lanes at both ends
    store cells, and read as many, while others wait.
    """
    size, cells = exchange.cell_bytes, setting.thread_cells
    if not exchange.whole and len(setting.axes) == 1:
        ends = 2 * exchange.edges[0] / vector_cells(setting.row_cells, exchange.element)
        return Moves(3 * ends, 2 * ends)
    published = cells if exchange.whole else 2 * exchange.edges[0] * setting.row_cells
    return Moves(published * size / VECTOR_BYTES, wavefronts(published, size))


def moved_cells(facts: KernelFacts, setting: Setting) -> Moves:
    """
    Fetches, copies and edges of a step. Settings of one patch move equal cells: found once for a
    patch.
    """
    known = facts.moves.get(setting.patch)
    if known is None:
        known = fetches(facts, setting).and_also(loads_and_edges(facts, setting))
        facts.moves[setting.patch] = known
    return known


def store_instructions(setting: Setting, field: SSAValue) -> float:
    """Instructions that store a thread's cells; two cells of 16 bits are packed in one."""
    element, cells = element_type(field), setting.thread_cells
    packed = cells * CELL_BYTES[element] / 4 if element in STORED_TYPES else 0.0
    return cells / vector_cells(setting.row_cells, element) + packed


def moves_of_step(facts: KernelFacts, setting: Setting, target: Target) -> Moves:
    """
    All instructions of a step beside the computing of cells, and the cycles of the shared-memory
    pipe.
    """
    computing, cells = target.parameters.computing, setting.thread_cells
    moves = Moves(float(computing.fixed_instructions), 0.0).and_also(moved_cells(facts, setting))
    more = sum(map(partial(store_instructions, setting), facts.stored))
    if facts.long_constants > computing.constants_at_hand and not facts.shape.has_rows:
        more += 2 * facts.long_constants
    period = period_of(facts, setting)
    if period < facts.natural_period:
        # Planes that outlive a copy of the loop body are moved at the end of the body.
        outlive = 1 / period - 1 / facts.natural_period
        more += (facts.words_per_cell - facts.words) * cells * outlive
    return moves.and_also(Moves(more, 0.0))


def guard_instructions(facts: KernelFacts, setting: Setting, target: Target) -> float:
    """
    Instructions of a thread's guards if all tiles have guards. For guards of few tiles see the
    makespan.
    """
    if setting.guards is Guards.RIM:
        return 0.0
    computing, levels, words = target.parameters.computing, facts.replaced_levels, facts.words
    beside = levels * computing.guard_instructions
    if facts.sums_early and levels:
        beside = words * (
            computing.guard_instructions + (levels - 1) * computing.sum_guard_instructions
        )
    return setting.thread_cells * (levels * words + beside)


def step_cycles(facts: KernelFacts, setting: Setting, target: Target) -> StepCycles:
    """Cycles of a multiprocessor's pipes for one stream step of one warp."""
    computing = target.parameters.computing
    pipe, work = 0.0, 0.0
    beside = 0.0
    for stage in facts.stages:
        operations, helpers = stage_work(stage, setting)
        work += operations
        beside += helpers
        pipe += operations * LANES / target.isa.fma_per_cycle[stage.cell_bytes]
    moved, shared = moves_of_step(facts, setting, target)
    issued = work + beside + moved
    guards = guard_instructions(facts, setting, target)
    return StepCycles(
        pipe,
        issued / SCHEDULERS,
        shared,
        (computing.overhead_share * moved + guards) / SCHEDULERS,
    )


def computing_seconds(
    facts: KernelFacts, setting: Setting, target: Target, cycles: StepCycles, tiles: int
) -> float:
    """Seconds of one stream step on the multiprocessor with most tiles of a launch."""
    computing = target.parameters.computing
    residency = Residency.of_layout(setting.layout, setting.occupancy, target)
    blocks = residency.blocks(tiles)
    busy = cycles.total * residency.busy_warps(tiles)
    if blocks > 1:
        busy /= computing.several_blocks
    seconds = busy / (target.part.clock_ghz * 1e9)
    if facts.dividing:
        enough = computing.dividing_warps[4 * facts.words]
        wide = facts.words == 1 and setting.row_cells > USUAL_CELLS
        more = wide and facts.lanes_meet
        chains = residency.warps * (setting.row_cells / USUAL_CELLS if more else 1)
        seconds *= max(1.0, enough / chains) ** computing.dividing_power
    if facts.is_strip_of_words:
        return seconds / computing.word_strips
    if not facts.exchanges:
        return seconds / computing.pipe_efficiency
    if is_resident_in_a_block(facts, setting):
        return seconds * cycles.pipe / cycles.total / computing.resident_efficiency
    if setting.row_cells == 1:
        seconds /= computing.one_cell_speed
    if residency.warps > computing.few_warps:
        several = len(facts.stored) > 1
        seconds /= computing.many_warps_of_systems if several else computing.many_warps_speed
    waits = waiting_seconds(facts, setting, target)
    if blocks > 1:
        waits *= target.parameters.waiting.several_blocks / blocks
    return seconds + target.parameters.waiting.tile_step + waits
