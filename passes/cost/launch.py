"""The cost of a launch: what `choose-schedule` compares candidates by.

The terms of one stream step are the floating-point pipe, the issue slots and the shared-memory pipe
(`step.py`), waits for other warps and blocks (`waiting.py`), and memory traffic (`traffic.py`). A
launch takes as many steps as the slot that is done last: chunks, waves and guarded tiles
(`analysis/geometry/chunks.py`). Every function is pure: facts of a kernel, a setting and a target
in, a number out.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import ModuleOp

from timetile.dialects.tile import KernelOp
from timetile.passes.analysis.block_memory import BlockMemory
from timetile.passes.analysis.geometry.chunks import choose_chunks
from timetile.passes.analysis.geometry.kernel_geometry import Geometry
from timetile.passes.analysis.geometry.residency import Residency
from timetile.passes.cost.facts import KernelFacts, facts_of
from timetile.passes.cost.memory_reads import memory_cost
from timetile.passes.cost.register_facts import register_facts
from timetile.passes.cost.registers import registers
from timetile.passes.cost.rim import edge_weight
from timetile.passes.cost.setting import Setting
from timetile.passes.cost.shared_memory import shared_bytes
from timetile.passes.cost.step import computing_seconds, step_cycles
from timetile.passes.cost.terms import Cost, StepCycles
from timetile.passes.cost.traffic import moving_seconds
from timetile.passes.cost.waiting import exposed_seconds, spilled_seconds, waiting_seconds
from timetile.passes.targets.hardware import SCHEDULERS
from timetile.passes.targets.target import Target


def launch_seconds(facts: KernelFacts, target: Target, cycles: StepCycles) -> float:
    """
    Seconds of a launch beside its steps: more for long code of several levels in a block tile.
    """
    waiting = target.parameters.waiting
    if not (facts.shape.streams and facts.exchanges and facts.steps > 1):
        return waiting.launch
    more = max(0.0, cycles.issue * SCHEDULERS - waiting.long_step)
    return waiting.launch + waiting.long_step_instruction * more


def launch_cost(
    facts: KernelFacts, setting: Setting, geometry: Geometry, target: Target, ahead: int
) -> Cost:
    """The cost of one launch of a kernel with planes fetched `ahead` stream steps before use."""
    parameters, sums = target.parameters, facts.sums_early
    residency = Residency.of_layout(setting.layout, setting.occupancy, target)
    weight = edge_weight(
        geometry, setting.guards, parameters.rim, sums=sums, planes=facts.natural_period
    )
    chunks = choose_chunks(geometry, residency, weight, sums=sums, joins=setting.joins)
    cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
    cycles = step_cycles(facts, setting, target)
    shared = shared_bytes(facts, setting, geometry, ahead)
    counted = register_facts(facts, setting)
    needed = registers(counted, parameters.registers)
    missing = max(0, needed - target.isa.registers_for(counted.threads))
    spills = parameters.computing.spill_instructions * missing
    slower = 1 + spills / (cycles.issue * SCHEDULERS)
    # A resident tile fetches nothing ahead; with two blocks, a block computes while the other
    # waits.
    overlaps = facts.shape.streams or setting.occupancy > 1
    moving = parameters.moving
    power = moving.word_strips_power if facts.is_strip_of_words else moving.overlap_power
    return Cost(
        registers=needed,
        shared_bytes=shared,
        steps=chunks.steps,
        cycles=cycles,
        compute_seconds=slower * computing_seconds(facts, setting, target, cycles, chunks.tiles),
        memory_seconds=moving_seconds(
            facts, setting, geometry, target, tiles=chunks.tiles, ahead=ahead, shared=shared
        ),
        updates=facts.steps * cells,
        valid=prod(axis.useful / axis.layout.extent for axis in geometry.axes),
        waiting_seconds=waiting_seconds(facts, setting, target),
        overlap_power=power if overlaps else 1,
        launch_seconds=launch_seconds(facts, target, cycles),
        exposed_seconds=exposed_seconds(facts, target, ahead),
        spilled_seconds=spilled_seconds(facts, target),
        counted_spills=slower,
        has_further_blocks=facts.shape.streams and chunks.tiles > residency.tiles,
    )


def predict(kernel: KernelOp, module: ModuleOp, target: Target) -> Cost:
    """The cost of a launch of a placed kernel with variants."""
    geometry, facts = Geometry(kernel), facts_of(kernel, module)
    if kernel.reads_memory:
        cells = prod(high - low for low, high in zip(geometry.lower, geometry.upper))
        return memory_cost([kernel], module, target, cells)
    cost = launch_cost(facts, Setting.of_kernel(kernel), geometry, target, geometry.ahead)
    return replace(cost, shared_bytes=BlockMemory.of(geometry).bytes)
