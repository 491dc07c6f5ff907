"""Launches with numbers of series, read for all turns of a loop at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

import timetile
from timetile import Field, Series
from timetile.dialects.tile import LaunchOp
from timetile.runtime.device.driven import Driven, DrivenLoop, is_driven
from timetile.runtime.executors.runners import PlanesRunner
from timetile.runtime.host.functions import HostValues


@dataclass
class Packed:
    """An argument of a launch."""

    value: Any


@dataclass
class PackedArguments:
    """The arguments of a launch."""

    packed: list[Packed]


@timetile.stencil
def driven(u: Field, force: Series, drag: Series):
    u.next = 0.5 * u[0] + 0.25 * (u[-1] + u[1]) + force[0] - drag[0] * u[0]


def test_driven_launches_take_the_numbers_of_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    random, turns, steps = np.random.default_rng(4), list[int](), 65
    u, force, drag = random.random(40), random.random(steps), random.random(steps)

    def repeat(
        runner: PlanesRunner, op: scf.ForOp, operands: Sequence[Any], values: HostValues
    ) -> list[Any]:
        def prepared(launch: LaunchOp, given: Sequence[Any]) -> Any:
            return launch, PackedArguments([*map(Packed, given)])

        def launch(op: Any, given: Any) -> None:
            runner.launch(op, [each.value for each in given.packed], values)

        assert is_driven(op)
        turns.append(len(range(*map(int, operands))))
        launches = DrivenLoop(op, range(turns[-1]), values).launches(prepared)
        Driven(launches, turns[-1]).make(launch)
        return []

    made = PlanesRunner.__init__

    def begun(runner: PlanesRunner, *given: Any) -> None:
        def handler(op: Any, operands: Sequence[Any], values: HostValues) -> list[Any]:
            return repeat(runner, op, operands, values)

        made(runner, *given)
        runner.host.handlers[scf.ForOp] = handler

    monkeypatch.setattr(PlanesRunner, "__init__", begun)
    models = driven.on(executor="planes", depth=3), driven.on(executor="numpy")
    found = [each.advance({"u": u}, steps, force=force, drag=drag)["u"] for each in models]
    assert found[0].tobytes() == found[1].tobytes()
    assert turns and max(turns) > 1
