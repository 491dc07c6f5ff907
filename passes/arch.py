"""Facts about the GPUs that we compile for: the one place that states them."""

from __future__ import annotations

from dataclasses import dataclass

from timetile.passes.diagnostics import CompileError


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
    fma_per_cycle: dict[int, int]
    """Fused multiply-adds per cycle and multiprocessor, by bytes of the element."""
    clock_ghz: float
    """Under load."""
    copy_tb_per_s: float
    """Measured device copy, bytes read plus bytes written."""


ARCHS: dict[str, Arch] = {
    arch.name: arch
    for arch in (
        # H200: copy and clock measured; the rest from NVIDIA's CUDA programming guide.
        Arch("sm_90", "8.0", 132, 65536, 255, 233472, 232448, {8: 64, 4: 128}, 1.93, 4.23),
        # A100 80 GB, from NVIDIA's data sheet and programming guide.
        Arch("sm_80", "7.4", 108, 65536, 255, 167936, 166912, {8: 32, 4: 64}, 1.41, 1.75),
    )
}


def arch_named(name: str) -> Arch:
    """The facts of an architecture; CompileError names the ones that are known."""
    if name not in ARCHS:
        raise CompileError(f"the architecture {name} is not known; use {' or '.join(ARCHS)}")
    return ARCHS[name]
