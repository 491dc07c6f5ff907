"""
Drawn steps in Python on several ranks and several GPUs, with sources and receivers, too: fields and
noted sums have the bits of an evaluation with NumPy. Points lie anywhere: in ghost zones, next to
cuts, in one cell. Parts differ in their updates where the edges of the domain do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.drawn_fields import Array
from support.drawn_models import Drawn, How
from support.drawn_points import drawn_points
from support.drawn_steps import drawn_model
from support.few_schedules import drawn_schedules, few_schedules
from support.ranks import copies
from support.simulated import SimulatedSite, on_simulated, simulated_rank
from support.sizes import seeds
from support.thread_ranks import ThreadPeers, on_threads
from timetile import Field, Model, repeat, sweep
from timetile.frontend import model
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.loading.made import MadeProgram
from timetile.runtime.loading.modules import load
from timetile.runtime.program.compiled_program import CompiledProgram, Executor
from timetile.runtime.program.ranked_program import on_ranks

pytestmark = pytest.mark.usefixtures("printed_alone")

Compile = Callable[..., CompiledProgram]


def plain(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a model that say nothing of places."""
    return {name: value for name, value in options.items() if name in ("halos", "fp_contract")}


def check(drawn: Drawn, how: How, found: Mapping[str, Array]) -> None:
    """The arrays and the sums have the bits of NumPy's."""
    for name, right in drawn.expected(how).items():
        assert found[name].tobytes() == right.tobytes(), f"{name} of\n{drawn.text()}"


def compiling(monkeypatch: pytest.MonkeyPatch, make: Compile) -> None:
    """Models are compiled by a function."""
    monkeypatch.setattr(model, "compile_program", make)


def found_by_ranks(
    drawn: Drawn, how: How, count: int, monkeypatch: pytest.MonkeyPatch, **make: Any
) -> list[Mapping[str, Array]]:
    """The results of all ranks, which are threads."""
    own = threading.local()

    def compiled(program: ModuleOp | MadeProgram, **options: Any) -> CompiledProgram:
        alone = partial(
            timetile.compile,
            str(load(program)),
            executor=how.executor,
            cache=False,
            **plain(options),
        )
        return on_ranks(own.peers, alone, None, 2, **make)

    def run(peers: ThreadPeers) -> Mapping[str, Array]:
        own.peers = peers
        return drawn.found(how)

    compiling(monkeypatch, compiled)
    return on_threads(count, run)


@pytest.mark.parametrize("seed", seeds(16))
def test_points_keep_their_bits_on_ranks(seed: int, monkeypatch: pytest.MonkeyPatch):
    executor: Executor = "numpy" if seed % 8 else "cpu"
    drawn, how = drawn_points(Random(seed)), How(executor, 1, 1 + seed % 5)
    for found in found_by_ranks(drawn, how, 2 + seed % 3, monkeypatch):
        check(drawn, how, found)


@pytest.fixture
def any_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """New memory of devices has any bits: the outermost ghosts are copied, and never read."""

    def new(site: SimulatedSite, shape: tuple[int, ...], dtype: np.dtype[Any]) -> MarkedCells:
        site.sizes[len(site.sizes)] = 1
        bits = np.random.default_rng(1).bytes(prod(shape) * dtype.itemsize)
        cells = np.frombuffer(bits, dtype).reshape(shape).copy()
        return MarkedCells.of(cells, known=True)

    monkeypatch.setattr(SimulatedSite, "new", new)


def check_on_gpus(drawn: Drawn, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the results of two or three simulated devices with NumPy's."""
    how, halos = How("planes", 1 + seed % 3, 2 + seed % 4), ("common", "apart")[seed % 2]

    def compiled(program: ModuleOp | MadeProgram, **options: Any) -> CompiledProgram:
        text = str(load(program))
        return on_simulated(text, 2 + seed % 2, seed, depth=how.depth, halos=halos)[0]

    compiling(monkeypatch, compiled)
    with drawn_schedules(Random(seed)):
        check(drawn, how, drawn.found(how))


@pytest.mark.usefixtures("any_bits")
@pytest.mark.parametrize("seed", seeds(16))
def test_points_keep_their_bits_on_several_gpus(seed: int, monkeypatch: pytest.MonkeyPatch):
    check_on_gpus(drawn_points(Random(100 + seed)), seed, monkeypatch)


@pytest.mark.usefixtures("any_bits")
@pytest.mark.parametrize("seed", seeds(16))
def test_steps_keep_their_bits_on_several_gpus(seed: int, monkeypatch: pytest.MonkeyPatch):
    check_on_gpus(drawn_model(Random(1000 + seed)), seed, monkeypatch)


@timetile.stencil
def repeated(u: Field):
    """A loop inside of a step reads a field that steps change."""
    for _ in repeat(2):
        u.next[3:10] = 0.3 * u[-1] + 0.5 * u[2]


@timetile.stencil
def behind_a_sweep(u: Field):
    """A loop reads cells around its box, which a sweep changes."""
    with sweep(axis=1):
        u.next = 0.5 * u.next[0, -1] + 0.1 * u[0, 0]
    u.next = 0.3 * u.next[1, 2] - 0.2 * u.next[-1, -1]


@pytest.mark.usefixtures("any_bits")
@pytest.mark.parametrize(("step", "shape"), [(repeated, (14,)), (behind_a_sweep, (6, 8))])
def test_loops_in_turn_read_fresh_ghosts(step: Model, shape: tuple[int, ...]):
    text, random = str(step.module(shape)), np.random.default_rng(1)
    own: list[Any] = [random.random(shape), np.zeros(shape), 3]
    expected = copies(own)
    timetile.compile(text, executor="numpy", fp_contract="off", cache=False)(*expected)
    with few_schedules():
        program, _ = on_simulated(text, 2, halos="apart", depth=1)
    program(*own)
    for array, right in zip(own[:2], expected):
        assert array.tobytes() == right.tobytes()


@pytest.mark.usefixtures("any_bits")
@pytest.mark.parametrize("seed", seeds(8))
def test_points_keep_their_bits_on_ranks_with_a_gpu_each(
    seed: int, monkeypatch: pytest.MonkeyPatch
):
    drawn, how = drawn_points(Random(200 + seed)), How("planes", 1, 3)
    with few_schedules():
        for found in found_by_ranks(drawn, how, 2, monkeypatch, make=simulated_rank):
            check(drawn, how, found)
