"""Parts: GPUs on sale with an instruction set, with multiprocessors, memory and clock.

A figure without a measurement comes from NVIDIA's documents, with the address at the part. If a
driver answers, the program's GPU is recognised by name, and the driver's facts take the place of
the table's figures where they differ (`facts.py`).
"""

from __future__ import annotations

from timetile.passes.targets.part import COPIED_SHARE, Part

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
        # equal chip. A copy was measured, 2.91 TB/s, which counts as equal.
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
            driver_names=("NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-80GB"),
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
        # https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/
        # nvidia-ampere-architecture-whitepaper.pdf
        # (memory of the 40 GB version, multiprocessors, boost clock, L2).
        Part(
            name="a100-sxm-40gb",
            title="A100 SXM 40 GB",
            isa="sm_80",
            driver_names=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM-40GB", "A100-SXM4-40GB"),
            multiprocessors=108,
            clock_ghz=1.41,
            memory_tb_per_s=1.555,
            copy_tb_per_s=COPIED_SHARE * 1.555,
            l2_bytes=40 << 20,
        ),
        # https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/
        # nvidia-ampere-architecture-whitepaper.pdf
        # (all figures: an equal chip, with equal memory, as the A100 SXM of 40 GB).
        Part(
            name="a100-pcie-40gb",
            title="A100 PCIe 40 GB",
            isa="sm_80",
            driver_names=("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"),
            multiprocessors=108,
            clock_ghz=1.41,
            memory_tb_per_s=1.555,
            copy_tb_per_s=COPIED_SHARE * 1.555,
            l2_bytes=40 << 20,
        ),
        # https://www.nvidia.com/en-us/data-center/hgx/ (memory);
        # https://docs.nvidia.com/cuda/blackwell-tuning-guide/ (L2);
        # https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut
        # (multiprocessors, and clocks like the H100 SXM's). Nothing was measured on a B200.
        Part(
            name="b200",
            title="B200",
            isa="sm_100",
            driver_names=("NVIDIA B200", "NVIDIA GB200"),
            multiprocessors=148,
            clock_ghz=1.93,
            memory_tb_per_s=8.0,
            copy_tb_per_s=COPIED_SHARE * 8.0,
            l2_bytes=126 << 20,
        ),
        # https://www.nvidia.com/en-us/data-center/l40s/ (memory, and cores, of which a
        # multiprocessor has 128);
        # https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf
        # (L2 and boost clock of the chip).
        Part(
            name="l40s",
            title="L40S",
            isa="sm_89",
            driver_names=("NVIDIA L40S",),
            multiprocessors=142,
            clock_ghz=2.52,
            memory_tb_per_s=0.864,
            copy_tb_per_s=COPIED_SHARE * 0.864,
            l2_bytes=96 << 20,
        ),
        # https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf
        # (all figures).
        Part(
            name="rtx-4090",
            title="RTX 4090",
            isa="sm_89",
            driver_names=("NVIDIA GeForce RTX 4090",),
            multiprocessors=128,
            clock_ghz=2.52,
            memory_tb_per_s=1.008,
            copy_tb_per_s=COPIED_SHARE * 1.008,
            l2_bytes=72 << 20,
        ),
        # https://www.nvidia.com/en-us/products/workstations/rtx-6000/ (memory, and cores, of which
        # a multiprocessor has 128); clock and L2 as in the document of the RTX 4090.
        Part(
            name="rtx-6000-ada",
            title="RTX 6000 Ada",
            isa="sm_89",
            driver_names=("NVIDIA RTX 6000 Ada",),
            multiprocessors=142,
            clock_ghz=2.505,
            memory_tb_per_s=0.96,
            copy_tb_per_s=COPIED_SHARE * 0.96,
            l2_bytes=96 << 20,
        ),
        # https://images.nvidia.com/aem-dam/Solutions/geforce/ampere/pdf/
        # NVIDIA-ampere-GA102-GPU-Architecture-Whitepaper-V1.pdf
        # (multiprocessors, boost clock, memory, L2).
        Part(
            name="rtx-a6000",
            title="RTX A6000",
            isa="sm_86",
            driver_names=("NVIDIA RTX A6000",),
            multiprocessors=84,
            clock_ghz=1.8,
            memory_tb_per_s=0.768,
            copy_tb_per_s=COPIED_SHARE * 0.768,
            l2_bytes=6 << 20,
        ),
        # https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/
        # nvidia-rtx-blackwell-gpu-architecture.pdf
        # (all figures).
        Part(
            name="rtx-5090",
            title="RTX 5090",
            isa="sm_120",
            driver_names=("NVIDIA GeForce RTX 5090",),
            multiprocessors=170,
            clock_ghz=2.407,
            memory_tb_per_s=1.792,
            copy_tb_per_s=COPIED_SHARE * 1.792,
            l2_bytes=96 << 20,
        ),
    )
}


def default_part(isa: str) -> Part:
    """The part of a compilation for an instruction set without a named part."""
    return next(part for part in PARTS.values() if part.isa == isa)


def part_for(isa: str, driver_name: str) -> Part | None:
    """
    The part of a GPU by the driver's name, for kernels of an instruction set; None for an unknown
    name. A GPU also runs kernels of older instruction sets: its part then keeps its own numbers.
    """
    found = [
        (len(name), part)
        for part in PARTS.values()
        for name in part.driver_names
        if driver_name.startswith(name)
    ]
    longest = max(found, key=lambda each: each[0], default=(0, None))[1]
    return longest if longest is not None and longest.isa == isa else None
