"""Coupled systems, wide stencils and absorbing layers, with their domains.

`SYSTEMS` names each step with its domain and the step to compare with: the step without layers, for
steps with layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from coupled_steps import elastic_2d, lbm_d2q9, lbm_d3q19, tti8, vp_coupled_3d_so8
from layered_steps import (
    acoustic_cpml,
    elastic_cpml,
    iso,
    iso_regions,
    tti13,
    tti_regions,
    yee3_cpml,
)

import timetile
from timetile.frontend.model import Model


@dataclass(frozen=True)
class System:
    """A step with its domains in cells, by element, and the name of the step without layers."""

    step: Model
    domains: dict[str, tuple[int, ...]]
    without: str = ""


PLATE, CUBE = (8192, 8192), (512, 512, 512)
SIX, NINE = (600, 600, 600), (900, 900, 900)


def alike(step: Model, domain: tuple[int, ...], without: str = "") -> System:
    """A system with one domain for both elements."""
    return System(step, {"f32": domain, "f64": domain}, without)


SYSTEMS: dict[str, System] = {
    "lbm_d2q9": alike(lbm_d2q9, PLATE),
    "lbm_d3q19": alike(lbm_d3q19, CUBE),
    "vp_coupled_3d_so8": alike(vp_coupled_3d_so8, CUBE),
    "tti8": alike(tti8, CUBE),
    "tti13": alike(tti13, CUBE),
    "iso": alike(iso, SIX),
    "iso_regions": alike(iso_regions, SIX, "iso"),
    "tti_regions": System(tti_regions, {"f32": NINE, "f64": SIX}, "tti8"),
    "yee3_cpml": alike(yee3_cpml, CUBE, "yee3"),
    "acoustic_cpml": alike(acoustic_cpml, CUBE, "wave_3d_so8"),
    "elastic_cpml": alike(elastic_cpml, CUBE, "elastic_3d_so4"),
    "elastic_2d_so2": alike(timetile.stencil(elastic_2d(2)), PLATE),
    "elastic_2d_so4": alike(timetile.stencil(elastic_2d(4)), PLATE),
}
"""The systems, by name."""
