"""A site: where a part of the domain lives, the memory and a stream of work of a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from timetile.dialects.temporal import SweepOp
from timetile.dialects.tile import LaunchOp
from timetile.runtime.arithmetic.cells import Array
from timetile.runtime.device.gpu_memory import Recorded
from timetile.runtime.host.halos import HaloFrame
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.ranks.peers import Peers
from timetile.runtime.ranks.rims import BoxCopy

HANDLE_BYTES = 72
"""Bytes of a buffer's handle: those of the allocation, and a distance in the allocation."""


@dataclass(frozen=True)
class Beside:
    """
    A buffer that a kernel stores to beside: the kernel stores the cells of `copy`, whole planes, to
    the places that `copy` moves them to from its own buffer.
    """

    buffer: Any
    copy: BoxCopy


@dataclass(frozen=True)
class Pull:
    """A copy of cells of a buffer to the ghosts of another part's buffer."""

    source: Any
    target: Any
    copy: BoxCopy


@dataclass(frozen=True)
class RimMessage:
    """
    A rim of a buffer, sent to or received from a rank. `copy`: from the buffer to contiguous bytes
    for a sent rim, from contiguous bytes to the buffer for a received one.
    """

    rank: int
    buffer: Any
    copy: BoxCopy


class RimLink(Protocol):
    """A way for rims from device memory to device memory of other hosts."""

    def exchange(self, sent: Sequence[RimMessage], received: Sequence[RimMessage]) -> None:
        """
        Send and receive rims, those of two ranks in one order on both, behind all work of the
        stream. Raises RankError if another rank failed, or sends nothing in time.
        """
        ...

    def close(self) -> None:
        """Give back all of the link, after all work."""
        ...


class Meetings(Protocol):
    """A way for the streams of a process to wait for each other, inside of graphs of their own."""

    def meet(self, neighbours: Mapping[int, tuple[int, ...]]) -> None:
        """Let the streams of sites wait for all work so far of their neighbours' streams."""
        ...

    def exchange(
        self, neighbours: Mapping[int, tuple[int, ...]], pulls: Mapping[int, Sequence[Pull]]
    ) -> None:
        """Let sites meet their neighbours, do copies on their streams, and meet again."""
        ...

    def close(self) -> None:
        """Give back all of the meetings, after all work."""
        ...


class MeetingSide(Protocol):
    """How a site meets the sites of other processes."""

    def meet(self, others: tuple[int, ...]) -> None:
        """Let the stream wait for all work so far of others' streams, which do the same."""
        ...

    def exchange(self, others: tuple[int, ...], pulls: Sequence[Pull]) -> None:
        """Meet others, do copies from their buffers, and meet others again."""
        ...

    def late(self, limit: float) -> list[int]:
        """
        The sites that the stream has waited for longer than `limit` seconds, by number; none while
        the stream has work of its own.
        """
        ...

    def close(self) -> None:
        """Give back all of the side, after all work."""
        ...


class Site(Protocol):
    """
    Memory and a stream of a device. Launches, copies between buffers and waits are put on the
    stream, in order; the host does not wait. Uploads, downloads and single cells come after all
    work of the stream, and the host waits.
    """

    @property
    def home(self) -> int:
        """The number of the device."""
        ...

    def new(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A buffer of unknown cells."""
        ...

    def free(self, buffer: Any) -> None:
        """Give back a buffer, after all work of the stream."""
        ...

    def upload(self, buffer: Any, cells: Array) -> None:
        """Fill a buffer with the cells of an array."""
        ...

    def download(self, cells: Array, buffer: Any, first: int) -> None:
        """Fill a contiguous array with cells of a buffer, from cell number `first` on."""
        ...

    def fetch(self, buffer: Any, places: NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
        """The cells of a buffer at places, counted in row-major order."""
        ...

    def put(self, buffer: Any, places: NDArray[np.int64], cells: Array) -> None:
        """Set the cells of a buffer at places, none twice."""
        ...

    def launch(
        self,
        kernels: ProgramKernels,
        op: LaunchOp,
        operands: Sequence[Any],
        beside: Sequence[Beside] = (),
    ) -> None:
        """
        Launch a kernel on buffers of the site, and numbers; for each of the kernel's further
        arguments, a buffer of another site.
        """
        ...

    def sweep(
        self, op: SweepOp, fields: Mapping[SSAValue, Any], numbers: Mapping[SSAValue, Any]
    ) -> None:
        """Run a sweep on buffers of the site, with the scalars as `numbers`."""
        ...

    def reaches(self, other: Any) -> bool:
        """Whether kernels of the site may store to buffers of another site."""
        ...

    def copy(self, source: Any, target: Any) -> None:
        """Copy a whole buffer."""
        ...

    def pull(self, source: Any, target: Any, copy: BoxCopy) -> None:
        """Copy a box into a buffer of this site, from a buffer of any site in the run."""
        ...

    def halos_differ(self, frame: HaloFrame, first: Any, other: Any) -> bool:
        """Whether cells around a frame's box differ in two buffers; waits for the answer."""
        ...

    def run_block(self) -> AbstractContextManager[Any]:
        """The context of a run on this and other sites."""
        ...

    @property
    def host(self) -> str:
        """The machine with the device."""
        ...

    @property
    def place(self) -> str:
        """The place of the device in the machine, equal in all processes."""
        ...

    def shared(self, buffer: Any) -> bytes:
        """
        The handle of a buffer for other processes of the machine, `HANDLE_BYTES` bytes; no bytes
        where buffers are not shared.
        """
        ...

    def opened(self, handle: bytes) -> Any | None:
        """The buffer of another process with a handle; None if it cannot be reached."""
        ...

    def close_opened(self, buffer: Any) -> None:
        """Close an opened buffer, after all work that reads it."""
        ...

    def why_no_link(self) -> str:
        """Why rims reach other hosts through the memory of the host; empty for a way around."""
        ...

    def link_name(self) -> str:
        """A name by which all ranks find the link that they make together."""
        ...

    def link(self, peers: Peers, name: str) -> RimLink:
        """The link of all ranks. Raises RankError if another rank does not come in time."""
        ...

    def mark(self) -> Any:
        """A mark on the stream, after all work so far."""
        ...

    def wait(self, mark: Any) -> None:
        """Let the stream wait for a mark of any site of the run."""
        ...

    def meetings(self, sites: Sequence[Any]) -> Meetings | None:
        """
        A way for the streams of a process's sites to meet inside of graphs of their own; None where
        one graph has to serve all sites.
        """
        ...

    def side_of_meetings(self, number: int, words: Sequence[Any]) -> MeetingSide | None:
        """
        The side of meetings with other processes of the site with a number, by the words of all
        sites (buffers of `words_for` bytes); None where the host has to wait.
        """
        ...

    def watch(self, look: Callable[[], None]) -> None:
        """
        Waits of the host call `look` again and again. After an error inside a run, nothing is
        waited for.
        """
        ...

    def keep_pace(self) -> None:
        """
        Let the host wait until all but the latest work is done, by calls of this method, where the
        stream waits for other processes; not while work is recorded.
        """
        ...

    def beside(self) -> Site:
        """
        A new site on the device, with a stream of its own, for the buffers of this site; closed
        with this site.
        """
        ...

    def recording(self) -> AbstractContextManager[Recorded]:
        """
        Work put on the stream, and on streams that wait for marks of recorded work, is recorded in
        a graph inside the block, not done.
        """
        ...

    def marks_of_graph(self) -> AbstractContextManager[Any]:
        """Marks of the block are of recorded work; marks from before stay as they are."""
        ...

    def upload_graph(self, graph: Any) -> None:
        """Prepare recorded work, on the stream: launching it waits for nothing."""
        ...

    def launch_graph(self, graph: Any) -> None:
        """Do recorded work of all streams, on the stream."""
        ...

    def free_graph(self, graph: Any) -> None:
        """Forget recorded work. Launches already made go on."""
        ...

    def synchronize(self) -> None:
        """Wait until the stream has done its work."""
        ...

    def close(self) -> None:
        """Give back all of the site, after all work."""
        ...
