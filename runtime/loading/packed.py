"""A module as bytes: attributes and classes by pickle, operations in order with numbered values.

Reading takes a tenth of the time of parsing the printed module. Only classes of xDSL and of this
package are read: another package's class may have another version. A module of other classes, and
one that uses a value before its definition, has no bytes.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from enum import Enum
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from timetile.runtime.loading.places import place_of

OWN = ("xdsl", "timetile")
"""The packages with known classes."""

TypeAndHint = tuple[Attribute, str | None]
"""The type and the name hint of a value."""

BROKEN = (pickle.UnpicklingError, EOFError, ImportError, AssertionError, MemoryError)
"""Exceptions of bytes that are no module, beside those of wrong values."""


def is_of_own_package(module_name: str) -> bool:
    """Whether a module lies in a known package."""
    return module_name.partition(".")[0] in OWN


class OwnObjects(pickle.Pickler):
    """Writes objects by the known packages' classes alone."""

    def reducer_override(self, obj: Any, /) -> Any:
        """A member of an enumeration by value: Python 3.11.0 to 3.11.3 write it by `getattr`."""
        return (type(obj), (obj.value,)) if isinstance(obj, Enum) else NotImplemented


class OwnClasses(pickle.Unpickler):
    """Reads objects of the known packages alone."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """A class by name. Raises UnpicklingError for all else, and for another package's class."""
        if is_of_own_package(module_name):
            found = super().find_class(module_name, global_name)
            # A dotted name reaches what a module imports.
            if isinstance(found, type) and is_of_own_package(found.__module__):
                return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is no class of {OWN}")


class Packing:
    """Packs the operations of a module loaded by a name."""

    def __init__(self, name: str):
        self.name = name
        self.numbers: dict[SSAValue, int] = {}

    def typed(self, values: Sequence[OpResult | BlockArgument]) -> list[TypeAndHint]:
        """The types and names of values, which get numbers."""
        for value in values:
            self.numbers[value] = len(self.numbers)
        return [(value.type, value.name_hint) for value in values]

    def operation(self, op: Operation) -> tuple[Any, ...]:
        """An operation. Raises KeyError for a value used before its definition."""
        if op.successors:
            raise KeyError("an operation goes on to another block")
        operands = [self.numbers[each] for each in op.operands]
        regions = [self.region(each) for each in op.regions]
        results, place = self.typed(op.results), place_of(op.location, self.name)
        return type(op), operands, results, op.properties, op.attributes, regions, place

    def region(self, region: Region) -> list[tuple[Any, ...]]:
        """A region, as arguments and operations of blocks."""
        return [
            (self.typed(block.args), [self.operation(each) for each in block.ops])
            for block in region.blocks
        ]


class Unpacking:
    """Makes the operations of a packed module again, for a module loaded by a name."""

    def __init__(self, name: str):
        self.file = StringAttr(name)
        self.values: list[SSAValue] = []

    def take(
        self, values: Sequence[OpResult | BlockArgument], typed: Sequence[TypeAndHint]
    ) -> None:
        """Number values, and name them."""
        for value, (_, hint) in zip(values, typed, strict=True):
            value.name_hint = hint
            self.values.append(value)

    def operation(self, packed: tuple[Any, ...]) -> Operation:
        """An operation."""
        kind, operands, results, properties, attributes, regions, place = packed
        op = kind.create(
            operands=[self.values[each] for each in operands],
            result_types=[each for each, _ in results],
            properties=properties,
            attributes=attributes,
            regions=[self.region(each) for each in regions],
        )
        self.take(op.results, results)
        if place is not None:
            line, column, *other = place
            file = StringAttr(*other) if other else self.file
            op.location = FileLineColLoc(file, IntAttr(line), IntAttr(column))
        return op

    def region(self, packed: Sequence[tuple[Any, ...]]) -> Region:
        """A region."""
        blocks: list[Block] = []
        for typed, ops in packed:
            block = Block(arg_types=[each for each, _ in typed])
            self.take(block.args, typed)
            block.add_ops([self.operation(each) for each in ops])
            blocks.append(block)
        return Region(blocks)


def packed_module(module: ModuleOp, name: str) -> bytes | None:
    """The bytes of a module loaded by a name; None for a module without."""
    written = io.BytesIO()
    try:
        packed = Packing(name).operation(module)
        OwnObjects(written, protocol=5).dump(packed)
        made = written.getvalue()
        return made if Packing(name).operation(unpacked_module(made, name)) == packed else None
    except (KeyError, ValueError, AttributeError, TypeError, pickle.PicklingError):
        return None


def unpacked_module(packed: bytes, name: str) -> ModuleOp:
    """The module of some bytes, loaded by a name. Raises ValueError for other bytes."""
    try:
        module = Unpacking(name).operation(OwnClasses(io.BytesIO(packed)).load())
    except BROKEN as error:
        raise ValueError(f"these bytes are no module: {error}") from error
    if not isinstance(module, ModuleOp):
        raise ValueError("these bytes are another operation")
    return module
