"""
Storage of planes in the planes executor: each queue keeps as many planes as its home, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Operation, SSAValue

from timetile.dialects.tile import (
    CopiesAttr,
    ExchangeBufferAttr,
    ExchangeOp,
    KernelOp,
    LoadOp,
    MemoryAttr,
    RegistersAttr,
    SharedAttr,
    StageOp,
)
from timetile.passes.analysis.queues.common_rings import ring_base, ring_key, steps_early
from timetile.passes.diagnostics import refuse
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.executors.simt.errors import describe


class PlaneError(Exception):
    """A kernel reads a missing plane, or stores an unset cell. The message names the stage."""

    def __init__(self, op: Operation, text: str):
        super().__init__(f"{describe(op)}: {text}")
        self.op = op


@dataclass
class MarkedCells:
    """
    The cells of a field, or of a plane (one cell thick along the stream), with marks for set cells.
    """

    data: Array
    known: NDArray[np.bool_]

    @staticmethod
    def of(data: Array, *, known: bool) -> MarkedCells:
        """Cells from an array, all set or all unset."""
        return MarkedCells(data, np.full(data.shape, known))

    @staticmethod
    def copy_of(data: Array) -> MarkedCells:
        """A copy of a field, all cells set."""
        return MarkedCells.of(data.copy(), known=True)

    def copy(self) -> MarkedCells:
        """A copy of the cells and marks."""
        return MarkedCells(self.data.copy(), self.known.copy())


Slots = list[tuple[SSAValue, int, MarkedCells] | None]
"""A ring of planes, each with its queue and its step."""


@dataclass
class QueueHome:
    """
    The planes kept by a queue, one slot a step, in a ring of the queue's own or a common ring.
    """

    queue: SSAValue
    slots: Slots
    base: int = 0
    early: int = 0
    """How many steps early copies write to a common ring."""

    def keep(self, step: int, plane: MarkedCells) -> None:
        """Keep the plane of a step. Copies of a later plane overwrite a slot of a common ring."""
        if self.early:
            self.slots[(step + self.early + self.base) % len(self.slots)] = None
        self.slots[(step + self.base) % len(self.slots)] = self.queue, step, plane

    def plane(self, reader: StageOp, age: int, step: int, first: int) -> MarkedCells:
        """The plane made `age` steps before a step. Raises PlaneError for a missing plane."""
        kept = self.slots[(step - age + self.base) % len(self.slots)]
        if kept is not None and kept[0] is self.queue and kept[1] == step - age:
            return kept[2]
        if age >= len(self.slots):
            why = f"is not kept: the home has place for {len(self.slots)}"
        elif step - age < first:
            why = f"was never made: step {step - age} is before the first, {first}"
        else:
            why = "is not kept: another queue of the ring has overwritten it"
        made_by = self.queue.owner
        assert isinstance(made_by, Operation)
        text = f"the plane of age {age} that it reads {why}; the plane is of {describe(made_by)}"
        raise PlaneError(reader, text)


def make_homes(kernel: KernelOp) -> dict[SSAValue, QueueHome]:
    """Empty homes for the queues of a kernel, except queues read from memory again."""
    homes: dict[SSAValue, QueueHome] = {}
    rings: dict[tuple[int, Attribute], Slots] = {}
    for stage in kernel.stages:
        for queue in stage.results:
            match stage.home:
                case RegistersAttr() as home:
                    homes[queue] = QueueHome(queue, [None] * (home.depth.data + 1))
                case CopiesAttr() as home:
                    count = home.slots.data - planes_on_their_way(stage)
                    homes[queue] = QueueHome(queue, [None] * count)
                case SharedAttr() | ExchangeBufferAttr() as home if (
                    key := ring_key(queue)
                ) is not None:
                    ring = rings.setdefault(key, [None] * home.slots.data)
                    if len(ring) != home.slots.data:
                        refuse(
                            stage,
                            f"its ring has {home.slots.data} and {len(ring)} slots; give it one "
                            "size",
                        )
                    base, early = ring_base(queue, kernel.stream_axis), steps_early(queue)
                    homes[queue] = QueueHome(queue, ring, base, early)
                case SharedAttr() as home:
                    homes[queue] = QueueHome(queue, [None] * home.slots.data)
                case ExchangeBufferAttr() as home:
                    count = home.slots.data - planes_on_their_way(stage)
                    if count < 1:
                        raise PlaneError(stage, "its slots hold no plane that has arrived")
                    homes[queue] = QueueHome(queue, [None] * count)
                case MemoryAttr():
                    pass
                case None:
                    refuse(stage, "its queue has no home; run multi-queue-buffering before")
    return homes


def planes_on_their_way(stage: StageOp) -> int:
    """The planes of a load's copies that have not arrived."""
    if isinstance(stage, LoadOp):
        return stage.planes_ahead
    if isinstance(stage, ExchangeOp) and stage.publishes_copies:
        load = stage.queue.owner
        return load.planes_ahead if isinstance(load, LoadOp) else 0
    return 0
