"""Instruction sets: instructions of an architecture, and the resources of one multiprocessor.

Sources: CUDA C++ Programming Guide, "Compute Capabilities" (registers, warps, shared memory) and
"Arithmetic Instructions" (throughput of fused multiply-adds),
https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities; PTX ISA,
"Release Notes" (the first PTX version of an instruction),
https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """One instruction set, and its multiprocessor."""

    name: str
    """The name in PTX: `sm_90`."""
    ptx_version: str
    """
    The oldest PTX version with all emitted instructions: drivers refuse newer versions than their
    own.
    """
    splits_barriers: bool
    """Threads can arrive at a barrier and wait later, asleep (`mbarrier.try_wait`)."""
    has_clusters: bool
    """Blocks of a cluster reach each other's shared memory."""
    registers_per_multiprocessor: int
    """32-bit registers."""
    registers_per_thread: int
    """32-bit registers, at most."""
    register_unit: int
    """The unit, in registers, in which a thread gets registers."""
    shared_per_multiprocessor: int
    """Bytes."""
    cache_per_multiprocessor: int
    """Bytes of the first-level cache and shared memory together."""
    shared_per_block: int
    """Bytes, at most, after the opt-in."""
    shared_overhead: int
    """Bytes of shared memory of every block taken by the system."""
    warps_per_multiprocessor: int
    fma_per_cycle: Mapping[int, int]
    """Fused multiply-adds a cycle and multiprocessor, by bytes of the element."""

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version: (9, 0) of `sm_90`."""
        return version_of(self.name)

    def registers_for(self, threads: int) -> int:
        """
        Registers available to a thread of a multiprocessor with `threads` threads. No whole number
        of `register_unit`, unlike `taken_registers`: the cost model was fitted without the unit.
        """
        return min(self.registers_per_thread, self.registers_per_multiprocessor // threads)

    def taken_registers(self, registers: int) -> int:
        """
        Registers taken by a thread with `registers` assembled registers: a whole number of
        `register_unit`, unlike `registers_for`, as the hardware gives registers by the unit.
        """
        return -(-registers // self.register_unit) * self.register_unit


ISAS: dict[str, Isa] = {
    isa.name: isa
    for isa in (
        Isa(
            name="sm_90",
            ptx_version="8.1",
            splits_barriers=True,
            has_clusters=True,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            register_unit=8,
            shared_per_multiprocessor=233472,
            cache_per_multiprocessor=256 * 1024,
            shared_per_block=232448,
            shared_overhead=1024,
            warps_per_multiprocessor=64,
            fma_per_cycle={8: 64, 4: 128},
        ),
        Isa(
            name="sm_80",
            ptx_version="7.4",
            splits_barriers=False,
            has_clusters=False,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            register_unit=8,
            shared_per_multiprocessor=167936,
            cache_per_multiprocessor=192 * 1024,
            shared_per_block=166912,
            shared_overhead=1024,
            warps_per_multiprocessor=64,
            fma_per_cycle={8: 32, 4: 64},
        ),
        # 12.0: kernels of a cluster were neither measured nor fitted.
        Isa(
            name="sm_120",
            ptx_version="8.7",
            splits_barriers=True,
            has_clusters=False,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            register_unit=8,
            shared_per_multiprocessor=102400,
            cache_per_multiprocessor=128 * 1024,
            shared_per_block=101376,
            shared_overhead=1024,
            warps_per_multiprocessor=48,
            fma_per_cycle={8: 2, 4: 128},
        ),
        Isa(
            name="sm_100",
            ptx_version="8.6",
            splits_barriers=True,
            has_clusters=True,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            register_unit=8,
            shared_per_multiprocessor=233472,
            cache_per_multiprocessor=256 * 1024,
            shared_per_block=232448,
            shared_overhead=1024,
            warps_per_multiprocessor=64,
            fma_per_cycle={8: 64, 4: 128},
        ),
        Isa(
            name="sm_89",
            ptx_version="7.8",
            splits_barriers=False,
            has_clusters=False,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            register_unit=8,
            shared_per_multiprocessor=102400,
            cache_per_multiprocessor=128 * 1024,
            shared_per_block=101376,
            shared_overhead=1024,
            warps_per_multiprocessor=48,
            fma_per_cycle={8: 2, 4: 128},
        ),
        Isa(
            name="sm_86",
            ptx_version="7.4",
            splits_barriers=False,
            has_clusters=False,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            register_unit=8,
            shared_per_multiprocessor=102400,
            cache_per_multiprocessor=128 * 1024,
            shared_per_block=101376,
            shared_overhead=1024,
            warps_per_multiprocessor=48,
            fma_per_cycle={8: 2, 4: 128},
        ),
    )
}


def version_of(isa: str) -> tuple[int, int]:
    """Major and minor version of an architecture: (9, 0) of `sm_90`, (10, 3) of `sm_103`."""
    return divmod(int(isa.removeprefix("sm_")), 10)
