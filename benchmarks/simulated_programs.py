"""The programs of `simulations.py`: with a boundary, copies of edge cells, or a series."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import timetile
from timetile import Field, Model, Scalar, Series, value
from timetile.frontend.boundaries import Boundary
from timetile.frontend.field_types import DType

FEATURES: dict[str, Boundary] = {
    "keep": "keep",
    "periodic": "periodic",
    "mirror": "mirror",
    "value": value(0.0),
    "periodic copies": "keep",
    "mirror copies": "keep",
    "constant": "keep",
    "series": "keep",
}
BESIDE = {"series": "constant"}
"""The feature beside which another is measured, if not `keep`: a series, beside a scalar."""

Domain = tuple[int, ...]


def copy_edges(u: Field, feature: str, domain: Domain, width: int) -> None:
    """Assign the cells up to `width` cells from the ends of an array, by copies of others."""
    if not feature.endswith(" copies"):
        return
    for axis, size in enumerate(domain):
        for cell, below in product(range(width), (True, False)):
            place = width - 1 - cell if below else size - width + cell
            image = size - 2 * width if feature.startswith("periodic") else 2 * cell + 1
            offset, region = [0] * len(domain), [slice(None)] * len(domain)
            offset[axis] = image if below else -image
            region[axis] = slice(place, place + 1)
            u.next[tuple(region)] = u.next[tuple(offset)]


def j2d5pt(feature: str, domain: Domain) -> Model:
    """Five points of a plate."""
    boundary = FEATURES[feature]
    if feature == "series":

        @timetile.stencil(boundary=boundary)
        def driven(u: Field, f: Series):
            around = 0.11 * u[-1, 0] + 0.12 * u[0, -1] + 0.14 * u[0, 1] + 0.13 * u[1, 0]
            u.next = 0.5 * u[0, 0] + around + f[0]

        return driven
    if feature == "constant":

        @timetile.stencil(boundary=boundary)
        def pushed(u: Field, f: Scalar):
            around = 0.11 * u[-1, 0] + 0.12 * u[0, -1] + 0.14 * u[0, 1] + 0.13 * u[1, 0]
            u.next = 0.5 * u[0, 0] + around + f

        return pushed

    @timetile.stencil(boundary=boundary)
    def step(u: Field):
        around = 0.11 * u[-1, 0] + 0.12 * u[0, -1] + 0.14 * u[0, 1] + 0.13 * u[1, 0]
        u.next = 0.5 * u[0, 0] + around
        copy_edges(u, feature, domain, 1)

    return step


def j3d7pt(feature: str, domain: Domain) -> Model:
    """Seven points of a volume."""
    boundary = FEATURES[feature]

    @timetile.stencil(boundary=boundary)
    def step(u: Field):
        along = 0.11 * u[-1, 0, 0] + 0.12 * u[1, 0, 0] + 0.13 * u[0, -1, 0] + 0.09 * u[0, 1, 0]
        u.next = 0.3 * u[0, 0, 0] + along + 0.14 * u[0, 0, -1] + 0.11 * u[0, 0, 1]
        copy_edges(u, feature, domain, 1)

    return step


def wave_so4(feature: str, domain: Domain) -> Model:
    """The wave equation of a volume, of fourth order in space."""
    boundary = FEATURES[feature]
    places = [(axis, side) for axis in range(3) for side in (-1, 1)]

    @timetile.stencil(boundary=boundary)
    def step(u: Field, c: Field):
        lap: Any = -7.5 * u[0, 0, 0]
        for (axis, side), (far, factor) in product(places, ((1, 4 / 3), (2, -1 / 12))):
            offset = [0, 0, 0]
            offset[axis] = side * far
            lap = lap + factor * u[tuple(offset)]
        u.next = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c[0, 0, 0] * lap
        copy_edges(u, feature, domain, 2)

    return step


PROGRAMS: dict[str, tuple[Callable[[str, Domain], Model], Domain]] = {
    "j2d5pt": (j2d5pt, (517, 1031)),
    "j3d7pt": (j3d7pt, (61, 77, 133)),
    "wave-so4-3d": (wave_so4, (41, 45, 133)),
}

RADIUS = {"j2d5pt": 1, "j3d7pt": 1, "wave-so4-3d": 2}
DOMAINS: tuple[tuple[str, Domain], ...] = (
    ("j2d5pt", (4096, 4096)),
    ("j2d5pt", (8192, 8192)),
    ("j3d7pt", (512, 512, 512)),
    ("wave-so4-3d", (512, 512, 512)),
)

DTYPES: tuple[DType, ...] = ("float64", "float32")
