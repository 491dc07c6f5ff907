"""A fit: the parameters of the cost model, and what they were fitted to."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.passes.targets.parameters import Parameters


@dataclass(frozen=True)
class Fit:
    """Parameters, with where they come from."""

    isa: str
    """The instruction set of all parts that the parameters serve."""
    part: str
    """The part that the samples were measured on."""
    date: str
    """When the parameters were last changed, as YYYY-MM."""
    assembler: str
    """What assembled the samples."""
    samples: tuple[str, ...]
    """Files of samples, below `benchmarks/samples`; none where the parameters are another fit's."""
    unfitted: tuple[str, ...]
    """
    The parameters, as `group.name`, on which no prediction of the samples depends
    (`benchmarks/fit.py --undecided`, which asks three samples of each row). They were fitted once
    to samples that were not kept, and nothing can refit them.
    """
    parameters: Parameters

    @property
    def is_measured(self) -> bool:
        """The parameters were fitted to kernels that ran on the instruction set."""
        return bool(self.samples)
