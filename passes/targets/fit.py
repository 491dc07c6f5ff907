"""A fit: the parameters of the cost model, and the samples behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from timetile.passes.targets.parameters import Parameters
from timetile.passes.targets.part import Part


@dataclass(frozen=True)
class Fit:
    """Parameters, with their origin."""

    isa: str
    """The instruction set of all parts served by the parameters."""
    part: str | None
    """The part on which the samples were measured; None without samples."""
    base: str
    """The part of the measurements behind most values: from its numbers, other parts are scaled."""
    checked: tuple[str, ...]
    """Further parts with tables of measured rows, which take the values unscaled."""
    date: str
    """When the parameters were last changed, as YYYY-MM."""
    assembler: str | None
    """The assembler of the samples; None without samples."""
    samples: tuple[str, ...]
    """Files of samples, below `benchmarks/samples`; none where the parameters are another fit's."""
    assembled: tuple[str, ...]
    """Files of assembled kernels, below `benchmarks/samples`: what decides registers."""
    unfitted: tuple[str, ...]
    """
    The parameters, as `group.name`, without influence on a prediction of the samples
    (`benchmarks/fit.py --undecided`, with three samples of each row). They were fitted once to
    samples not kept, and cannot be refitted.
    """
    parameters: Parameters

    @property
    def is_measured(self) -> bool:
        """Whether the parameters were fitted to kernels run on the instruction set."""
        return self.part is not None

    def is_of(self, name: str) -> bool:
        """Whether kernels were measured on a part: the values need no scaling."""
        return name == self.part or name in self.checked


def scaled_fit(fit: Fit, base: Part, name: str, part: Part) -> Fit:
    """
    A fit for a part called `name` in the table, from the numbers of the fit's `base`. The speed of
    L2 follows multiprocessors and clock, not the memory; an L2 no faster than the memory (1.0) is
    caution, and stays. Other values are of a multiprocessor, or seconds.
    """
    count = part.multiprocessors / base.multiprocessors
    moving, reading = fit.parameters.moving, fit.parameters.reading
    if count != 1:
        reading = replace(reading, l2_bytes_per_cycle=reading.l2_bytes_per_cycle * count)
    if not fit.is_of(name) and moving.l2 != 1.0:
        chip = count * part.clock_ghz / base.clock_ghz
        memory = part.copy_tb_per_s / base.copy_tb_per_s
        moving = replace(moving, l2=max(1.0, moving.l2 * chip / memory))
    parameters = replace(fit.parameters, moving=moving, reading=reading)
    return fit if parameters == fit.parameters else replace(fit, parameters=parameters)
