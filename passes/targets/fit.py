"""A fit: the parameters of the cost model, and the samples behind them."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.passes.targets.parameters import Parameters


@dataclass(frozen=True)
class Fit:
    """Parameters, with their origin."""

    isa: str
    """The instruction set of all parts served by the parameters."""
    part: str | None
    """The part on which the samples were measured; None without samples."""
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
