"""A time loop in the words of the papers: sides of the domain, radius, accesses of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import LoopOp
from timetile.passes.analysis.cells.cell_functions import cell_function
from timetile.passes.analysis.cells.cell_operations import CELL_OPERATIONS
from timetile.passes.analysis.launches.liveness import written_bounds
from timetile.passes.cost.papers.an5d import Workload, alu_utilisation, thread_reads
from timetile.passes.cost.papers.ebisu import shared_reads
from timetile.passes.scheduling.schedule_space import radii_of_step

Offset = tuple[int, ...]


@dataclass(frozen=True)
class PaperProgram:
    """A time loop of a module, with the quantities of the papers' formulas."""

    loop: LoopOp
    module: ModuleOp

    @cached_property
    def domain(self) -> tuple[int, ...]:
        """Cells of the domain along every axis."""
        bounds = written_bounds(self.loop)
        return tuple(high - low for low, high in zip(bounds.lb, bounds.ub))

    @property
    def rank(self) -> int:
        """Axes of the domain."""
        return len(self.domain)

    @cached_property
    def radii(self) -> tuple[int, ...]:
        """The largest distance of a tap along every axis."""
        return radii_of_step(self.loop)

    @property
    def radius(self) -> int:
        """The largest distance of a tap along any axis; 1 for a step without neighbours."""
        return max(1, *self.radii)

    @cached_property
    def cell_bytes(self) -> int:
        """Bytes of a cell of the widest buffer."""
        return max(CELL_BYTES[element_type(buffer)] for buffer in self.loop.buffers)

    @cached_property
    def taps(self) -> dict[SSAValue, set[Offset]]:
        """The offsets of a step's reads, by field."""
        found: dict[SSAValue, set[Offset]] = {}
        for update in self.loop.updates:
            for tap in update.tap_list:
                found.setdefault(update.sources[tap.operand], set()).add(tap.offset)
        return found

    @property
    def reads_several_planes_beside(self) -> bool:
        """Whether taps lie beside the cell in other planes than the cell's own (boxes)."""
        return any(at[0] and any(at[1:]) for of in self.taps.values() for at in of)

    @property
    def results(self) -> int:
        """Fields written by a step."""
        return len({target for update in self.loop.updates for target in update.targets})

    @property
    def global_accesses(self) -> int:
        """Fields read and written by a step: accesses to global memory a cell and launch."""
        return len(self.taps) + self.results

    def shared_accesses(self, *, in_registers: bool) -> float:
        """Accesses to shared memory a cell and step (EBISU, table 2)."""
        stream = 0 if self.rank > 1 else None
        read = (shared_reads(of, stream, in_registers=in_registers) for of in self.taps.values())
        return self.results + sum(read)

    @cached_property
    def operations(self) -> tuple[int, int]:
        """Fused multiply-adds, and other floating-point operations, a cell and step."""
        fused = others = 0
        for update in self.loop.updates:
            for op in cell_function(self.module, update).walk():
                known = CELL_OPERATIONS.get(type(op))
                count = 0 if known is None else known.flops
                fused += count == 2
                others += count if count != 2 else 0
        return fused, others

    def of_an5d(self) -> Workload:
        """The program for AN5D's model."""
        fused, others = self.operations
        return Workload(
            domain=self.domain,
            radius=self.radius,
            cell_bytes=self.cell_bytes,
            shared_reads=sum(thread_reads(of, 0, cached=True) for of in self.taps.values()),
            flops=max(1, 2 * fused + others),
            alu=alu_utilisation(fused, others),
        )
