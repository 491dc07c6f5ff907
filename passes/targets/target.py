"""Targets of compilation: an instruction set, a part and a fit of the cost model together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr

from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.facts import (
    facts_in,
    facts_text,
    isa_with,
    name_without_facts,
    part_with,
)
from timetile.passes.targets.fit import Fit, scaled_fit
from timetile.passes.targets.fits import h200, sm_80, unmeasured
from timetile.passes.targets.hardware import SHARED_BYTES_PER_CYCLE
from timetile.passes.targets.isa import ISAS, Isa
from timetile.passes.targets.parameters import Parameters
from timetile.passes.targets.part import Part
from timetile.passes.targets.parts import PARTS, default_part

DEFAULT_ARCH = "sm_90"
"""The target without a named one, and without a GPU."""

FITS: tuple[Fit, ...] = (h200.FIT, sm_80.FIT, *unmeasured.FITS)
"""The fits: a part has the fit measured on the part, else the first fit of its instruction set."""

NAMES: tuple[str, ...] = (*ISAS, *PARTS)
"""The names of targets: an instruction set, for its default part, or a part."""

ARCH_ATTRIBUTE = "timetile.arch"
"""The attribute of a module with the instruction set of its kernels."""


@dataclass(frozen=True)
class Target:
    """A part, its instruction set, and the fit for predicting its speed."""

    isa: Isa
    part: Part
    fit: Fit

    @property
    def name(self) -> str:
        """The instruction set's name in PTX."""
        return self.isa.name

    @property
    def title(self) -> str:
        """
        The instruction set, the part if not the default, and facts of the GPU, for messages.
        """
        usual = default_part(self.isa.name)
        base, facts = name_without_facts(self.part.name), dict(facts_in(self.part.name))
        if self.part.multiprocessors != PARTS.get(base, usual).multiprocessors:
            facts["multiprocessors"] = self.part.multiprocessors
        known = f" ({self.part.title})" if base in PARTS and base != usual.name else ""
        return f"{self.isa.name}{known}" + (f" with {facts_text(facts)}" if facts else "")

    @property
    def fit_text(self) -> str | None:
        """
        A sentence about the fit's values on a part without measured kernels; None for a part with.
        """
        base = name_without_facts(self.part.name)
        if self.fit.is_of(base):
            return None
        who = f"the {self.part.title}" if base in PARTS else f"such a GPU of {base}"
        return (
            f"no kernel was measured on {who}: values fitted on the {PARTS[self.fit.base].title} "
            "are scaled by multiprocessors, clock, memory and L2"
        )

    @property
    def parameters(self) -> Parameters:
        """The parameters of the cost model."""
        return self.fit.parameters

    @property
    def multiprocessors(self) -> int:
        """Multiprocessors of the part."""
        return self.part.multiprocessors

    def clusters(self, blocks: int) -> int:
        """
        Clusters of `blocks` blocks running at once: as measured, or as many as fit the
        multiprocessors.
        """
        known = self.part.resident_clusters.get(blocks)
        return known or max(1, self.part.multiprocessors // blocks)

    def resident_blocks(self, occupancy: int) -> int:
        """Blocks running at once, with `occupancy` of them on a multiprocessor."""
        return self.part.multiprocessors * occupancy

    @property
    def shared_tb_per_s(self) -> float:
        """Bandwidth of all shared memory (10^12 bytes a second)."""
        return self.part.multiprocessors * SHARED_BYTES_PER_CYCLE * self.part.clock_ghz / 1e3


def fit_of(part: Part) -> Fit:
    """
    The fit measured on a part as it is; else the first fit of its instruction set, scaled by the
    part's numbers.
    """
    own, name = [fit for fit in FITS if fit.isa == part.isa], name_without_facts(part.name)
    fit = next((fit for fit in own if fit.is_of(name)), own[0])
    return scaled_fit(fit, PARTS[fit.base], name, part)


def target_named(name: str, multiprocessors: int | None = None) -> Target:
    """
    The target of an instruction set (`sm_90`, for its default part) or a part (`h100-pcie`), by
    name, with facts behind the name (`h100-pcie+copy=1.7`). `multiprocessors` replaces the part's
    own number, for a GPU with some switched off. Raises CompileError for an unknown name or fact.
    """
    base, facts = name_without_facts(name), facts_in(name)
    if base not in NAMES:
        raise CompileError(
            f"the architecture {base} is not known; use {' or '.join(ISAS)}, or a part: "
            f"{', '.join(PARTS)}"
        )
    part = default_part(base) if base in ISAS else PARTS[base]
    if facts and base in ISAS:
        # The table has no such GPU.
        part = replace(part, name=base, title=f"GPU of {base}", resident_clusters={})
    part = part_with(part, facts)
    if multiprocessors is not None and multiprocessors != part.multiprocessors:
        part = replace(part, multiprocessors=multiprocessors, resident_clusters={})
    return Target(isa_with(ISAS[part.isa], facts), part, fit_of(part))


def target_of(module: ModuleOp) -> Target:
    """
    The target of a module's kernels, by the module's attribute; `DEFAULT_ARCH` without the
    attribute.
    """
    said = module.attributes.get(ARCH_ATTRIBUTE)
    return target_named(said.data if isinstance(said, StringAttr) else DEFAULT_ARCH)
