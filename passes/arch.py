"""Facts about the GPUs that we compile for: the one place that states them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr

from timetile.passes.diagnostics import CompileError

SHARED_BYTES_PER_CYCLE = 128
"""What the shared memory of one multiprocessor moves: 32 banks of 4 bytes."""


@dataclass(frozen=True)
class Arch:
    """One GPU architecture, in the size of its largest data-centre part."""

    name: str
    ptx_version: str
    """The oldest PTX version that has all that is emitted: drivers refuse newer ones than theirs."""
    multiprocessors: int
    registers_per_multiprocessor: int
    registers_per_thread: int
    shared_per_multiprocessor: int
    """Bytes."""
    shared_per_block: int
    """Bytes, after the opt-in."""
    warps_per_multiprocessor: int
    splits_barriers: bool
    """Threads can sleep until the others have arrived (`mbarrier.try_wait`)."""
    resident_clusters: dict[int, int]
    """Clusters that run at once with one block per multiprocessor, by their blocks; empty where there are none."""
    register_unit: int
    """Registers of a thread are handed out in units of this."""
    shared_overhead: int
    """Bytes of shared memory that every block loses to the system."""
    fma_per_cycle: dict[int, int]
    """Fused multiply-adds per cycle and multiprocessor, by bytes of the element."""
    clock_ghz: float
    """Under load."""
    copy_tb_per_s: float
    """Measured device copy, bytes read plus bytes written."""
    registers_per_word: float
    """Registers that a 32-bit word of the planes kept in a stream loop takes (fitted to assembled kernels)."""
    spare_registers: dict[int, int]
    """Kept free of planes: the guarded copies need them, as its assembler uses registers; by bytes of the element."""
    one_level_registers: int
    """The same where at most one level of wide cells is kept, and has guards, in planes of two axes."""
    dividing_registers: int
    """The same where cells divide or take roots, beside what that is counted as."""
    dividing_warps: dict[int, int]
    """Warps of a multiprocessor that hide the chains of quotients and roots, by bytes of the element."""
    tight_registers: int
    """Kept free at least, where guarded copies may spill a little for the sake of the others."""
    l2_bytes: int
    l2_speed: float
    """At which cells move that are in L2 from launch to launch, by that of a copy."""
    latency_seconds: float
    """From an access to its data, when the memory is busy."""

    @property
    def part(self) -> str:
        """The architecture, and how many multiprocessors there are where they are not those of its largest part."""
        largest = ARCHS[self.name].multiprocessors
        return (
            self.name
            if self.multiprocessors == largest
            else f"{self.name} with {self.multiprocessors} multiprocessors"
        )

    def clusters(self, blocks: int) -> int:
        """Clusters of so many blocks that run at once, all multiprocessors' where that was not measured."""
        return self.resident_clusters.get(blocks) or max(1, self.multiprocessors // blocks)

    def resident_blocks(self, occupancy: int) -> int:
        """Blocks that run at once, so many of them on a multiprocessor."""
        return self.multiprocessors * occupancy

    @property
    def shared_tb_per_s(self) -> float:
        """Bandwidth of all shared memory: 32 banks of 4 bytes a cycle in every multiprocessor."""
        return self.multiprocessors * SHARED_BYTES_PER_CYCLE * self.clock_ghz / 1e3


ARCHS: dict[str, Arch] = {
    arch.name: arch
    for arch in (
        # H200: copy and clock measured; the rest from NVIDIA's CUDA programming guide.
        Arch(
            name="sm_90",
            ptx_version="8.1",
            multiprocessors=132,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            shared_per_multiprocessor=233472,
            shared_per_block=232448,
            warps_per_multiprocessor=64,
            splits_barriers=True,
            resident_clusters={2: 66, 4: 30, 8: 15, 16: 7},
            register_unit=8,
            shared_overhead=1024,
            fma_per_cycle={8: 64, 4: 128},
            clock_ghz=1.93,
            copy_tb_per_s=4.23,
            registers_per_word=1.0,
            spare_registers={8: 37, 4: 16},
            one_level_registers=11,
            dividing_registers=5,
            dividing_warps={8: 12, 4: 16},
            tight_registers=18,
            l2_bytes=60 << 20,
            l2_speed=2.5,
            latency_seconds=1e-6,
        ),
        # A100 80 GB, from NVIDIA's data sheet and programming guide; what was measured on the H200 only is
        # left neutral.
        Arch(
            name="sm_80",
            ptx_version="7.4",
            multiprocessors=108,
            registers_per_multiprocessor=65536,
            registers_per_thread=255,
            shared_per_multiprocessor=167936,
            shared_per_block=166912,
            warps_per_multiprocessor=64,
            splits_barriers=False,
            resident_clusters={},
            register_unit=8,
            shared_overhead=1024,
            fma_per_cycle={8: 32, 4: 64},
            clock_ghz=1.41,
            copy_tb_per_s=1.75,
            registers_per_word=1.8,
            spare_registers={8: 48, 4: 48},
            one_level_registers=48,
            dividing_registers=48,
            dividing_warps={8: 8, 4: 8},
            tight_registers=48,
            l2_bytes=40 << 20,
            l2_speed=1.0,
            latency_seconds=1e-6,
        ),
    )
}


ARCH_ATTRIBUTE = "timetile.arch"
"""On a module: what its kernels were compiled for."""


def arch_of(module: ModuleOp) -> Arch:
    """What a module's kernels are compiled for: sm_90 where it does not say."""
    said = module.attributes.get(ARCH_ATTRIBUTE)
    return arch_named(said.data if isinstance(said, StringAttr) else "sm_90")


def arch_named(name: str, multiprocessors: int | None = None) -> Arch:
    """
    The facts of an architecture, of a part with so many multiprocessors where that is known; CompileError
    names the ones that are known.
    """
    if name not in ARCHS:
        raise CompileError(f"the architecture {name} is not known; use {' or '.join(ARCHS)}")
    arch = ARCHS[name]
    return arch if multiprocessors is None else replace(arch, multiprocessors=multiprocessors)


def version_of(arch: str) -> tuple[int, int]:
    """Major and minor version of an architecture: (9, 0) of `sm_90`, (10, 3) of `sm_103`."""
    return divmod(int(arch.removeprefix("sm_")), 10)
