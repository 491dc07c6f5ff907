"""Runs planned launches by the PTX of their kernels, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from timetile.dialects.syntax import element_type
from timetile.dialects.temporal import GatherOp, LoopOp, ReduceOp, SweepOp
from timetile.dialects.tile import CopyOp, LaunchOp, RoleKind, ScratchOp
from timetile.lowering.gather_kernels import THREADS, gather_name
from timetile.lowering.ptx.symbols import symbol
from timetile.lowering.reduction_kernels import Round, rounds_of
from timetile.lowering.sweep_frames import SweepFrame
from timetile.lowering.tile_to_gpu.message_buffers import launch_words
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.executors.ptx.accesses import PARAMETERS
from timetile.runtime.executors.ptx.arithmetic import Array
from timetile.runtime.executors.ptx.machine import PtxLaunch
from timetile.runtime.executors.ptx.memory import words_of
from timetile.runtime.executors.ptx.parse import parse_module
from timetile.runtime.executors.ptx.program import Program
from timetile.runtime.executors.runners import PlannedRunner, resident_tiles
from timetile.runtime.executors.simt.memory import Buffer
from timetile.runtime.host.cell_nests import FarMemory, NestPlaces
from timetile.runtime.host.functions import HostValues
from timetile.runtime.kernels.gathering import GatherFrame
from timetile.runtime.kernels.kernel import Kernel
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.kernels.reducing import OLDEST_ARCH, ReducedFields, gather_text, round_text
from timetile.runtime.kernels.reducing import THREADS as BLOCK
from timetile.runtime.kernels.sweeping import sweep_text


class FieldOfPtx(Buffer):
    """A field as words, with the type of its cells."""

    def __init__(self, cells: NDArray[Any], *, unset: bool = False):
        super().__init__(words_of(cells), unset=unset)
        self.cell = cells.dtype

    @staticmethod
    def of(data: NDArray[Any]) -> Buffer:
        """A field with a copy of an array, all cells set."""
        return FieldOfPtx(data)


class FieldMemory(FarMemory):
    """Fields as words, with cells moved by a GPU's kernels; memory of the host alone is arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.sweeps: dict[SweepOp, Program] = {}
        """The kernels of sweeps made so far."""
        self.reduced = ReducedFields()
        self.words: dict[SweepOp, Buffer] = {}
        """The words for messages of sweeps, from launch to launch."""

    def is_far(self, buffer: Any) -> bool:
        return isinstance(buffer, FieldOfPtx)

    def fetch(self, buffer: Any, places: NestPlaces, dtype: np.dtype[Any]) -> Array:
        near, at = FieldOfPtx(np.zeros(len(places), dtype)), FieldOfPtx(places)
        frame = GatherFrame.flat(len(places), buffer.data.nbytes, dtype.itemsize)
        self.launch(frame, near, buffer, [at])
        return near.data.view(dtype)

    def put(self, buffer: Any, places: NestPlaces, cells: Array) -> None:
        frame = GatherFrame.flat(len(places), buffer.data.nbytes, cells.itemsize)
        self.launch(frame, buffer, FieldOfPtx(cells), [FieldOfPtx(places)], scatter=True)

    @staticmethod
    def launch(
        frame: GatherFrame,
        target: Any,
        source: Any,
        places: Sequence[Any],
        *,
        scatter: bool = False,
    ) -> None:
        """Run the kernel that a GPU would run."""
        name = gather_name(frame.cell_bytes, scatter=scatter)
        entry = parse_module(gather_text(frame.cell_bytes, scatter=scatter))[name]
        fields = [target, source, *frame.places(places)]
        numbers = [np.asarray(number).astype(np.uint64) for number in frame.numbers()]
        PtxLaunch(Program(entry), frame.blocks, THREADS, 0, [*fields, *numbers]).run()

    def new(self, op: Operation, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        return FieldOfPtx(super().new(op, shape, dtype), unset=True)

    def contents(self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return buffer.data.view(dtype).reshape(shape)

    def fill(self, buffer: Any, cells: Array) -> None:
        buffer.data[:] = words_of(cells)
        buffer.unset[:] = False

    def gather(self, op: GatherOp, target: Any, source: Any, places: Sequence[Any]) -> None:
        self.launch(GatherFrame.of(op), target, source, places)

    def reduce(self, op: ReduceOp, buffer: Any) -> Any:
        """The number made by the kernels of a reduction, as printed for a GPU."""
        if not self.is_far(buffer):
            return super().reduce(op, buffer)
        fields, rounds = [buffer], list[Round](rounds_of(op))
        if op in self.reduced.made:
            rounds[0], (*fields,) = self.reduced.made[op]
        for made in rounds:
            numbers = FieldOfPtx(np.zeros(made.blocks, buffer.cell), unset=True)
            entry = parse_module(round_text(made, OLDEST_ARCH))[symbol(made.name)]
            PtxLaunch(Program(entry), made.grid, BLOCK, 0, [*fields, numbers]).run()
            fields = [numbers]
        return fields[0].data.view(buffer.cell)[0]

    def leaves_cells(self, loop: LoopOp, fields: Mapping[SSAValue, Any]) -> bool:
        return self.is_alone and self.reduced.take(loop, fields)

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run the kernel of a sweep, as printed for a GPU."""
        frame = SweepFrame.of(op)
        if op not in self.sweeps:
            entry = parse_module(sweep_text(frame, OLDEST_ARCH))[symbol(frame.name)]
            self.sweeps[op] = Program(entry)
            self.words[op] = FieldOfPtx(np.zeros(frame.words, np.int64))
        program = self.sweeps[op]
        given = [*(fields[f] for f in frame.fields), *(numbers[s] for s in frame.scalars)]
        if frame.words:
            given.append(self.words[op])
        arguments = arguments_of(program, given)
        PtxLaunch(program, frame.grid, frame.threads, frame.shared_bytes, arguments).run()


def arguments_of(program: Program, given: Sequence[Any]) -> list[Any]:
    """Fields, and numbers in the types of a kernel's parameters."""
    return [
        value if isinstance(value, Buffer) else np.asarray(value).astype(PARAMETERS[kind])
        for value, (kind, _) in zip(given, program.entry.parameters)
    ]


class PtxRunner(PlannedRunner):
    """Runs planned launches with the PTX executor, on buffers with race checks."""

    takes_machine_code = True

    def __init__(self, kernels: ProgramKernels, progress: Progress | None = None):
        super().__init__(kernels, progress)
        self.memory = FieldMemory()
        self.programs: dict[str, Program] = {}

    def program(self, kernel: Kernel) -> Program:
        """A kernel as printed for a GPU, ready to run."""
        if kernel.name not in self.programs:
            self.programs[kernel.name] = Program(parse_module(kernel.ptx)[symbol(kernel.name)])
        return self.programs[kernel.name]

    def launch(self, op: LaunchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Run a launch of a kernel."""
        kernel = self.kernels.kernel(op.kernel.string_value())
        program = self.program(kernel)
        grid, given, loose = kernel.grid, list(operands), self.written_lists(op, operands)
        if kernel.has_messages:
            together = resident_tiles(grid, kernel.blocks_per_tile)
            grid = together * kernel.blocks_per_tile
            words = launch_words(together, kernel.message_words)
            messages = Buffer(np.zeros(words, dtype=np.uint64).view(np.uint8))
            given += [messages, together]
            loose.append(messages)
        arguments = arguments_of(program, given)
        threads, shared = kernel.block, kernel.shared_bytes
        launch = PtxLaunch(
            program, grid, threads, shared, arguments, kernel.cluster, kernel.blocks_per_tile
        )
        launch.memory.loose = loose
        launch.run()
        return []

    def written_lists(self, op: LaunchOp, operands: Sequence[Any]) -> list[Buffer]:
        """
        The lists of points among the operands: a kernel writes no other integers of fields around
        its loop.
        """
        roles = self.kernels.planned[op.kernel.string_value()].roles
        return [
            buffer
            for role, value, buffer in zip(roles, op.operands, operands, strict=True)
            if role.kind.data is RoleKind.CAPTURE and element_type(value) == i32
        ]

    def scratch(self, op: ScratchOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Make a scratch buffer, with all cells unset."""
        source = operands[0]
        return [FieldOfPtx(np.zeros_like(source.data.view(source.cell)), unset=True)]

    def copy(self, op: CopyOp, operands: Sequence[Any], values: HostValues) -> Sequence[Any]:
        """Copy a buffer, with its unset cells."""
        source, target = operands
        target.data[:] = source.data
        target.unset[:] = source.unset
        return []
