"""
Where the time of a run on several GPUs goes: kernels, pulls and waits of each GPU, by events.

    python benchmarks/profile_several_gpus.py --gpus 2 j3d7pt:f32:fill

Events around launches, pulls and waits make a run a little slower. Time of the run beyond the sum
of a GPU's table is idle: the host puts work on the streams too late.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from several_gpus import Case, arrays_of

from timetile.dialects.tile import LaunchOp
from timetile.runtime.device.cells import DeviceBuffer
from timetile.runtime.device.gpu import Device
from timetile.runtime.kernels.of_program import ProgramKernels
from timetile.runtime.machine.driver import checked
from timetile.runtime.program.parted_program import PartedProgram
from timetile.runtime.ranks.gpu_sites import GpuSite, opened
from timetile.runtime.ranks.rims import BoxCopy
from timetile.runtime.ranks.sites import Site

STEPS = 240


class WatchedSite(GpuSite):
    """A site that notes events around all work."""

    def __init__(self, on: Device):
        super().__init__(on)
        self.noted: list[tuple[str, Any, Any]] = []

    def event(self) -> Any:
        """An event with a time, behind all work so far."""
        self.device.enter()
        event = checked(self.device.cuda.cuEventCreate(0))
        checked(self.device.cuda.cuEventRecord(event, self.stream))
        return event

    def launch(self, kernels: ProgramKernels, op: LaunchOp, operands: Sequence[Any]) -> None:
        before = self.event()
        super().launch(kernels, op, operands)
        kernel = kernels.kernel(op.kernel.string_value())
        name = f"{op.kernel.string_value()} ({kernel.grid} blocks of {kernel.block})"
        self.noted.append((name, before, self.event()))

    def pull(self, source: DeviceBuffer, target: DeviceBuffer, copy: BoxCopy) -> None:
        before = self.event()
        super().pull(source, target, copy)
        self.noted.append((f"pull of {copy.bytes} bytes", before, self.event()))

    def wait(self, mark: Any) -> None:
        before = self.event()
        super().wait(mark)
        self.noted.append(("wait", before, self.event()))

    def table(self) -> str:
        """The times of all kinds of work, in milliseconds."""
        total, count = Counter[str](), Counter[str]()
        for kind, before, after in self.noted:
            total[kind] += checked(self.device.cuda.cuEventElapsedTime(before, after))
            count[kind] += 1
        lines = [f"    {kind}: {total[kind]:.3f} ms in {count[kind]}" for kind in total]
        return "\n".join(lines)


def watched(sites: Sequence[GpuSite]) -> list[WatchedSite]:
    """Sites and the sites beside."""
    found = [each for one in sites for each in (one, *one.others)]
    return [each for each in found if isinstance(each, WatchedSite)]


def main() -> None:
    """Profile cases."""
    parser = argparse.ArgumentParser(description="Where the time of a run on several GPUs goes.")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--per-gpu", type=int, default=1)
    parser.add_argument("cases", nargs="+", metavar="PROGRAM:TYPE:SIZE")
    given = parser.parse_args()
    for text in given.cases:
        name, dtype, size = text.split(":")
        case = Case(name, dtype, size, given.gpus, given.per_gpu)
        program = case.run(2, given.gpus).compiled()
        assert isinstance(program, PartedProgram)
        devices = opened([part // given.per_gpu for part in range(given.gpus * given.per_gpu)])
        sites = [WatchedSite(each) for each in devices]
        program.placed.make_sites = partial(list[Site], sites)
        arrays = arrays_of(program, case.dtype)
        program(*arrays, steps=STEPS)
        for site in watched(sites):
            site.noted = []
        start = time.perf_counter()
        result = program(*arrays, steps=STEPS)
        print(
            f"{text}: {STEPS} steps in {result.seconds * 1e3:.3f} ms with events, exchange every "
            f"{program.exchange_every}, zones of {program.parts.zone_steps} steps, "
            f"{time.perf_counter() - start:.1f} s with transfers",
            flush=True,
        )
        print(f"  schedules: {program.parts.schedules}", flush=True)
        for number, site in enumerate(sites):
            print(f"  part {number} on GPU {site.home}\n{site.table()}", flush=True)
            for other in watched(site.others):
                print(f"    beside, on a second stream:\n{other.table()}", flush=True)
        program.close()


if __name__ == "__main__":
    main()
