"""Registers of a thread: the need of a kernel, and the additional need of guards. The supply is
`Isa.registers_for`. `benchmarks/fit.py --registers` compares the functions with assembled kernels.
"""

from __future__ import annotations

from math import ceil, floor

from timetile.passes.analysis.geometry.tile_shape import TileShape
from timetile.passes.cost.register_facts import RegisterFacts
from timetile.passes.targets.parameters import Parameters, Registers

SUM_NEIGHBOURS = 8
"""
Words of neighbours at hand for each further cell of a thread, in sums of several partial sums:
tilted media of 73 points with 8 fields take 87, 159 and 230 registers for one, two and three cells.
"""


MANY_LOADS, FEW_SPARE = 6, 5
"""
Loads from which the count is high enough for guards, with so few registers to spare: Yee's
equations with four steps in FP32 are counted at 249 and take 238, with three steps in FP64 247 and
241.
"""


def body_registers(facts: RegisterFacts, parameters: Registers) -> int:
    """
    Registers of cells' own values, and of scalars, beyond the room in other registers. The
    registers of quotients hold shared values, too. Scalars of 32 bits need none: few have room, and
    many are read by the instructions that use them (assembled: a kernel with 400 has 152 registers
    in all). Beside hundreds of 64 bits, the assembler takes minutes for tiles that keep planes.
    """
    shared = facts.body_words - facts.live_words
    beyond = max(0, shared - quotient_registers(facts, parameters))
    values = max(0, facts.live_words + beyond - parameters.values)
    scalars = 0 if facts.words == 1 else facts.scalar_words
    return values + max(0, scalars - parameters.scalars)


def quotient_registers(facts: RegisterFacts, parameters: Registers) -> int:
    """Registers of quotients and roots, rounded or approximate, of a thread's cells."""
    most = 0
    if facts.dividing:
        each = parameters.dividing_cell[4 * facts.words]
        most += facts.cells * each * facts.dividing + parameters.dividing
    if facts.approximates and facts.shape is TileShape.STRIP:
        most += parameters.approximating * facts.words * facts.cells
    return most


def resident_registers(facts: RegisterFacts, parameters: Registers) -> int:
    """
    Registers of a thread with a resident plate: planes alive at once, and neighbours of boxes.
    """
    planes = facts.words_per_cell * facts.cells + facts.fixed_words
    wide = parameters.resident_cell * max(0, facts.row_cells - 2)
    # Registers hold the cells sent by neighbouring blocks beside the planes (without the term, wide
    # stars spilled).
    wide += 2 * facts.message_edge * facts.row_cells * facts.words
    if facts.has_corners:
        planes += facts.words * facts.around
    return parameters.resident + planes + wide + body_registers(facts, parameters)


def kept_plane_registers(facts: RegisterFacts, parameters: Registers) -> int:
    """Registers of a thread's kept planes, with the needs of stages for each cell."""
    planes = facts.words_per_cell * facts.cells
    if facts.shape.streams:
        planes = ceil(planes * parameters.per_word)
    if facts.sums_early:
        # The newest plane is in registers beside the sums that the plane enters.
        planes += facts.words * facts.cells
    if facts.splits and facts.wide_copies and facts.steps > 1:
        planes += ceil(parameters.late_copies * facts.words * facts.cells)
    if facts.holds_oldest and facts.shape is TileShape.STRIP:
        planes += ceil(parameters.held * facts.words * facts.cells)
    return planes + quotient_registers(facts, parameters)


def level_registers(facts: RegisterFacts, parameters: Registers) -> int:
    """Registers of levels beside planes: guards, and places of shifted slots."""
    levels = facts.words * facts.steps // 2 + facts.words * facts.boxed
    if facts.shape is TileShape.PENCIL:
        sums, level = parameters.sum_level * facts.words, parameters.level[4 * facts.words]
        levels += (sums if facts.sums_early else level) * max(0, facts.steps - 2)
    elif facts.shape is TileShape.STRIP and facts.words == 1 and not facts.sums_early:
        levels += parameters.reach * max(0, facts.row_reach - 1)
    return levels + facts.odd_slots


def neighbour_registers(facts: RegisterFacts, parameters: Registers) -> int:
    """
    Registers of neighbours at hand at once, for cells with many taps: all shuffled neighbours of a
    plane, the neighbours of a row read from shared memory, and the neighbours of one level for
    planes entering sums on arrival.
    """
    if facts.carries_sums:
        # The parts of a sum read their neighbours one after the other.
        return SUM_NEIGHBOURS * facts.words * (facts.cells - 1)
    most = 0
    if facts.sums_early and facts.shape is TileShape.PENCIL:
        most = facts.words * facts.around
    for stage in facts.stages:
        if stage.read > parameters.many_taps:
            most = max(most, floor(parameters.shared_row * facts.words * facts.rows * stage.row))
        elif stage.shuffled > parameters.many_taps:
            most = max(most, facts.words * stage.around)
    return most


def registers(facts: RegisterFacts, parameters: Registers) -> int:
    """Registers of a thread: planes, arriving cells, neighbours, and other needs of levels."""
    if facts.shape is TileShape.PLATE:
        return resident_registers(facts, parameters)
    # Cells of coefficients are read from the copies at the end of a sum, one after the other.
    own = 0 if facts.carries_sums else facts.words * facts.cells
    arriving = own + parameters.load
    others = facts.loads - 1 if facts.loads and facts.shape.streams else 0
    total = (
        parameters.fixed
        + kept_plane_registers(facts, parameters)
        + level_registers(facts, parameters)
        + others * arriving
        + neighbour_registers(facts, parameters)
        + body_registers(facts, parameters)
        + facts.fixed_words
    )
    return ceil(parameters.volume * total) if facts.shape is TileShape.VOLUME else total


def guard_registers(facts: RegisterFacts, parameters: Parameters) -> int:
    """Registers of guarded code beside `registers`: each kept level has guards."""
    spare = parameters.spare
    if facts.shape is TileShape.PLATE:
        return spare.resident if facts.words_per_cell > 2 * facts.words else 0
    if facts.shape is TileShape.VOLUME:
        return 0
    if facts.dividing:
        return spare.dividing
    is_pencil = facts.shape is TileShape.PENCIL
    one_level = is_pencil and facts.steps <= 2 and facts.words == 2
    return spare.one_level if one_level else spare.guards[4 * facts.words]


def spare_registers(facts: RegisterFacts, parameters: Parameters) -> int:
    """Registers to spare for the copies with guards, below which a schedule is left out."""
    spare, guards = parameters.spare, guard_registers(facts, parameters)
    if facts.shape is TileShape.STRIP:
        # In 1D no plane is kept in registers; in 3D up to a third of the tiles may be guarded.
        return min(guards, spare.tight)
    # Early sums need more spare registers than other kernels in FP32, and fewer in FP64.
    if facts.sums_early:
        return spare.sums
    return min(guards, FEW_SPARE) if facts.loads >= MANY_LOADS else guards
