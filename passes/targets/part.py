"""A part: a GPU on sale, described by the numbers that the cost model reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COPIED_SHARE = 0.88
"""
Assumed share of the memory's bandwidth on paper reached by a device copy, without a measurement
(H200: 4.23 TB/s of 4.8, measured).
"""

LOADED_SHARE = 0.975
"""Share of the driver's highest clock kept under load (H200: 1.93 of 1.98 GHz, measured)."""


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
    """The clock of the multiprocessors under load, in GHz."""
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
