"""A section about several GPUs: what exchanges of ghosts cost, by launches between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from timetile.dialects.decomposition import Decomposition
from timetile.passes.diagnostics import refuse
from timetile.passes.loops.cut_domain import Domain
from timetile.runtime.explain.data import Fact, Section
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.ranks.exchange_choice import ExchangeChoice, ExchangeCost, RimWay
from timetile.runtime.ranks.layout import slab_layout
from timetile.runtime.ranks.part_kernels import PartKernels
from timetile.runtime.ranks.part_layout import kernels_of_layout

COLUMNS = (
    "launches", "steps", "rims", "a launch (us)", "of these, ghosts", "an exchange (us)",
    "together (us)", "GCells/s",
)  # fmt: skip


WAYS: dict[RimWay, str] = {
    "copied": "copied", "stored": "stored by kernels", "first": "first, copied meanwhile",
}  # fmt: skip


def exchange_section(
    program: CompiledProgram,
    count: int,
    parts: Sequence[int] | None = None,
    alone: float | None = None,
) -> Section:
    """
    The costs of exchanges on a number of GPUs, the chosen number of launches first. `alone`: the
    predicted speed of one GPU in GCells/s, of the loop with the deepest launch. Raises CompileError
    for a program without time loops or of fewer cells than GPUs, ValueError for impossible parts.
    """
    domain = Domain.of(program.module)
    if domain is None:
        refuse(program.function, "there is no time loop to run on several GPUs; leave out --gpus")
    title, kernels = f"On {count} GPUs of a host, predicted", program.kernels
    if domain.sweeps or any(loop.sweep is not None for loop in domain.loops):
        said = "in every step: the host runs the updates and sweeps of a step one after the other"
        facts = layout_facts(slab_layout(domain, count, parts))
        return Section(title, (*facts, Fact("exchanges", said)))
    options, cache, module = kernels.options, kernels.cache, program.module
    made = kernels_of_layout(
        domain, count, parts, lambda layout: PartKernels(module, layout, options, cache)
    )
    facts, choice = layout_facts(made.decomposition), made.exchange
    cells = prod(high - low for low, high in zip(domain.box.lower, domain.box.upper))
    if choice is None:
        return Section(title, (*facts, Fact("exchanges", "no prediction of the schedule's speed")))
    if alone:
        gain = gcells_per_second(choice.chosen, choice, cells) / alone
        facts = (*facts, Fact("speed", gain_text(gain, alone)))
    rows = tuple(cost_row(cost, choice, cells) for cost in (choice.chosen, *choice.others))
    return Section(title, facts, COLUMNS, rows, notes())


def layout_facts(layout: Decomposition) -> tuple[Fact, ...]:
    """The numbers of parts along the axes, and the largest part."""
    largest = [max(b - a for a, b in pairwise(faces)) for faces in layout.faces]
    return (
        Fact("parts", " x ".join(map(str, layout.counts))),
        Fact("largest part", " x ".join(map(str, largest)) + " cells"),
    )


def gain_text(gain: float, alone: float) -> str:
    """How many times as fast several GPUs are as one, and what follows for few cells."""
    said = f"{gain:.2f} times the {alone:.0f} GCells/s of one"
    return said if gain >= 1 else f"{said}; the domain is too small for several, and one runs it"


def gcells_per_second(cost: ExchangeCost, choice: ExchangeChoice, cells: int) -> float:
    """The predicted speed of all GPUs together."""
    return cells * choice.depth / cost.seconds / 1e9


def cost_row(cost: ExchangeCost, choice: ExchangeChoice, cells: int) -> tuple[str, ...]:
    """The cost of a number of launches between two exchanges; `cells` of all GPUs."""
    return (
        f"{cost.launches}",
        f"{cost.launches * choice.depth}",
        WAYS[cost.way],
        f"{cost.launch_seconds * 1e6:.0f}",
        f"{100 * cost.ghost_share:.1f}%",
        f"{cost.exchange_seconds * 1e6:.0f}",
        f"{cost.seconds * 1e6:.0f}",
        f"{gcells_per_second(cost, choice, cells):.0f}",
    )


def notes() -> tuple[Fact, ...]:
    """What the columns mean."""
    return (
        Fact("launches", "launches that share an exchange, the chosen number first"),
        Fact("together", "a launch with its share of an exchange"),
    )
