"""The actions of a run on a GPU, stored for repeated runs: launches, copies, and graphs of both."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from xdsl.dialects.builtin import f32

from timetile.dialects.tile import LaunchOp
from timetile.passes.analysis.launches.accesses import CellAccess, collide, predecessors
from timetile.runtime.device.arguments import LaunchArguments
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.driven import Driven
from timetile.runtime.kernels.kernel import Kernel

LAUNCHES_OF_A_GRAPH = 16
"""
A launch of a graph takes the host 4 us, like a launch of one kernel; the GPU is as quick with 16
kernels as with more.
"""

FEWEST_LAUNCHES = 4 * LAUNCHES_OF_A_GRAPH
"""Least number of launches in a loop for a graph: making a graph takes 0.1 to 0.4 ms."""

MOST_LAUNCHES = 256
"""Largest number of launches of a run in one graph: making such a graph takes some milliseconds."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """The last launch: its operands, and the packed arguments."""

    given: tuple[DeviceBuffer | bytes, ...]
    kernel: Kernel
    arguments: LaunchArguments


class LaunchOrder:
    """The order of launches: launches without common cells may run side by side."""

    def __init__(self, launches: Sequence[Prepared]):
        self.launches = launches
        self.known: dict[tuple[Prepared, Prepared], bool] = {}
        self.touched: dict[Prepared, dict[int, list[tuple[DeviceBuffer, CellAccess]]]] = {}
        """By launch, the accessed fields by the number of their memory."""
        fields = [each for one in launches for each in one.given if isinstance(each, DeviceBuffer)]
        self.memory = pieces_of_memory(fields)

    def fields_of(self, launch: Prepared) -> dict[int, list[tuple[DeviceBuffer, CellAccess]]]:
        """The fields that a launch accesses, by the number of their memory."""
        found = self.touched.get(launch)
        if found is None:
            found = self.touched[launch] = {}
            for given, access in zip(launch.given, launch.kernel.accesses):
                if isinstance(given, DeviceBuffer):
                    found.setdefault(self.memory[given], []).append((given, access))
        return found

    def must_wait(self, later: int, earlier: int) -> bool:
        """Whether a launch must wait for an earlier one, both by number."""
        pair = self.launches[later], self.launches[earlier]
        if pair not in self.known:
            self.known[pair] = self.share_cells(*pair)
        return self.known[pair]

    def share_cells(self, later: Prepared, earlier: Prepared) -> bool:
        """Whether one of two launches may write cells read or written by the other."""
        if any(len(each.kernel.accesses) != len(each.given) for each in (later, earlier)):
            return True
        fields, others = self.fields_of(later), self.fields_of(earlier)
        return any(
            touch(*one, *other)
            for number in fields.keys() & others.keys()
            for one, other in product(fields[number], others[number])
        )

    @property
    def waits(self) -> list[list[int]]:
        """For each launch, the earlier launches to wait for."""
        return predecessors(len(self.launches), self.must_wait)


def touch(one: DeviceBuffer, access: CellAccess, other: DeviceBuffer, before: CellAccess) -> bool:
    """
    Whether one of two accesses writes cells of the other. Different fields with common memory are
    taken to share all cells.
    """
    if one == other:
        return collide(access, before)
    return access.writes is not None or before.writes is not None


def pieces_of_memory(fields: Iterable[DeviceBuffer]) -> dict[DeviceBuffer, int]:
    """The number of the memory of each field; fields with common bytes have one number."""
    found: dict[DeviceBuffer, int] = {}
    end = number = -1
    for each in sorted(set(fields), key=lambda field: (field.pointer, field.bytes)):
        if each.pointer >= end:
            number += 1
        found[each] = number
        end = max(end, each.pointer + each.bytes)
    return found


@dataclass(frozen=True, eq=False)
class Repeated:
    """Launches made `times` times, one after the other."""

    launches: list[Prepared]
    times: int

    @property
    def is_attended(self) -> bool:
        """Whether some launch needs work by the host."""
        return any(launch.kernel.is_attended for launch in self.launches)


@dataclass(frozen=True, eq=False)
class Copied:
    """One buffer is copied to another."""

    source: DeviceBuffer
    target: DeviceBuffer


Action = Repeated | Copied | Driven


@dataclass(eq=False)
class GraphRun:
    """
    The actions of a whole run, as a graph for frequent runs, and the places of the results among
    the run's buffers.
    """

    actions: list[Action]
    results: tuple[int, ...]
    again: int = 0
    """How often the run was made again."""
    graph: Any = None

    @cached_property
    def launches(self) -> list[Prepared] | None:
        """
        All launches of the run, one after the other; None for one launch, for too many, or for a
        run with other actions.
        """
        repeated = [action for action in self.actions if isinstance(action, Repeated)]
        if len(repeated) < len(self.actions) or any(each.is_attended for each in repeated):
            return None
        if not 1 < sum(len(each.launches) * each.times for each in repeated) <= MOST_LAUNCHES:
            return None
        return [launch for each in repeated for launch in each.launches * each.times]

    @property
    def is_due(self) -> bool:
        """
        Whether a graph of all launches pays: at the second run of few launches, at the third of
        many.
        """
        if self.launches is None:
            return False
        return self.again > (len(self.launches) >= FEWEST_LAUNCHES)


def arguments_of(op: LaunchOp, operands: Sequence[Any]) -> LaunchArguments:
    """The arguments of a launch, in the types declared by the kernel."""
    values: list[Any] = []
    types: list[Any] = []
    for operand, value in zip(operands, op.arguments):
        if isinstance(operand, DeviceBuffer):
            values.append(operand.pointer)
            types.append(ctypes.c_void_p)
            continue
        wide = getattr(value.type, "width", None)
        is_float = hasattr(operand, "dtype") and operand.dtype.kind == "f"
        is_float = is_float or isinstance(operand, float) or value.type.name.startswith("f")
        values.append(float(operand) if is_float else int(operand))
        if is_float:
            types.append(ctypes.c_float if value.type == f32 else ctypes.c_double)
        else:
            types.append(ctypes.c_int32 if wide is not None and wide.data == 32 else ctypes.c_int64)
    return LaunchArguments(values, types)
