"""
Fits of instruction sets without a measured kernel: values of the H200, and of `sm_80` for older
GPUs, whose register parameters avoid spills. GPUs of `sm_89` have an L2 as large as the H200's.
"""

from __future__ import annotations

from dataclasses import replace

from timetile.passes.targets.fit import Fit
from timetile.passes.targets.fits.h200 import PARAMETERS as H200
from timetile.passes.targets.fits.sm_80 import PARAMETERS as SM_80

VALUES = {
    "sm_86": SM_80,
    "sm_89": replace(SM_80, moving=H200.moving),
    "sm_100": H200,
    "sm_120": H200,
}

FITS = tuple(
    Fit(
        isa=isa, part=None, base="h200", checked=(), date="2026-11", assembler=None, samples=(),
        assembled=(), unfitted=(), parameters=parameters,
    )
    for isa, parameters in VALUES.items()
)  # fmt: skip
