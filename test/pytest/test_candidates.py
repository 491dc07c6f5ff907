"""What choose-schedule considers, beyond what the choice itself shows."""

from __future__ import annotations

import pytest

from support.catalogue import entry
from support.programs import program_text
from timetile.passes.arch import arch_named
from timetile.passes.candidates import candidates
from timetile.runtime.kernels import Options, loops_of, raise_program
from timetile.runtime.loading import load


def test_blocks_that_wait_for_each_other_are_all_guarded():
    """None waits for a slower one; tiles of one block may be either, with halos in common."""
    text = program_text(entry("heat-3d").make((96, 352, 384)))
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    found = candidates(loop, module, arch_named("sm_90"), None)
    guards = {
        level: {c.schedule.guards for c in found if c.schedule.tile == level and c.depth > 1}
        for level in ("block", "device")
    }
    assert guards == {"block": {"rim", "all"}, "device": {"all"}}


@pytest.mark.parametrize(
    ("name", "side", "stays"),
    [
        ("heat-2d", 256, True),
        ("box-2d", 512, True),
        ("heat-2d", 2048, False),
        ("heat-2d", 8192, False),
        # Registers of cells that divide are not known well enough.
        ("roots-2d", 256, False),
    ],
)
def test_plates_stay_where_they_are_small(name: str, side: int, stays: bool):
    """On larger ones the stream's fill and drain matter less than memory that is waited for."""
    text = program_text(entry(name).make((side, side)))
    module = raise_program(load(text), Options(halos="common"))
    (loop,) = loops_of(module)
    best = candidates(loop, module, arch_named("sm_90"), None)[0]
    assert (best.schedule.stream == "none") == stays
    assert best.schedule.tile == ("block" if stays else "warp")


def test_one_step_needs_neither_neighbours_nor_levels():
    """At a depth of one that is asked for no blocks wait for each other, and no plate stays."""
    for name, domain in (("heat-2d", (300, 300)), ("heat-3d", (64, 64, 64))):
        module = raise_program(load(program_text(entry(name).make(domain))), Options())
        (loop,) = loops_of(module)
        found = candidates(loop, module, arch_named("sm_90"), 1)
        assert found
        assert not any(c.schedule.tile == "device" or c.schedule.stream for c in found)
