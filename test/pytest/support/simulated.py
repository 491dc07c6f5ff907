"""
Devices of the mind: streams of work run in any order that marks and waits allow, on arrays of
NumPy. A run that waits too little ends with other bits at some seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import gcd
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

import timetile
from support.simulated_link import HostsThatWait, SimulatedLink, SimulatedSide
from support.simulated_streams import Mark, Met, SimulatedMeetings, Step, World
from timetile.dialects.boxes import sizes_of
from timetile.dialects.decomposition import Decomposition
from timetile.dialects.syntax import field_bounds
from timetile.dialects.temporal import SweepOp
from timetile.dialects.tile import KernelOp, LaunchOp
from timetile.passes.targets.hardware import VECTOR_BYTES
from timetile.runtime.arithmetic.sweeps import BoxSlices, run_sweep
from timetile.runtime.device.gpu_memory import Recorded
from timetile.runtime.executors.homes import MarkedCells
from timetile.runtime.executors.planes import PlanesLaunch
from timetile.runtime.host.halos import HaloFrame, halos_differ
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.program.compiled_program import CompiledProgram
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.program.ranked_gpu_program import RankedGpuProgram
from timetile.runtime.ranks.peers import Peers
from timetile.runtime.ranks.rims import BoxCopy, Pitches
from timetile.runtime.ranks.sites import HANDLE_BYTES, Beside


def boxes(cells: NDArray[Any], copy: BoxCopy, at: Pitches) -> list[NDArray[Any]]:
    """The rows of a copied box, as views of an array."""
    flat, size = cells.reshape(-1), cells.itemsize
    first, pitch, width = at.first // size, at.pitch // size, copy.width // size
    begins = [
        first + (plane * at.height + row) * pitch
        for plane in range(copy.planes)
        for row in range(copy.rows)
    ]
    return [flat[begin : begin + width] for begin in begins]


SHARED: dict[int, MarkedCells] = {}
"""Buffers with a handle, kept for good."""


class SimulatedSite(HostsThatWait):
    """A site with a stream of the world; see `Site`."""

    def __init__(self, world: World, home: int | None = None):
        self.world, self.number = world, len(world.streams)
        world.streams.append(deque())
        self.tiled: dict[tuple[ProgramKernels, str], PlanesLaunch] = {}
        self.sizes: dict[int, int] = {}
        self.is_closed = False
        self.home = self.number if home is None else home

    def put_work(self, work: Callable[[], None]) -> None:
        """Put work on the stream."""
        self.world.put(self.number, work)

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> MarkedCells:
        """A buffer of unset cells."""
        self.sizes[len(self.sizes)] = 1
        return MarkedCells.of(np.zeros(shape, dtype), known=False)

    def free(self, buffer: MarkedCells) -> None:
        """Give back a buffer."""
        self.synchronize()
        self.sizes.popitem()

    def upload(self, buffer: MarkedCells, cells: NDArray[Any]) -> None:
        """Fill a buffer."""
        self.synchronize()
        buffer.data[...] = cells.reshape(buffer.data.shape)
        buffer.known[...] = True

    def download(self, cells: NDArray[Any], buffer: MarkedCells, first: int) -> None:
        """Fill an array."""
        self.synchronize()
        assert cells.flags.c_contiguous
        cells.reshape(-1)[:] = buffer.data.reshape(-1)[first : first + cells.size]

    def fetch(
        self, buffer: MarkedCells, places: NDArray[np.int64], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Cells at places."""
        self.synchronize()
        return buffer.data.reshape(-1)[places]

    def put(self, buffer: MarkedCells, places: NDArray[np.int64], cells: NDArray[Any]) -> None:
        """Set cells at places."""
        self.synchronize()
        buffer.data.reshape(-1)[places] = cells
        buffer.known.reshape(-1)[places] = True

    stores_beside = False
    """Whether kernels store to buffers of other sites."""

    def reaches(self, other: SimulatedSite) -> bool:
        """Whether kernels store to buffers of other sites."""
        return self.stores_beside

    def launch(
        self,
        kernels: ProgramKernels,
        op: LaunchOp,
        operands: Sequence[Any],
        beside: Sequence[Beside] = (),
    ) -> None:
        """Run a kernel plane by plane, later."""
        name = op.kernel.string_value()
        if (kernels, name) not in self.tiled:
            module = kernels.kernel_module(name)
            kernel = next(each for each in module.ops if isinstance(each, KernelOp))
            self.tiled[kernels, name] = PlanesLaunch(kernel, [*operands, *[None] * len(beside)])
        known = self.tiled[kernels, name]
        further = known.kernel.body.block.args[len(operands) :]
        shapes = [sizes_of(field_bounds(argument)) for argument in further]
        assert len(shapes) == len(beside), "a buffer for each further argument"
        self.world.launched.append((self.number, name))

        def work() -> None:
            made = [
                MarkedCells.of(np.zeros(shape, each.buffer.data.dtype), known=False)
                for shape, each in zip(shapes, beside)
            ]
            known.on([*operands, *made]).run()
            for cells, each in zip(made, beside):
                self.store_beside(cells, each)

        self.put_work(work)

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, MarkedCells], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep, later."""
        cells = {field: buffer.data for field, buffer in fields.items()}
        marks = {field: buffer.known for field, buffer in fields.items()}

        def before_read(field: SSAValue, place: BoxSlices) -> None:
            assert marks[field][place].all(), "a sweep reads unset cells"

        def before_write(field: SSAValue, place: BoxSlices) -> None:
            marks[field][place] = True

        self.put_work(lambda: run_sweep(op, cells, numbers, before_read, before_write))

    def store_beside(self, cells: MarkedCells, beside: Beside) -> None:
        """Move the cells that a kernel has stored to the buffer of another site."""
        size, copy = cells.data.itemsize, beside.copy
        assert copy.is_contiguous
        moved = (copy.target.first - copy.source.first) // size
        (stored,) = np.nonzero(cells.known.reshape(-1))
        rim = range(copy.source.first // size, (copy.source.first + copy.width) // size)
        assert all(cell in rim for cell in stored[[0, -1]]), "only the rim is stored"
        # A kernel's vectors begin where its own rows allow it: other rows begin alike.
        rows = cells.data.shape[-1] * size if cells.data.ndim > 1 else VECTOR_BYTES
        assert not moved * size % gcd(VECTOR_BYTES, rows), "vectors are aligned beside, too"
        beside.buffer.data.reshape(-1)[stored + moved] = cells.data.reshape(-1)[stored]
        beside.buffer.known.reshape(-1)[stored + moved] = True

    def copy(self, source: MarkedCells, target: MarkedCells) -> None:
        """Copy a buffer, later."""

        def work() -> None:
            target.data[:], target.known[:] = source.data, source.known

        self.put_work(work)

    def pull(self, source: MarkedCells, target: MarkedCells, copy: BoxCopy) -> None:
        """Copy a box, later."""
        size = source.data.itemsize
        # Marks are a byte a cell.
        marks = BoxCopy(
            copy.width // size, copy.rows, copy.planes,
            *(
                Pitches(each.first // size, each.pitch // size, each.height)
                for each in (copy.source, copy.target)
            ),
        )  # fmt: skip
        self.world.pulled.append((self.number, copy.bytes))

        def work() -> None:
            for one, other, each in (
                (source.data, target.data, copy), (source.known, target.known, marks)
            ):  # fmt: skip
                rows = zip(boxes(one, each, each.source), boxes(other, each, each.target))
                for taken, place in rows:
                    place[:] = taken

        self.put_work(work)

    def halos_differ(self, frame: HaloFrame, first: MarkedCells, other: MarkedCells) -> bool:
        """Compare two buffers."""
        self.synchronize()
        return halos_differ(frame, first.data, other.data)

    def run_block(self) -> AbstractContextManager[Any]:
        """Nothing around a run."""
        return nullcontext()

    host = "simulated"
    meets = True
    """Whether sites of several threads meet by counts."""
    shares = True
    """Whether buffers are opened by other sites."""
    opened_now: ClassVar[list[bytes]] = []
    opened_ever: ClassVar[list[bytes]] = []

    def shared(self, buffer: MarkedCells) -> bytes:
        """A handle of a buffer."""
        if not self.shares:
            return b""
        SHARED[id(buffer)] = buffer
        return id(buffer).to_bytes(HANDLE_BYTES, "little")

    def opened(self, handle: bytes) -> MarkedCells | None:
        """The buffer of a handle."""
        self.opened_now.append(handle)
        self.opened_ever.append(handle)
        return SHARED[int.from_bytes(handle, "little")]

    def close_opened(self, buffer: MarkedCells) -> None:
        """Close a buffer."""
        self.opened_now.remove(id(buffer).to_bytes(HANDLE_BYTES, "little"))

    problem = "a simulated device"
    """Why there is no link; empty with one."""

    def why_no_link(self) -> str:
        """Why there is no link."""
        return self.problem

    def link_name(self) -> str:
        """A name."""
        return "link"

    def link(self, peers: Peers, name: str) -> SimulatedLink:
        """A link of ranks."""
        assert name == "link", "all ranks have the name of rank 0"
        return SimulatedLink(self, peers)

    def mark(self) -> Mark:
        """A mark on the stream."""
        made = Mark()
        self.world.put(self.number, made)
        return made

    def wait(self, mark: Mark) -> None:
        """Wait for a mark."""
        self.world.put(self.number, mark, waits=True)

    @contextmanager
    def recording(self) -> Generator[Recorded]:
        """Record the work of all streams, or of the site's where other sites record, too."""
        found = Recorded()
        self.world.recordings[self.number] = []
        try:
            yield found
            found.graph = self.world.recordings[self.number]
        finally:
            del self.world.recordings[self.number]
        self.world.graphs += 1

    def marks_of_graph(self) -> AbstractContextManager[Any]:
        """Each mark is a new one anyway."""
        return nullcontext()

    def launch_graph(self, graph: list[Step]) -> None:
        """Do recorded work, later."""
        if any(isinstance(work, Met) for _, work, _ in graph):
            self.world.put_graph(graph)
        else:
            self.put_work(lambda: self.world.run_graph(graph))

    def upload_graph(self, graph: list[Step]) -> None:
        """Nothing is needed."""

    counts = False
    """Whether sites of a process meet by counts."""

    def meetings(self, sites: Sequence[SimulatedSite]) -> SimulatedMeetings | None:
        """Meetings by counts."""
        return SimulatedMeetings(sites) if self.counts else None

    def free_graph(self, graph: list[Step]) -> None:
        """Forget a graph."""
        self.world.graphs -= 1

    def side_of_meetings(self, number: int, words: Sequence[MarkedCells]) -> SimulatedSide | None:
        """Meetings with the sites of other threads, where the host waits for all work before."""
        return SimulatedSide(self, self.world, number, words) if self.meets else None

    def beside(self) -> SimulatedSite:
        """A site on the device with a stream of its own."""
        made = SimulatedSite(self.world, self.home)
        self.world.parents[made.number] = self.number
        return made

    def synchronize(self) -> None:
        """Run until the stream is empty."""
        self.world.run_until_empty(self.number)

    def close(self) -> None:
        """The site is not used again."""
        assert not self.sizes, "buffers are not given back"
        self.is_closed = True


def on_simulated(
    text: str,
    count: int,
    seed: int = 0,
    parts: Sequence[int] | Decomposition | None = None,
    every: int | None = None,
    **options: Any,
) -> tuple[PartedProgram, World]:
    """A program on simulated devices, and their streams."""
    alone = timetile.compile(text, executor="planes", fp_contract="off", cache=False, **options)
    world = World(seed)
    made = PartedProgram(
        alone, count, lambda: [SimulatedSite(world) for _ in range(count)], parts, every
    )
    return made, world


class SimulatedRank(RankedGpuProgram):
    """A program of ranks on simulated devices."""

    executors = ("planes",)


def simulated_rank(
    alone: CompiledProgram,
    peers: Peers,
    parts: Sequence[int] | Decomposition | None,
    every: int | None,
) -> SimulatedRank:
    """A program of a rank, on a simulated device of the rank's own."""
    return SimulatedRank(alone, peers, parts, every, lambda: SimulatedSite(World(peers.rank)))
