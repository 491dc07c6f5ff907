"""Registers of a thread: the need of a kernel, the additional need of guards, and the supply of a
multiprocessor.
"""

from __future__ import annotations

from math import ceil, floor

from timetile.passes.analysis.queues.storage import power_of_two
from timetile.passes.cost.facts import KernelFacts
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import slots_of_copies
from timetile.passes.cost.taps import cells_around, span
from timetile.passes.targets.target import Target


def is_strip(facts: KernelFacts, setting: Setting) -> bool:
    """Planes of one axis are streamed."""
    return facts.streams and len(setting.axes) == 1


def is_resident_plate(facts: KernelFacts, setting: Setting) -> bool:
    """Nothing is streamed, and tiles have two axes: a thread holds rows."""
    return not facts.streams and len(setting.axes) == 2


def is_resident_volume(facts: KernelFacts, setting: Setting) -> bool:
    """Nothing is streamed, and tiles have three axes: a thread holds planes."""
    return not facts.streams and len(setting.axes) == 3


def body_words(facts: KernelFacts, setting: Setting) -> int:
    """
    32-bit words of the cells' own values alive at once: of one cell, or, where cells share values,
    of all cells of a thread. Values shared by cells of several planes are kept from one stream step
    to another, for every level.
    """
    most = kept = 0
    for cells in [stage.sharing for stage in facts.stages if stage.sharing is not None]:
        plane = cells.words((1, *setting.patch))
        most = max(most, plane)
        if facts.streams:
            kept += cells.words((1 + facts.natural_period, *setting.patch)) - plane
    return max(facts.live_words, most + kept)


def body_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """
    Registers of cells' own values, and of scalars, beyond the room in other registers. The
    registers of quotients hold shared values, too.
    """
    room = target.parameters.registers
    shared = body_words(facts, setting) - facts.live_words
    beyond = max(0, shared - quotient_registers(facts, setting, target))
    values = max(0, facts.live_words + beyond - room.values)
    return values + max(0, facts.scalar_words - room.scalars)


def quotient_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """Registers of quotients and roots, rounded or approximate, of a thread's cells."""
    parameters, cells, most = target.parameters.registers, setting.thread_cells, 0
    if facts.dividing:
        each = parameters.dividing_cell[4 * facts.words]
        most += cells * each * facts.dividing + parameters.dividing
    if facts.approximates and is_strip(facts, setting):
        most += parameters.approximating * facts.words * cells
    return most


def fixed_registers(facts: KernelFacts, setting: Setting) -> int:
    """Registers of cells of fields of fewer axes, read once for all stream steps."""
    return sum(cells.registers(setting.patch) for cells in facts.fixed)


def resident_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """
    Registers of a thread with a resident plate: planes alive at once, and neighbours of boxes.
    """
    parameters = target.parameters.registers
    planes = facts.words_per_cell * setting.thread_cells + fixed_registers(facts, setting)
    wide = parameters.resident_cell * max(0, setting.row_cells - 2)
    if setting.has_messages:
        # Registers hold the cells sent by neighbouring blocks beside the planes (without the term,
        # wide stars spilled).
        widest = max((exchange.edges[0] for exchange in facts.exchanges), default=0)
        wide += 2 * widest * setting.row_cells * facts.words
    if any(all(tap.offset) for tap in facts.taps):
        planes += facts.words * (cells_around(setting.patch, facts.taps) - setting.thread_cells)
    return parameters.resident + planes + wide + body_registers(facts, setting, target)


def kept_plane_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """Registers of a thread's kept planes, with the needs of stages for each cell."""
    parameters, cells = target.parameters.registers, setting.thread_cells
    planes = facts.words_per_cell * cells
    if facts.streams:
        planes = ceil(planes * parameters.per_word)
    if facts.sums_early:
        # The newest plane is in registers beside the sums that the plane enters.
        planes += facts.words * cells
    wide = any(exchange.copies and exchange.edges[0] > 1 for exchange in facts.exchanges)
    if setting.splits and wide and facts.steps > 1:
        planes += ceil(parameters.late_copies * facts.words * cells)
    return planes + quotient_registers(facts, setting, target)


def level_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """Registers of levels beside planes: guards, and places of shifted slots."""
    parameters = target.parameters.registers
    levels = facts.words * facts.steps // 2 + facts.words * facts.boxed
    if len(setting.axes) == 2:
        sums = facts.sums_early
        each = parameters.sum_level * facts.words if sums else parameters.level[4 * facts.words]
        levels += each * max(0, facts.steps - 2)
    elif is_strip(facts, setting) and facts.words == 1 and not facts.sums_early:
        levels += parameters.reach * max(0, facts.row_reach - 1)
    rings = [slots_of_copies(e, setting, 1) for e in facts.exchanges if e.copies]
    return levels + sum(slots for slots in rings if slots != power_of_two(slots))


def neighbour_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """
    Registers of neighbours at hand at once, for cells with many taps: all shuffled neighbours of a
    plane, the neighbours of a row read from shared memory, and the neighbours of one level for
    planes entering sums on arrival.
    """
    parameters, patch, cells = target.parameters.registers, setting.patch, setting.thread_cells
    most = 0
    if facts.sums_early and len(setting.axes) == 2:
        most = facts.words * (cells_around(patch, facts.taps) - cells)
    served = facts.served
    for stage in facts.stages:
        read = [tap for queue, tap in stage.taps if queue in served]
        shuffled = [tap for queue, tap in stage.taps if queue not in served]
        if len(read) > parameters.many_taps:
            row = setting.row_cells + span([tap.offset[-1] for tap in read])
            most = max(most, floor(parameters.shared_row * facts.words * setting.rows * row))
        elif len(shuffled) > parameters.many_taps:
            most = max(most, facts.words * (cells_around(patch, shuffled) - cells))
    return most


def registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """Registers of a thread: planes, arriving cells, neighbours, and other needs of levels."""
    if is_resident_plate(facts, setting):
        return resident_registers(facts, setting, target)
    parameters = target.parameters.registers
    arriving = facts.words * setting.thread_cells + parameters.load
    others = len(facts.loads) - 1 if facts.loads and facts.streams else 0
    total = (
        parameters.fixed
        + kept_plane_registers(facts, setting, target)
        + level_registers(facts, setting, target)
        + others * arriving
        + neighbour_registers(facts, setting, target)
        + body_registers(facts, setting, target)
        + fixed_registers(facts, setting)
    )
    return ceil(parameters.volume * total) if is_resident_volume(facts, setting) else total


def guard_registers(facts: KernelFacts, setting: Setting, target: Target) -> int:
    """Registers of guarded code beside `registers`: each kept level has guards."""
    spare = target.parameters.spare
    if is_resident_plate(facts, setting):
        return spare.resident if facts.words_per_cell > 2 * facts.words else 0
    if is_resident_volume(facts, setting):
        return 0
    if facts.dividing:
        return spare.dividing
    one_level = facts.steps <= 2 and len(setting.axes) == 2 and facts.words == 2
    return spare.one_level if one_level else spare.guards[4 * facts.words]


def room(setting: Setting, target: Target) -> int:
    """Registers available to a thread."""
    threads = setting.layout.threads * setting.occupancy
    return min(target.isa.registers_per_thread, target.isa.registers_per_multiprocessor // threads)


def spilled(needed: int, setting: Setting, target: Target) -> int:
    """Registers not available to a thread that needs so many."""
    return max(0, needed - room(setting, target))
