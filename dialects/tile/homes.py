"""Homes: where the planes of a queue are kept."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from timetile.dialects.tile.kinds import (
    Addressing,
    AddressingAttr,
    Reader,
    ReaderAttr,
    Space,
    SpaceAttr,
    Sync,
    SyncAttr,
)


@irdl_attr_definition
class RegistersAttr(ParametrizedAttribute):
    """
    Home of a queue: each thread holds the thread's cells of `depth` older planes in registers;
    `depth` is the greatest age read. The stream loop is unrolled by `period`, so that
    planes age by renaming.

    Example: `#tile.registers<depth 2, period 2>`
    """

    name = "tile.registers"
    depth: IntAttr
    period: IntAttr

    def __init__(self, depth: int, period: int):
        super().__init__(IntAttr(depth), IntAttr(period))

    def verify(self) -> None:
        if self.depth.data < 0 or self.period.data < 1:
            raise VerifyException("depth is at least 0 and period at least 1")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("depth")
            depth = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("period")
            return [IntAttr(depth), IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<depth {self.depth.data}, period {self.period.data}>")


@irdl_attr_definition
class SharedAttr(ParametrizedAttribute):
    """
    Home of a queue: a ring of `slots` planes in shared memory.

    How a step finds a slot: `fixed`, the loop is unrolled and offsets are constants; `shifting`,
    the loop carries and rotates the slots' offsets; `computed`, `(step + base) & (slots - 1)`. All
    computed queues of a kernel share a ring, the circular multi-queue (EBISU, section 4.2): each
    queue's head is `base` slots ahead, and the next queue overwrites slots no longer read.

    With `reader lane` a lane reads only the lane's own writes, and needs no synchronisation; with
    `reader tile` a lane may read cells of neighbours.

    Example: `#tile.shared<slots 8, computed, base 3, reader tile>`
    """

    name = "tile.shared"
    slots: IntAttr
    addressing: AddressingAttr
    base: IntAttr
    reader: ReaderAttr

    def __init__(self, slots: int, addressing: Addressing, base: int, reader: Reader):
        super().__init__(
            IntAttr(slots), AddressingAttr(addressing), IntAttr(base), ReaderAttr(reader)
        )

    def verify(self) -> None:
        verify_ring(self.slots.data, self.addressing.data)
        if not 0 <= self.base.data < self.slots.data:
            raise VerifyException(f"base {self.base.data} of a ring of {self.slots.data} slots")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            slots, addressing = parse_ring(parser)
            parser.parse_keyword("base")
            base = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("reader")
            reader = ReaderAttr(parser.parse_str_enum(Reader))
        return [slots, addressing, IntAttr(base), reader]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<slots {self.slots.data}, {self.addressing.data}, base {self.base.data}, "
            f"reader {self.reader.data}>"
        )


def parse_ring(parser: AttrParser) -> tuple[IntAttr, AddressingAttr]:
    """Parse `slots 8, computed,`: the slots of a ring, and their addressing."""
    parser.parse_keyword("slots")
    slots = IntAttr(parser.parse_integer())
    parser.parse_punctuation(",")
    addressing = AddressingAttr(parser.parse_str_enum(Addressing))
    parser.parse_punctuation(",")
    return slots, addressing


def verify_ring(slots: int, addressing: Addressing) -> None:
    """Raise VerifyException unless `addressing` fits a ring of `slots` planes."""
    if slots < 1:
        raise VerifyException(f"a ring has at least one slot, got {slots}")
    if addressing is Addressing.COMPUTED and slots & (slots - 1):
        raise VerifyException(f"computed addressing needs a power of two of slots, got {slots}")


@irdl_attr_definition
class CopiesAttr(ParametrizedAttribute):
    """
    Home of a loaded queue: a ring of `slots` planes in shared memory for each warp, filled by the
    load's asynchronous copies. Readers find own cells of every age there: a coefficient is fetched
    once for all levels, and takes no register between two reads.

    Example: `#tile.copies<slots 8>`
    """

    name = "tile.copies"
    slots: IntAttr

    def __init__(self, slots: int):
        super().__init__(IntAttr(slots))

    def verify(self) -> None:
        verify_ring(self.slots.data, Addressing.FIXED)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("slots")
            return [IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<slots {self.slots.data}>")


@irdl_attr_definition
class MemoryAttr(ParametrizedAttribute):
    """
    Home of a loaded queue without storage: readers read the field again.

    Example: `#tile.memory`
    """

    name = "tile.memory"


@irdl_attr_definition
class ExchangeBufferAttr(ParametrizedAttribute):
    """
    Home of an exchange: `slots` planes (or edges of planes) in memory shared by the tile's threads.
    Threads synchronise once in `every` steps: at a `barrier`, or at an `mbarrier` in two halves,
    arriving after a step's last access to exchanged cells and waiting before the next step's first
    access. Blocks of a device tile exchange through global memory as well: by `flags`, in messages
    numbered by steps, or at a barrier of all blocks, `grid`.

    The contract: readers read cells of step i in step i + delay, after a synchronisation behind the
    writes; step i + slots writes the slot again, after another synchronisation.

    Example: `#tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier>`
    """

    name = "tile.exchange_buffer"
    slots: IntAttr
    addressing: AddressingAttr
    every: IntAttr
    space: SpaceAttr
    sync: SyncAttr

    def __init__(
        self,
        slots: int,
        addressing: Addressing,
        every: int = 1,
        space: Space = Space.SHARED,
        sync: Sync = Sync.BARRIER,
    ):
        super().__init__(
            IntAttr(slots),
            AddressingAttr(addressing),
            IntAttr(every),
            SpaceAttr(space),
            SyncAttr(sync),
        )

    def synchronised_by(self, sync: Sync, space: Space = Space.SHARED) -> ExchangeBufferAttr:
        """
        The home with another synchronisation, and another memory for exchanges between blocks.
        """
        return ExchangeBufferAttr(
            self.slots.data, self.addressing.data, self.every.data, space, sync
        )

    def verify(self) -> None:
        verify_ring(self.slots.data, self.addressing.data)
        if self.every.data < 1:
            raise VerifyException(
                f"threads synchronise every 1 or more steps, got {self.every.data}"
            )
        if (self.space.data is Space.GLOBAL) != (self.sync.data in (Sync.FLAGS, Sync.GRID)):
            raise VerifyException(
                "a buffer in global memory is synchronised by flags or grid, in shared memory by "
                "barrier or "
                f"mbarrier, got {self.sync.data} for {self.space.data} memory"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            slots, addressing = parse_ring(parser)
            parser.parse_keyword("every")
            every = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("space")
            space = SpaceAttr(parser.parse_str_enum(Space))
            parser.parse_punctuation(",")
            parser.parse_keyword("sync")
            sync = SyncAttr(parser.parse_str_enum(Sync))
        return [slots, addressing, IntAttr(every), space, sync]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<slots {self.slots.data}, {self.addressing.data}, every {self.every.data}, "
            f"space {self.space.data}, sync {self.sync.data}>"
        )


HomeAttr = RegistersAttr | SharedAttr | CopiesAttr | MemoryAttr | ExchangeBufferAttr
