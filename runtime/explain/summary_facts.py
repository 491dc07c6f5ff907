"""The summary of a time loop, or a sweep, in sentences: speed, limits, possible changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from timetile.dialects.temporal.sweep import PART_PLACES
from timetile.runtime.explain.data import Explanation, Fact, LoopSummary, Resources, SweepSummary


def product(counts: Iterable[int]) -> str:
    """Numbers with crosses in between: `6 x 32`."""
    return " x ".join(map(str, counts))


def plural(count: int, noun: str) -> str:
    """A number and a noun: `1 step`, `2 steps`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def summary_facts(loop: LoopSummary) -> Iterator[Fact]:
    """The summary of a loop, a fact a line."""
    yield Fact(
        "A step",
        f"updates {product(loop.cells)} cells ({loop.element}), reads neighbours up to "
        f"{plural(loop.radius, 'cell')} away; {loop.bytes_read} bytes read, {loop.bytes_written} "
        f"written and {loop.flops} flops per cell",
    )
    if loop.points is not None:
        yield Fact("Points", loop.points)
    if loop.edges is not None:
        yield Fact("Edges", loop.edges)
    if loop.series is not None:
        yield Fact("Series", loop.series)
    yield Fact(
        "GCells/s predicted",
        f"{loop.gcells_per_second:.0f} on {loop.target}, by launches of "
        f"{plural(loop.depth, 'step')} that take {loop.launch_seconds * 1e6:.3g} us each",
    )
    if loop.scaled is not None:
        yield Fact("The prediction", loop.scaled)
    if loop.measured is not None:
        yield Fact("GCells/s measured", loop.measured)
    yield Fact(
        "Without fusion",
        f"at most {loop.single_step_bound:.0f} GCells/s, the memory bound of one step per launch",
    )
    yield Fact("Limited by", loop.limit)
    yield Fact(
        "A tile",
        f"computes {product(loop.tile)} cells and stores {product(loop.stored)}; "
        f"{loop.redundancy:.2f} cells are computed per cell that is used",
    )
    filled = (
        "" if loop.fill is None else f", {loop.fill:.0%} of the blocks that the GPU holds at once"
    )
    yield Fact(
        "A launch",
        f"of @{loop.kernel} has {plural(loop.blocks, 'block')} of {loop.threads} threads" + filled,
    )
    yield Fact("A block", resources_text(loop.resources))
    yield Fact("Next best schedule", alternative_text(loop))
    if not loop.advice:
        yield Fact(
            "To change", "nothing known; --depth N and --pipeline PASSES try other schedules"
        )
    for advice in loop.advice:
        yield Fact("To change", advice)


def resources_text(found: Resources) -> str:
    """The resources of a block, in a line."""
    shared = f"{found.shared_bytes} bytes of shared memory"
    if found.registers is None:
        return (
            f"takes {shared}; its registers are unknown without the assembler "
            '(pip install "timetile[assembler]")'
        )
    spills = f"{found.spill_bytes} bytes spilled" if found.spill_bytes else "none spilled"
    if found.spill_bytes and not found.spill_words:
        spills += " at the rim, none inside"
    return (
        f"takes {found.registers} registers a thread ({spills}) and {shared}; a multiprocessor "
        f"holds {plural(found.blocks or 0, 'block')} of {plural(found.warps or 0, 'warp')} each, "
        f"limited by {found.limit}"
    )


def alternative_text(loop: LoopSummary) -> str:
    """The best schedule not chosen, in a line."""
    other = loop.alternative
    if other is None:
        return "none was compared"
    return (
        f"{other.gcells_per_second:.0f} GCells/s predicted, by launches of "
        f"{plural(other.depth, 'step')} with {product(other.cells)} cells a thread"
    )


def title(explanation: Explanation, loop: LoopSummary) -> str:
    """The heading of a loop's summary."""
    name = f"@{explanation.function}"
    return name if len(explanation.loops) == 1 else f"{name}, {loop.title.lower()}"


def sweep_facts(sweep: SweepSummary) -> Iterator[Fact]:
    """The summary of a sweep, a fact a line."""
    yield Fact(
        "A sweep",
        f"goes through {product(sweep.cells)} cells ({sweep.element}) along axis {sweep.axis}, "
        f"{sweep.direction}; {sweep.bytes_read} bytes read, {sweep.bytes_written} written and "
        f"{sweep.flops} flops per cell",
    )
    yield Fact("Kept in registers", sweep.kept or "nothing: no result of a place before is read")
    yield Fact(
        "Bound",
        f"at most {sweep.bound:.0f} GCells/s on {sweep.target}, as each field goes through memory "
        "once in a sweep",
    )
    yield launch_fact(sweep)
    if sweep.slots:
        yield Fact(
            "Shared memory",
            f"of a block holds {plural(sweep.slots, 'segment')} of each of "
            f"{plural(sweep.group, 'line')}, copied by all threads of the block",
        )
    if sweep.ring:
        yield Fact(
            "Shared memory",
            f"of a block holds the cells of {plural(sweep.ring, 'turn')} of "
            f"{plural(sweep.places_of_turn, 'place')}, copied by each thread for itself",
        )
    if sweep.registers is not None:
        spills = f"{sweep.spill_bytes} bytes spilled" if sweep.spill_bytes else "none spilled"
        yield Fact("A thread", f"takes {sweep.registers} registers ({spills})")
    for advice in sweep.advice:
        yield Fact("To change", advice)


def launch_fact(sweep: SweepSummary) -> Fact:
    """The launch of a sweep: blocks, threads, and what a thread has."""
    launch = f"of @{sweep.kernel} has {plural(sweep.blocks, 'block')} of {sweep.threads} threads"
    if sweep.parts:
        return Fact(
            "A launch",
            f"{launch}, a thread for each of {plural(sweep.parts, 'part')} of {PART_PLACES} "
            "places; a block takes the sums of blocks before",
        )
    lines = f"{sweep.beside} " if sweep.beside > 1 else ""
    asked = f", and asks for places {sweep.ahead} ahead" if sweep.ahead else ""
    return Fact(
        "A launch",
        f"{launch}, a thread for each {lines}of {plural(sweep.lines, 'line')}; a thread loads "
        f"{plural(sweep.places_of_turn, 'place')} at once{asked}",
    )
