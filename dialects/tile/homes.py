"""Homes: where the planes of a queue are kept."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr, NoneAttr
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
class CommonRingAttr(ParametrizedAttribute):
    """
    A ring of planes in shared memory that several queues of a kernel share, by its number. A step
    writes a queue's plane to slot `step + base`, modulo the slots of the ring: queues of different
    bases follow each other around the ring, and overwrite planes that no stage reads any more.
    EBISU's circular multi-queue (section 4.2), AN5D's double buffer for all levels, and the planes
    of a tile that stays on the device are common rings. Homes of a ring have equal slots and
    addressing, and their queues cells of one type. The results of one stage take the slots at
    `base`, `base - 1` and on, a window each.

    Example: `#tile.common_ring<0, 3>`
    """

    name = "tile.common_ring"
    number: IntAttr
    base: IntAttr

    def __init__(self, number: int, base: int):
        super().__init__(IntAttr(number), IntAttr(base))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            number = IntAttr(parser.parse_integer())
            parser.parse_punctuation(",")
            return [number, IntAttr(parser.parse_integer())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.number.data}, {self.base.data}>")


@irdl_attr_definition
class SharedAttr(ParametrizedAttribute):
    """
    Home of a queue: a ring of `slots` planes in shared memory.

    How a step finds a slot: `fixed`, the loop is unrolled and offsets are constants; `shifting`,
    the loop carries and rotates the slots' offsets; `computed`, `step & (slots - 1)`.

    With `reader lane` a lane reads only the lane's own writes, and needs no synchronisation; with
    `reader tile` a lane may read cells of neighbours.

    Example: `#tile.shared<slots 8, computed, ring 0 base 3, reader tile>`
    """

    name = "tile.shared"
    slots: IntAttr
    addressing: AddressingAttr
    common: CommonRingAttr | NoneAttr
    reader: ReaderAttr

    def __init__(
        self,
        slots: int,
        addressing: Addressing,
        reader: Reader,
        common: CommonRingAttr | None = None,
    ):
        super().__init__(
            IntAttr(slots), AddressingAttr(addressing), common or NoneAttr(), ReaderAttr(reader)
        )

    def in_ring(self, common: CommonRingAttr, slots: int) -> SharedAttr:
        """The home in a common ring of some slots."""
        return SharedAttr(slots, self.addressing.data, self.reader.data, common)

    def verify(self) -> None:
        verify_ring(self.slots.data, self.addressing.data, self.common)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            slots, addressing, common = parse_ring(parser)
            parser.parse_keyword("reader")
            reader = ReaderAttr(parser.parse_str_enum(Reader))
        return [slots, addressing, common, reader]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<slots {self.slots.data}, {self.addressing.data}, {named_ring(self.common)}"
            f"reader {self.reader.data}>"
        )


def parse_ring(
    parser: AttrParser,
) -> tuple[IntAttr, AddressingAttr, CommonRingAttr | NoneAttr]:
    """
    Parse `slots 8, computed, ring 0 base 3,`: the slots of a ring, their addressing, and the common
    ring, if any.
    """
    parser.parse_keyword("slots")
    slots = IntAttr(parser.parse_integer())
    parser.parse_punctuation(",")
    addressing = AddressingAttr(parser.parse_str_enum(Addressing))
    parser.parse_punctuation(",")
    common: CommonRingAttr | NoneAttr = NoneAttr()
    if parser.parse_optional_keyword("ring") is not None:
        number = parser.parse_integer()
        parser.parse_keyword("base")
        common = CommonRingAttr(number, parser.parse_integer())
        parser.parse_punctuation(",")
    return slots, addressing, common


def named_ring(common: CommonRingAttr | NoneAttr) -> str:
    """The text of a common ring in a home; empty for a ring of a queue's own."""
    if isinstance(common, NoneAttr):
        return ""
    return f"ring {common.number.data} base {common.base.data}, "


def verify_ring(
    slots: int, addressing: Addressing, common: CommonRingAttr | NoneAttr | None = None
) -> None:
    """
    Raise VerifyException unless `addressing` and the base in a common ring fit a ring of `slots`
    planes.
    """
    if isinstance(common, CommonRingAttr) and not 0 <= common.base.data < slots:
        raise VerifyException(f"base {common.base.data} of a ring of {slots} slots")
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

    Several exchanges may share a common ring.

    Example: `#tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier>`
    """

    name = "tile.exchange_buffer"
    slots: IntAttr
    addressing: AddressingAttr
    common: CommonRingAttr | NoneAttr
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
        common: CommonRingAttr | None = None,
    ):
        super().__init__(
            IntAttr(slots),
            AddressingAttr(addressing),
            common or NoneAttr(),
            IntAttr(every),
            SpaceAttr(space),
            SyncAttr(sync),
        )

    def in_ring(self, common: CommonRingAttr, slots: int) -> ExchangeBufferAttr:
        """The home in a common ring of some slots."""
        return ExchangeBufferAttr(
            slots,
            self.addressing.data,
            self.every.data,
            self.space.data,
            self.sync.data,
            common,
        )

    def addressed(self, addressing: Addressing) -> ExchangeBufferAttr:
        """The home with slots found another way; of a power of two if computed."""
        slots = self.slots.data
        if addressing is Addressing.COMPUTED:
            slots = 1 << (slots - 1).bit_length()
        return ExchangeBufferAttr(
            slots, addressing, self.every.data, self.space.data, self.sync.data
        )

    def synchronised_by(self, sync: Sync, space: Space = Space.SHARED) -> ExchangeBufferAttr:
        """
        The home with another synchronisation, and another memory for exchanges between blocks.
        """
        return ExchangeBufferAttr(
            self.slots.data,
            self.addressing.data,
            self.every.data,
            space,
            sync,
            None if isinstance(self.common, NoneAttr) else self.common,
        )

    def verify(self) -> None:
        verify_ring(self.slots.data, self.addressing.data, self.common)
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
            slots, addressing, common = parse_ring(parser)
            parser.parse_keyword("every")
            every = parser.parse_integer()
            parser.parse_punctuation(",")
            parser.parse_keyword("space")
            space = SpaceAttr(parser.parse_str_enum(Space))
            parser.parse_punctuation(",")
            parser.parse_keyword("sync")
            sync = SyncAttr(parser.parse_str_enum(Sync))
        return [slots, addressing, common, IntAttr(every), space, sync]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(
            f"<slots {self.slots.data}, {self.addressing.data}, {named_ring(self.common)}"
            f"every {self.every.data}, space {self.space.data}, sync {self.sync.data}>"
        )


HomeAttr = RegistersAttr | SharedAttr | CopiesAttr | MemoryAttr | ExchangeBufferAttr
