"""The stage by which the warps of a tile exchange cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import (
    IntAttr,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.boxes import CellBox
from timetile.dialects.directives import Number, Value
from timetile.dialects.syntax import element_type
from timetile.dialects.tile.homes import ExchangeBufferAttr
from timetile.dialects.tile.integers import ints
from timetile.dialects.tile.kinds import Published, PublishedAttr, Sync
from timetile.dialects.tile.load import LoadOp, verify_reader
from timetile.dialects.tile.queues import QueueType, made_queue_type
from timetile.dialects.tile.stages import (
    NeededCells,
    in_kernel,
    queue_lag,
    queue_type,
)


@irdl_op_definition
class ExchangeOp(IRDLOperation):
    """
    The planes of a queue, with neighbours' cells readable across warps up to the edges of the
    result's type. `what` is published: the `edges` read by neighbours, the whole `plane`, or the
    asynchronous `copies` of a field loaded ahead. Copies land in memory shared by all threads of
    the tile, with a rim of the edges' width around the tile, so that no cell is written twice.
    Readers read planes `delay` steps after publishing; a greater lag of the result means planes
    published at an age above 0.

    Example: `%e = tile.exchange %u what edges delay 1 : !tile.queue<f64, lag 2, edges [1, 0]>`
    """

    name = "tile.exchange"

    queue = operand_def(QueueType)
    what = prop_def(PublishedAttr)
    delay = prop_def(IntAttr)
    home = opt_prop_def(ExchangeBufferAttr)
    result = result_def(QueueType)

    traits = lazy_traits_def(lambda: (in_kernel(),))

    custom_directives = (Number, Value)
    assembly_format = (
        "custom<Value>($queue, type($queue)) `what` $what `delay` custom<Number>($delay) "
        "(`home` qualified($home)^)? attr-dict-with-keyword `:` type($result)"
    )

    def __init__(
        self,
        queue: SSAValue,
        edges: Sequence[int],
        what: Published = Published.PLANE,
        delay: int = 0,
    ):
        source = queue_type(queue)
        super().__init__(
            operands=[queue],
            properties={"what": PublishedAttr(what), "delay": IntAttr(delay)},
            result_types=[made_queue_type(source.element, source.lag.data + delay, tuple(edges))],
        )

    @property
    def lag(self) -> int:
        """The lag of the result, in stream steps."""
        return queue_lag(self.results[0])

    @property
    def publishes_copies(self) -> bool:
        """The asynchronous copies of a load serve the readers."""
        return self.what.data is Published.COPIES

    @property
    def element(self) -> Attribute:
        """The type of published cells in memory: copies bring the bytes of a field."""
        load = self.queue.owner
        if self.publishes_copies and isinstance(load, LoadOp):
            return element_type(load.field)
        return queue_type(self.result).element

    @property
    def hold(self) -> int:
        """The age of published planes, in stream steps."""
        return self.lag - queue_lag(self.queue) - self.delay.data

    @property
    def edges(self) -> tuple[int, ...]:
        """Readable neighbour cells per in-plane axis."""
        return ints(queue_type(self.result).edges)

    def needs(self, made: NeededCells) -> Iterator[tuple[SSAValue, CellBox]]:
        """The queue, with the cells needed for the cells `made` of the result."""
        if self.result in made:
            yield self.queue, made[self.result]

    def verify_(self) -> None:
        verify_reader(self, self.queue)
        if self.publishes_copies and not (
            isinstance(load := self.queue.owner, LoadOp) and load.data is not None
        ):
            raise VerifyException("only a load's asynchronous copies can be published")
        delay = self.delay.data
        if self.hold < 0:
            raise VerifyException(
                f"lag {self.lag} is below the source's {queue_lag(self.queue)} plus delay {delay}"
            )
        if not self.edges:
            raise VerifyException("an exchange needs edges along an axis")
        if self.home is None:
            return
        every, slots = self.home.every.data, self.home.slots.data
        if not (delay == 0 and every == 1) and delay < every:
            raise VerifyException(
                f"delay {delay} is shorter than the {every} steps between synchronisations"
            )
        if slots < delay + every:
            raise VerifyException(
                f"{slots} slots are overwritten before the read: delay {delay} and one "
                f"synchronisation every {every} steps need {delay + every}"
            )
        if self.home.sync.data is Sync.FLAGS and slots < 2 * delay:
            raise VerifyException(
                f"{slots} slots are too few: with flags, a sender learns {delay} steps late that "
                f"a slot was read; use {2 * delay} slots"
            )


def exchanges_of(queue: SSAValue) -> list[ExchangeOp]:
    """The exchanges of a queue."""
    return [use.operation for use in queue.uses if isinstance(use.operation, ExchangeOp)]
