"""
No kernel of sm_80 was measured. Register parameters are set higher than the H200's, to avoid
spills.
"""

from __future__ import annotations

from dataclasses import replace

from timetile.passes.targets.fit import Fit
from timetile.passes.targets.fits.h200 import PARAMETERS as H200

PARAMETERS = replace(
    H200,
    registers=replace(H200.registers, per_word=1.8),
    spare=replace(H200.spare, guards={8: 48, 4: 48}, one_level=48, dividing=48, tight=48),
    computing=replace(H200.computing, dividing_warps={8: 8, 4: 8}),
    moving=replace(H200.moving, l2=1.0),
)

FIT = Fit(
    isa="sm_80",
    part=None,
    base="h200",
    checked=(),
    date="2026-11",
    assembler=None,
    samples=(),
    assembled=(),
    unfitted=(),
    parameters=PARAMETERS,
)
