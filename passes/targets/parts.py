"""Parts: GPUs on sale with an instruction set, with multiprocessors, memory and clock.

A figure without a measurement comes from NVIDIA's documents, with the address at the part. If a
driver answers, the program's GPU is recognised by name, or for an unknown name by its memory
(`part_for`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COPIED_SHARE = 0.88
"""
Assumed share of the memory's bandwidth on paper reached by a device copy, without a measurement
(H200: 4.23 TB/s of 4.8, measured).
"""


@dataclass(frozen=True)
class Part:
    """One GPU on sale."""

    name: str
    """The name in options: `h100-pcie`."""
    title: str
    """The common name: `H100 PCIe`."""
    isa: str
    """The newest instruction set of the part with kernels."""
    driver_names: tuple[str, ...]
    """Beginnings of the driver's name for the part."""
    multiprocessors: int
    clock_ghz: float
    """Of the multiprocessors, under load."""
    memory_tb_per_s: float
    """Bandwidth of the memory on paper (10^12 bytes a second)."""
    copy_tb_per_s: float
    """
    Bytes read plus bytes written in a device copy (10^12 bytes a second), measured or
    `COPIED_SHARE` of the above.
    """
    l2_bytes: int
    resident_clusters: Mapping[int, int] = field(default_factory=dict[int, int])
    """
    Clusters of one block a multiprocessor running at once, by number of blocks (measured: graphics
    processing clusters differ in multiprocessors). Empty without a measurement.
    """


# The first part of an instruction set is the default target of programs for the instruction set.
PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        # https://www.nvidia.com/en-us/data-center/h200/ (memory); the driver (multiprocessors, L2).
        # Measured on an H200: copy, clock and resident clusters.
        Part(
            name="h200",
            title="H200",
            isa="sm_90",
            driver_names=("NVIDIA H200",),
            multiprocessors=132,
            clock_ghz=1.93,
            memory_tb_per_s=4.8,
            copy_tb_per_s=4.23,
            l2_bytes=60 << 20,
            resident_clusters={2: 66, 4: 30, 8: 15, 16: 7},
        ),
        # https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet (memory);
        # https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper (multiprocessors,
        # L2). The clock under load and the resident clusters are those of the H200, which has an
        # equal chip.
        Part(
            name="h100-sxm",
            title="H100 SXM",
            isa="sm_90",
            driver_names=("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"),
            multiprocessors=132,
            clock_ghz=1.93,
            memory_tb_per_s=3.35,
            copy_tb_per_s=COPIED_SHARE * 3.35,
            l2_bytes=50 << 20,
            resident_clusters={2: 66, 4: 30, 8: 15, 16: 7},
        ),
        # https://www.nvidia.com/content/dam/en-zz/Solutions/gtcs22/data-center/h100/
        # PB-11133-001_v01.pdf
        # (memory, clock); https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper
        # (multiprocessors, L2).
        Part(
            name="h100-pcie",
            title="H100 PCIe",
            isa="sm_90",
            driver_names=("NVIDIA H100 PCIe",),
            multiprocessors=114,
            clock_ghz=1.755,
            memory_tb_per_s=2.0,
            copy_tb_per_s=COPIED_SHARE * 2.0,
            l2_bytes=50 << 20,
        ),
        # https://resources.nvidia.com/en-us-grace-cpu/grace-hopper-superchip (memory of the 96 GB
        # version, HBM3); multiprocessors, L2 and clock as on the H100 SXM, which has an equal chip.
        Part(
            name="gh200",
            title="GH200",
            isa="sm_90",
            driver_names=("NVIDIA GH200",),
            multiprocessors=132,
            clock_ghz=1.93,
            memory_tb_per_s=4.0,
            copy_tb_per_s=COPIED_SHARE * 4.0,
            l2_bytes=50 << 20,
        ),
        # https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/
        # nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf (memory of the 80 GB version);
        # https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/
        # nvidia-ampere-architecture-whitepaper.pdf
        # (multiprocessors, boost clock, L2). A copy is assumed to reach nine tenths of the memory's
        # bandwidth.
        Part(
            name="a100-pcie",
            title="A100 PCIe",
            isa="sm_80",
            driver_names=("NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE"),
            multiprocessors=108,
            clock_ghz=1.41,
            memory_tb_per_s=1.935,
            copy_tb_per_s=1.75,
            l2_bytes=40 << 20,
        ),
        # https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/
        # nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf (memory of the 80 GB version);
        # multiprocessors, clock and L2 as on the A100 PCIe, which has an equal chip.
        Part(
            name="a100-sxm",
            title="A100 SXM",
            isa="sm_80",
            driver_names=("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM-80GB"),
            multiprocessors=108,
            clock_ghz=1.41,
            memory_tb_per_s=2.039,
            copy_tb_per_s=COPIED_SHARE * 2.039,
            l2_bytes=40 << 20,
        ),
    )
}


def default_part(isa: str) -> Part:
    """The part of a compilation for an instruction set without a named part."""
    return next(part for part in PARTS.values() if part.isa == isa)


def part_for(isa: str, driver_name: str, memory_tb_per_s: float | None) -> Part:
    """
    The part of a GPU, by the driver's name; for an unknown name the part of the instruction set
    with equally fast memory, or the default part if the driver does not state the memory's speed.
    """
    own = [part for part in PARTS.values() if part.isa == isa]
    for part in own:
        if any(driver_name.startswith(name) for name in part.driver_names):
            return part
    if memory_tb_per_s is None:
        return default_part(isa)
    return min(own, key=lambda part: abs(part.memory_tb_per_s - memory_tb_per_s))
