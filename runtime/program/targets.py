"""The target of a compilation: the named target, or the target of the GPU."""

from __future__ import annotations

from typing import NamedTuple

from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.facts import Facts, facts_in, name_with, name_without_facts
from timetile.passes.targets.isa import ISAS, version_of
from timetile.passes.targets.parts import PARTS, default_part, part_for
from timetile.passes.targets.target import DEFAULT_ARCH, target_named
from timetile.runtime.cache.store import Cache
from timetile.runtime.device.card_facts import card_text, facts_of_card
from timetile.runtime.device.gpu import device


class ChosenTarget(NamedTuple):
    """The parts of a target given to a compilation."""

    arch: str
    """The instruction set."""
    part: str | None = None
    """
    The part, unless the default part of the instruction set, or the instruction set, with the facts
    of the GPU that differ.
    """
    multiprocessors: int | None = None
    """Multiprocessors of the GPU, unless equal to the part's number."""


def arch_for(gpu: str) -> str:
    """
    The newest known architecture not newer than a GPU's: its kernels run on the GPU. Raises
    CompileError if there is none.
    """
    fitting = [name for name in ISAS if version_of(name) <= version_of(gpu)]
    if not fitting:
        oldest = min(ISAS, key=version_of)
        raise CompileError(
            f"the GPU is of architecture {gpu}, and kernels need {oldest} or newer; run on the CPU "
            "with executor cpu"
        )
    return max(fitting, key=version_of)


def device_text(gpu: int) -> str:
    """A GPU and its driver, as a part of the key of what was measured there."""
    return card_text(device(gpu))


def without_usual(isa: str, part: str, multiprocessors: int | None) -> ChosenTarget:
    """A target without the usual parts of its instruction set."""
    usual = multiprocessors in (None, target_named(part).multiprocessors)
    named = None if part == default_part(isa).name else part
    return ChosenTarget(isa, named, None if usual else multiprocessors)


def target_without_gpu(name: str | None) -> ChosenTarget:
    """The named target, or the default target."""
    target = target_named(name or DEFAULT_ARCH)
    return without_usual(target.isa.name, target.part.name, None)


def target_of_gpu(name: str | None, gpu: int, cache: Cache | None = None) -> ChosenTarget:
    """
    The target for a GPU by number: of the named instruction set or part, or the GPU's own, with the
    GPU's facts. A named part keeps its numbers, and facts behind a name are taken as they are.
    Raises CompileError if kernels would not run on the GPU.
    """
    there = device(gpu)
    newest = arch_for(there.arch)
    chosen = newest if name is None else target_named(name).isa.name
    if version_of(chosen) > version_of(newest):
        raise CompileError(
            f"kernels for {chosen} do not run on GPU {gpu}, which is of architecture "
            f"{there.arch}; leave out arch, or give {newest}"
        )
    count = there.attribute("MULTIPROCESSOR_COUNT")
    if name is not None and name_without_facts(name) != name:
        return ChosenTarget(chosen, name)
    if name in PARTS:
        return without_usual(chosen, name, count)
    own = part_for(chosen, there.name)
    part = own or default_part(chosen)
    facts = facts_of_card(there, part, own is not None, cache)
    return without_usual(chosen, named_with(own is not None, part.name, chosen, facts), count)


def named_with(is_known: bool, part: str, isa: str, facts: Facts) -> str:
    """A part with facts; a GPU of no known part has the name of its instruction set."""
    return name_with(part if is_known or not facts else isa, facts)


def name_of_target(target: ChosenTarget) -> str:
    """A target as one name, for `target_of_gpu` on another GPU: all facts stand in the name."""
    known = target_named(target.part or target.arch, target.multiprocessors)
    return name_with(
        name_without_facts(target.part or known.part.name),
        {**facts_in(known.part.name), "multiprocessors": known.multiprocessors},
    )
