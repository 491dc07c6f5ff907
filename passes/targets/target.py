"""Targets of compilation: an instruction set, a part and a fit of the cost model together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr

from timetile.passes.diagnostics import CompileError
from timetile.passes.targets.fit import Fit
from timetile.passes.targets.fits import h200, sm_80
from timetile.passes.targets.hardware import SHARED_BYTES_PER_CYCLE
from timetile.passes.targets.isa import ISAS, Isa
from timetile.passes.targets.parameters import Parameters
from timetile.passes.targets.parts import PARTS, Part, default_part

DEFAULT_ARCH = "sm_90"
"""The target without a named one, and without a GPU."""

FITS: tuple[Fit, ...] = (h200.FIT, sm_80.FIT)
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
        """The instruction set, and the part if not the default, for messages."""
        usual = default_part(self.isa.name)
        if self.part == usual:
            return self.isa.name
        if self.part.name != usual.name:
            return f"{self.isa.name} ({self.part.title})"
        return f"{self.isa.name} with {self.part.multiprocessors} multiprocessors"

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
    """The fit measured on a part, else the first fit of its instruction set."""
    own = [fit for fit in FITS if fit.isa == part.isa]
    return next((fit for fit in own if fit.part == part.name), own[0])


def target_named(name: str, multiprocessors: int | None = None) -> Target:
    """
    The target of an instruction set (`sm_90`, for its default part) or a part (`h100-pcie`), by
    name. `multiprocessors` replaces the part's own number, for a GPU with some switched off. Raises
    CompileError for an unknown name.
    """
    if name not in NAMES:
        raise CompileError(
            f"the architecture {name} is not known; use {' or '.join(ISAS)}, or a part: "
            f"{', '.join(PARTS)}"
        )
    part = default_part(name) if name in ISAS else PARTS[name]
    if multiprocessors is not None and multiprocessors != part.multiprocessors:
        part = replace(part, multiprocessors=multiprocessors, resident_clusters={})
    return Target(ISAS[part.isa], part, fit_of(part))


def target_of(module: ModuleOp) -> Target:
    """
    The target of a module's kernels, by the module's attribute; `DEFAULT_ARCH` without the
    attribute.
    """
    said = module.attributes.get(ARCH_ATTRIBUTE)
    return target_named(said.data if isinstance(said, StringAttr) else DEFAULT_ARCH)
