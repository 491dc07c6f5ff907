"""Fields of a program as large as needed by the accesses, or a little larger on some sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from support.description import Box, Program, Update, cycles_of
from support.expressions import Offset, Tap


@dataclass(frozen=True)
class Access:
    """Cells of a field in an update's reads or writes."""

    name: str
    cells: Box


def hull(a: Box, b: Box) -> Box:
    """The smallest box around two."""
    return Box(tuple(map(min, a.lower, b.lower)), tuple(map(max, a.upper, b.upper)))


def moved(box: Box, offset: Offset) -> Box:
    """The cells of a box, shifted by an offset."""
    return Box(
        tuple(low + d for low, d in zip(box.lower, offset, strict=True)),
        tuple(high + d for high, d in zip(box.upper, offset, strict=True)),
    )


def accesses(updates: tuple[Update, ...] | list[Update]) -> list[Access]:
    """All reads and writes of a step's updates."""
    found: list[Access] = []
    for update in updates:
        for store in update.stores:
            found.append(Access(store.buffer, store.box))
            taps = [node for node in update.nodes if isinstance(node, Tap)]
            found += [Access(tap.buffer, moved(store.box, tap.offset)) for tap in taps]
    return found


def with_own_bounds(draw: st.DrawFn, program: Program) -> Program:
    """The program with separate bounds for each field; the buffers of a cycle have one type."""
    group = {name: {name} for name in (buffer.name for buffer in program.buffers)}
    for cycle in cycles_of(program.rotation):
        names = {program.carried[k] for k in cycle}
        group |= dict.fromkeys(names, names)
    needed: dict[str, Box] = {}
    for access in accesses(program.updates):
        for name in group[access.name]:
            needed[name] = hull(needed[name], access.cells) if name in needed else access.cells
    grown: dict[str, Box] = {}
    for buffer in program.buffers:
        name = buffer.name
        if name not in needed:
            grown[name] = buffer.bounds
        elif (twin := next((n for n in group[name] if n in grown), None)) is not None:
            grown[name] = grown[twin]
        else:
            # Kernels read fields of fewer axes in place, and see no cell around the needed cells.
            more = [0, 0, 0, 1, 2] if buffer.axes is None else [0, 0, 1, 45]
            low, high = (
                tuple(draw(st.sampled_from(more)) for _ in needed[name].lower) for _ in range(2)
            )
            grown[name] = needed[name].grown(low, high)
    buffers = tuple(replace(buffer, bounds=grown[buffer.name]) for buffer in program.buffers)
    return replace(program, buffers=buffers)
