"""Facts of one GPU in place of its part's numbers, as text behind the part's name.

`h100-sxm+copy=3.1+l2=26214400` is an H100 SXM with 26214400 bytes of L2 and device copies of 3.1
TB/s, and `sm_90+memory=4.0` an unknown GPU. The text is the name of a target: options of passes,
keys of the cache and the ranks of a run hold all facts behind a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.isa import Isa
from timetile.passes.targets.part import Part

WORDS: Mapping[str, str] = {
    "multiprocessors": "{:.0f} multiprocessors",
    "clock": "a clock of {:g} GHz",
    "memory": "memory of {:g} TB/s",
    "copy": "device copies of {:g} TB/s",
    "l2": "{:.0f} bytes of L2",
    "shared": "{:.0f} bytes of shared memory a multiprocessor",
    "block": "{:.0f} bytes of shared memory a block",
}
"""The facts, and their words in a sentence."""

SAME = 0.03
"""
Facts closer than this share are equal: five measurements of a copy differ by 0.6% (H100), and the
driver's bandwidth of a memory differs from NVIDIA's documents by 2.5% (H200).
"""

Facts = Mapping[str, float]
"""Numbers by name, as in `WORDS`."""


def name_without_facts(name: str) -> str:
    """The instruction set or the part in the name of a target."""
    return name.partition("+")[0]


def facts_in(name: str) -> Facts:
    """The facts in the name of a target. Raises CompileError for others than in `WORDS`."""
    found: dict[str, float] = {}
    for text in name.split("+")[1:]:
        word, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if word not in WORDS or not 0 < value < float("inf"):
            raise CompileError(
                f"{text!r} is no fact of a GPU; write a name of {', '.join(WORDS)}, = and a number "
                "above 0, as in h100-sxm+copy=3.1"
            )
        found[word] = value
    return found


def name_with(base: str, facts: Facts) -> str:
    """The name of a target with facts, in a fixed order."""
    given = (f"+{word}={facts[word]:.10g}" for word in WORDS if word in facts)
    return base + "".join(given)


def facts_text(facts: Facts) -> str:
    """Facts in words, for messages."""
    return ", ".join(words.format(facts[word]) for word, words in WORDS.items() if word in facts)


def is_same(number: float, other: float) -> bool:
    """Whether two numbers of a GPU count as equal."""
    return abs(number - other) <= SAME * other


def part_with(part: Part, facts: Facts) -> Part:
    """A part with facts in place of its numbers; a copy is as fast as the memory allows."""
    if not facts:
        return part
    count = int(facts.get("multiprocessors", part.multiprocessors))
    memory = facts.get("memory", part.memory_tb_per_s)
    return replace(
        part,
        name=name_with(name_without_facts(part.name), facts),
        multiprocessors=count,
        clock_ghz=facts.get("clock", part.clock_ghz),
        memory_tb_per_s=memory,
        copy_tb_per_s=facts.get("copy", part.copy_tb_per_s * memory / part.memory_tb_per_s),
        l2_bytes=int(facts.get("l2", part.l2_bytes)),
        resident_clusters=part.resident_clusters if count == part.multiprocessors else {},
    )


def isa_with(isa: Isa, facts: Facts) -> Isa:
    """An instruction set with the shared memory of a GPU that has less."""
    return replace(
        isa,
        shared_per_multiprocessor=int(facts.get("shared", isa.shared_per_multiprocessor)),
        shared_per_block=int(facts.get("block", isa.shared_per_block)),
    )
