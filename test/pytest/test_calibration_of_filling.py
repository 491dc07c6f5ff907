"""
The calibration of loops that fill the pipeline: whether a kernel has such loops follows from a
limit on the length of code, set by measurements. A new measurement may change the numbers.
"""

from __future__ import annotations

import pytest

from support.catalogue import Domain
from support.description import Element
from support.filling import BOXES, STARS, compiled
from support.placed import deepest
from timetile.passes.analysis.geometry.filling import filling_loops
from timetile.passes.analysis.geometry.kernel_geometry import Geometry

# One worker has the shared results of the file's tests.
pytestmark = pytest.mark.xdist_group("filling")


@pytest.mark.parametrize(
    ("element", "offsets", "domain", "depth", "loops"),
    [
        pytest.param("f64", STARS[1], (8352, 8352), 10, 2, id="a short loop"),
        pytest.param("f64", BOXES[1], (8784, 8784), 7, 2, id="sums"),
        pytest.param("f32", BOXES[2], (8640, 8640), 4, 0, id="a long loop"),
    ],
)
def test_only_short_loops_have_filling_loops(
    element: Element,
    offsets: tuple[tuple[int, ...], ...],
    domain: Domain,
    depth: int,
    loops: int,
):
    kernel = deepest(compiled(element, offsets, domain, depth).kernels.tiled, depth)
    assert len(filling_loops(Geometry(kernel))) == loops
