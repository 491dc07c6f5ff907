"""
Sources and receivers on several ranks and several GPUs: the fields, and the noted sums, have the
bits of an evaluation with NumPy. Points lie anywhere: in ghost zones, next to cuts, in one cell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.drawn_models import Arrays, How
from support.drawn_points import DrawnPoints, drawn_points
from support.few_schedules import few_schedules
from support.simulated import on_simulated, simulated_rank
from support.sizes import seeds
from timetile.frontend import model
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.ranked_program import on_ranks
from timetile.runtime.ranks.threads import ThreadPeers, on_threads

Compile = Callable[..., CompiledProgram]


def plain(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a model that say nothing of places."""
    return {name: value for name, value in options.items() if name in ("halos", "fp_contract")}


def check(drawn: DrawnPoints, how: How, found: Arrays) -> None:
    """The arrays and the sums have the bits of NumPy's."""
    for name, right in drawn.expected(how).items():
        assert found[name].tobytes() == right.tobytes(), f"{name} of\n{drawn.text()}"


def compiling(monkeypatch: pytest.MonkeyPatch, make: Compile) -> None:
    """Models are compiled by a function."""
    monkeypatch.setattr(model, "compile_program", make)


def found_by_ranks(
    drawn: DrawnPoints, how: How, count: int, monkeypatch: pytest.MonkeyPatch, **make: Any
) -> list[Arrays]:
    """The results of all ranks, which are threads."""
    own = threading.local()

    def compiled(program: ModuleOp, **options: Any) -> CompiledProgram:
        alone = partial(
            timetile.compile, str(program), executor=how.executor, cache=False, **plain(options)
        )
        return on_ranks(own.peers, alone, None, 2, **make)

    def run(peers: ThreadPeers) -> Arrays:
        own.peers = peers
        return dict(drawn.found(how))

    compiling(monkeypatch, compiled)
    return on_threads(count, run)


@pytest.mark.parametrize("seed", seeds(16))
def test_points_keep_their_bits_on_ranks(seed: int, monkeypatch: pytest.MonkeyPatch):
    drawn, executor = drawn_points(Random(seed)), ("numpy", "cpu")[seed % 8 == 0]
    how = How(executor, 1, 1 + seed % 5)
    for found in found_by_ranks(drawn, how, 2 + seed % 3, monkeypatch):
        check(drawn, how, found)


@pytest.mark.parametrize("seed", seeds(8))
def test_points_keep_their_bits_on_several_gpus(seed: int, monkeypatch: pytest.MonkeyPatch):
    drawn, how = drawn_points(Random(100 + seed)), How("planes", 1 + seed % 3, 2 + seed % 4)

    def compiled(program: ModuleOp, **options: Any) -> CompiledProgram:
        return on_simulated(str(program), 2 + seed % 2, seed, depth=how.depth, halos="common")[0]

    compiling(monkeypatch, compiled)
    with few_schedules():
        check(drawn, how, dict(drawn.found(how)))


@pytest.mark.parametrize("seed", seeds(4))
def test_points_keep_their_bits_on_ranks_with_a_gpu_each(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    drawn, how = drawn_points(Random(200 + seed)), How("planes", 1, 3)
    with few_schedules():
        for found in found_by_ranks(drawn, how, 2, monkeypatch, make=simulated_rank):
            check(drawn, how, found)
