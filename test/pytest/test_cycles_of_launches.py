"""Launches of several parts, repeated as graphs, end with the bits of launches one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import timetile
from support.catalogue import entry
from support.driver import BookKeeper
from support.few_schedules import few_schedules
from support.programs import program_text
from support.simulated import SimulatedSite, World
from support.simulated_runs import arguments_of, ends_as_one
from support.simulated_streams import SimulatedMeetings
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks import cycles, split_kernels
from timetile.runtime.ranks.cycles import repeat_in_cycles
from timetile.runtime.ranks.parted import PartedField
from timetile.runtime.ranks.turns import LoopTurns


@pytest.fixture(autouse=True)
def few_launches_are_a_graph(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Graphs have few launches."""
    monkeypatch.setattr(cycles, "LAUNCHES_OF_A_GRAPH", 2)
    monkeypatch.setattr(cycles, "LAUNCHES_AHEAD", 0)
    monkeypatch.setattr(cycles, "FEWEST_LAUNCHES", 4)
    with few_schedules():
        yield


def count_graphs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Launches of graphs, by stream, as made from now on."""
    found: list[int] = []
    launch = SimulatedSite.launch_graph

    def noted(site: SimulatedSite, graph: Any) -> None:
        found.append(site.number)
        launch(site, graph)

    monkeypatch.setattr(SimulatedSite, "launch_graph", noted)
    return found


def run(seed: int, steps: int = 38, every: int = 4) -> tuple[bool, World]:
    """Whether a run on two devices ends with the bits of one device, and the streams."""
    text = program_text(entry("heat-2d").make((40, 9)))
    return ends_as_one(text, arguments_of(text, steps), 2, seed, every, depth=2)


@pytest.mark.parametrize("waves, counts", [(0.0, True), (1e9, False), (1e9, True)])
def test_graphs_of_launches_keep_all_bits(
    monkeypatch: pytest.MonkeyPatch, waves: float, counts: bool
):
    """Sites that count have graphs of their own; launches in pieces wait for marks."""
    monkeypatch.setattr(split_kernels, "LEAST_WAVES", waves)
    monkeypatch.setattr(SimulatedSite, "counts", counts)
    launched = count_graphs(monkeypatch)
    same, world = run(5)
    assert same
    assert len(launched) >= 3 and set(launched) == ({0, 1} if counts and waves else {0})
    assert world.graphs == 0, "all graphs are given back"


def test_missing_meetings_of_graphs_are_found(monkeypatch: pytest.MonkeyPatch):
    def nothing(*_: Any) -> None:
        return

    monkeypatch.setattr(split_kernels, "LEAST_WAVES", 1e9)
    monkeypatch.setattr(SimulatedSite, "counts", True)
    assert run(0, 26)[0]
    monkeypatch.setattr(SimulatedMeetings, "meet", nothing)
    assert not all(run(seed, 26)[0] for seed in range(12))


@pytest.mark.parametrize("name", ["meet", "part_again"])
def test_streams_that_do_not_meet_around_graphs_are_found(
    monkeypatch: pytest.MonkeyPatch, name: str
):
    def nothing(_: Sequence[Any]) -> None:
        return

    assert run(0)[0]
    monkeypatch.setattr(cycles, name, nothing)
    assert not all(run(seed)[0] for seed in range(12))


@pytest.mark.parametrize(
    "turns, cycle, ahead, in_graphs",
    [(100, 5, 0, 95), (7, 3, 0, 0), (64, 1, 0, 62), (40, 50, 0, 0), (100, 5, 7, 90)],
)
def test_runs_are_turns_ahead_and_graphs_and_a_rest(
    turns: int, cycle: int, ahead: int, in_graphs: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(cycles, "LAUNCHES_AHEAD", ahead)
    done, made = 0, 0

    def turn() -> None:
        nonlocal done
        done += 1

    def repeat(count: int, times: int) -> None:
        nonlocal done, made
        assert count % cycle == 0 and done >= ahead
        done += count * times
        made += count * times

    repeat_in_cycles(turns, 1, turn, lambda: done % cycle, repeat)
    assert (done, made) == (turns, in_graphs)


@pytest.mark.usefixtures("cache_of_file")
def test_graphs_of_two_gpus_are_given_back(driver: BookKeeper):
    text = program_text(entry("heat-2d").make((90, 131)))
    program = timetile.compile(text, gpus=2, depth=2, exchange_every=4, halos="common")
    assert isinstance(program, PartedProgram)
    program(*arguments_of(text, 61))
    graphs = [stream for name, stream in driver.launched if name == "graph"]
    assert len(graphs) >= 3 and len(set(graphs)) == 2, "a graph for each GPU"
    assert len(driver.uploaded) == driver.most["graph"] == 2, "both are ready before one runs"
    assert not driver.held["graph"]
    program.close()
    assert not driver.left


def test_numbers_of_launches_may_be_arrays_without_axes():
    field, number = PartedField((4,), np.dtype(float), []), np.array(0.5)
    launch: Any = SimpleNamespace(operands=("field", "number", "field"))
    anything: Any = None
    values: Any = {"field": field, "number": number}
    assert LoopTurns(anything, anything, [launch], values).fields == [field]
