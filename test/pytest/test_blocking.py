"""
Passes of time loops over fields on a processor: lags, the choice of a pass, and the assumed cache.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

import timetile
from support.catalogue import entry, star, sum_program
from support.description import Program
from support.programs import program_text
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.skews import BufferAccess, Lags, Skew, needed_lags
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine import core_cache
from timetile.runtime.machine.core_cache import (
    USUAL_BYTES,
    core_cache_bytes,
    cores_in,
    of_linux,
    of_macos,
)
from timetile.runtime.native.blocking import FEWEST_COLUMNS, MOST_DEPTH, Blocking, BlockingRule


def loop_of(program: Program | str) -> LoopOp:
    """The time loop of a program."""
    text = program if isinstance(program, str) else program_text(program)
    return loops_of(timetile.compile(text, executor="cpu", cache=False).module)[0]


def shifted(first: int, second: int) -> str:
    """Two rotating buffers; each cell is the sum of two cells at given offsets."""
    return f"""
func.func @run(%A: !stencil.field<[-9,49]xf64>, %B: !stencil.field<[-9,49]xf64>, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %A, %b = %B)
      -> (!stencil.field<[-9,49]xf64>, !stencil.field<[-9,49]xf64>) {{
    %in = stencil.load %a : !stencil.field<[-9,49]xf64> -> !stencil.temp<?xf64>
    %out = stencil.apply(%x = %in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {{
      %l = stencil.access %x[{first}] : !stencil.temp<?xf64>
      %r = stencil.access %x[{second}] : !stencil.temp<?xf64>
      %s = arith.addf %l, %r : f64
      stencil.return %s : f64
    }}
    stencil.store %out to %b(<[0], [40]>) : !stencil.temp<?xf64> to !stencil.field<[-9,49]xf64>
    scf.yield %b, %a : !stencil.field<[-9,49]xf64>, !stencil.field<[-9,49]xf64>
  }}
  func.return
}}
"""


# The lag of a step: the reach ahead of the step's reads, and the reach behind of the earlier
# step's reads around the overwritten cell.
@pytest.mark.parametrize(
    ("first", "second", "lag"),
    [(-1, 1, 1), (-3, 1, 3), (-2, 5, 5), (2, 3, 3), (-4, -3, 4), (0, 0, 0)],
)
def test_steps_lag_by_their_reach(first: int, second: int, lag: int):
    loop = loop_of(shifted(first, second))
    skew = Skew.of(loop, 0)
    assert skew.lags == Lags(lag, (0,)) and skew.spans == Lags(2 * lag, (0,))
    # An axis without a size.
    assert Skew.of(loop, 1).lags == Lags(0, (0,))


@pytest.mark.parametrize("seed", range(60))
def test_lags_order_every_pair_of_accesses_to_a_buffer(seed: int):
    """
    Random rotations, updates and offsets: of two stages that access a cell, one of them writing,
    the earlier stage has no later place, for all distances of steps.
    """
    draw = random.Random(seed)
    buffers, count = draw.randint(1, 4), draw.randint(1, 3)
    rotation = draw.sample(range(buffers), buffers)
    accesses: list[list[BufferAccess]] = [[] for _ in range(buffers)]
    for update in range(count):
        target = draw.randrange(buffers)
        accesses[target].append(BufferAccess(update, 0, 0, True))
        for buffer in {*range(buffers)} - {target}:
            if draw.random() < 0.6:
                low, high = sorted((draw.randint(-5, 5), draw.randint(-5, 5)))
                accesses[buffer].append(BufferAccess(update, low, high, False))
    lags = needed_lags(rotation, accesses, count)
    # The buffers that the arguments of each step name: the buffer of the first step.
    steps = [list(range(buffers))]
    while len(steps) < 3 * buffers + 2:
        steps.append([steps[-1][source] for source in rotation])
    stages = [
        (step, access, names[argument])
        for step, names in enumerate(steps)
        for argument, found in enumerate(accesses)
        for access in found
    ]
    for step, one, buffer in stages:
        for later, other, same in stages:
            if buffer != same or not (one.writes or other.writes):
                continue
            if (step, one.update) < (later, other.update):
                before = step * lags.step + lags.updates[one.update]
                after = later * lags.step + lags.updates[other.update]
                assert after >= before + other.high - one.low


@pytest.mark.parametrize("radius", [1, 2, 4])
def test_stars_lag_by_their_radius_along_each_axis(radius: int):
    loop = loop_of(sum_program("f32", star(3, radius))((12, 13, 14)))
    for axis in (0, 1, 2):
        assert Skew.of(loop, axis).lags == Lags(radius, (0,))


def test_an_update_lags_behind_its_sources():
    """The second update of a step reads, a cell ahead, results of the first update."""
    loop = loop_of(entry("coupled-2d").make((19, 43)))
    lags = Skew.of(loop, 0).lags
    assert lags.updates[0] == 0 and lags.most(3) == 2 * lags.step + max(lags.updates)
    # A single update has no lag.
    for update in loop.updates:
        assert Skew.of(loop, 0, [update]).lags.updates == (0,)


# The choice.

MEBIBYTE = 1 << 20


def rule_of(sides: tuple[int, ...], cache: int, radius: int = 1) -> BlockingRule:
    """The rule for a star in FP64."""
    return BlockingRule(loop_of(sum_program("f64", star(len(sides), radius))(sides)), cache)


def kept(sides: tuple[int, ...], choice: Blocking, radius: int = 1) -> int:
    """
    The bytes kept by a pass over two fields with halos, counted by hand: radius is lag and reach.
    """
    rows = choice.rows + (choice.depth - 1) * radius
    columns = choice.columns + (choice.depth - 1) * radius
    inner = 1
    for side in sides[2:]:
        inner *= side + 2 * radius
    read = (rows + 2 * radius) * (columns + 2 * radius)
    return 8 * inner * (read + rows * columns)


@pytest.mark.parametrize("cache", [MEBIBYTE // 4, MEBIBYTE, 4 * MEBIBYTE])
@pytest.mark.parametrize("sides", [(2048, 2048), (4096, 100000), (256, 256, 256), (512, 512, 512)])
def test_the_cache_keeps_what_a_pass_needs(sides: tuple[int, ...], cache: int):
    choice = rule_of(sides, cache).choice(1000, 1)
    assert 2 <= choice.depth <= MOST_DEPTH
    assert choice.columns >= FEWEST_COLUMNS
    assert kept(sides, choice) <= cache


def test_a_pass_is_no_deeper_than_the_run():
    rule = rule_of((2048, 2048), MEBIBYTE)
    assert [rule.choice(steps, 1).depth for steps in (1, 2, 3)] == [1, 2, 3]


def test_fields_that_the_caches_hold_take_single_steps():
    rule = rule_of((512, 512), MEBIBYTE)
    assert rule.choice(100, 1).depth > 1
    assert rule.choice(100, 5) == Blocking(1, rule.rows, 512)


def test_threads_have_blocks_as_wide_as_spans():
    """
    A span of depth d is 2 (d - 1) wide: of 40 places and as many as the lag, two threads have 10
    each.
    """
    rule = rule_of((40, 1 << 20), MEBIBYTE)
    for threads in (1, 2, 4, 8, 40):
        depth = rule.choice(100, threads).depth
        places = 40 + depth - 1
        assert threads == 1 or 2 * (depth - 1) <= places // threads
    assert rule.choice(100, 4).depth > 1
    assert rule.choice(100, 40).depth == 1


def test_updates_run_one_by_one_where_a_team_has_no_blocks_for_all():
    """
    The second update of a step reads the last row of the first update: no earlier row can be
    shared.
    """
    rule = BlockingRule(loop_of(entry("coupled-2d").make((19, 43))), 0)
    most = rule.most_threads(1)
    assert most > 1
    assert rule.choice(5, most).together
    assert not rule.choice(5, most + 1).together and rule.choice(5, most + 1).depth == 1


def test_large_planes_are_taken_in_parts_even_by_single_steps():
    """A radius of 4: nine planes of two MiB are read for each written plane."""
    choice = rule_of((512, 512, 512), MEBIBYTE, radius=4).choice(1, 1)
    assert choice.depth == 1 and choice.columns < 512


# The cache.


def described(folder: Path, level: str, size: str, shared: str) -> Path:
    """A cache in Linux's description."""
    folder.mkdir(parents=True)
    for name, text in (("level", level), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(text + "\n")
    return folder


@pytest.mark.parametrize(
    ("size", "shared", "expected"),
    [
        ("2048K", "0", 2 << 20),
        ("1M", "0", 1 << 20),
        ("4096K", "0-3", 1 << 20),
        ("512K", "0,8", 1 << 18),
    ],
)
def test_linux_says_how_large_the_cache_is(size: str, shared: str, expected: int, tmp_path: Path):
    described(tmp_path / "index0", "1", "48K", "0")
    described(tmp_path / "index2", "2", size, shared)
    assert of_linux(tmp_path) == expected


def test_a_cache_that_is_not_described_is_not_known(tmp_path: Path):
    assert of_linux(tmp_path) is None
    described(tmp_path / "index0", "1", "48K", "0")
    assert of_linux(tmp_path) is None
    (described(tmp_path / "index2", "2", "?", "0") / "shared_cpu_list").unlink()
    assert of_linux(tmp_path) is None


@pytest.mark.parametrize(("ranges", "cores"), [("0", 1), ("0-3", 4), ("0-3,8", 5), ("2,4,6-7", 4)])
def test_lists_of_cores_are_counted(ranges: str, cores: int):
    assert cores_in(ranges) == cores


FACTS = {
    "hw.perflevel0.l2cachesize": 12 << 20,
    "hw.perflevel0.cpusperl2": 4,
    "hw.l2cachesize": 4 << 20,
}


@pytest.mark.parametrize(
    ("known", "expected"),
    [(tuple(FACTS), 3 << 20), (("hw.l2cachesize",), 4 << 20), ((), None)],
)
def test_macos_says_how_large_the_cache_is(
    known: tuple[str, ...], expected: int | None, monkeypatch: pytest.MonkeyPatch
):
    facts = {name: FACTS[name] for name in known}
    monkeypatch.setattr(core_cache, "system_fact", facts.get)
    assert of_macos() == expected
    monkeypatch.setattr(sys, "platform", "darwin")
    assert core_cache_bytes.__wrapped__() == (expected or USUAL_BYTES)
