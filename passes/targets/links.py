"""Links between the GPUs of a host, for predicting exchanges of ghosts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """
    What an exchange of ghosts takes: `seconds` for marks, waits and the start of a copy, and
    `bytes_per_second` of a copy from a neighbour's memory. `meeting_seconds`: neighbours wait for
    each other, and nothing is copied.
    """

    seconds: float
    bytes_per_second: float
    meeting_seconds: float


NVLINK = Link(seconds=40e-6, bytes_per_second=310e9, meeting_seconds=20e-6)
"""
Fitted to two H200s of a host: launches of j2d5pt FP32 with an exchange of 0.85 MB each lost 49 us
against launches of one GPU, ghosts included; copies of 29.5 MB ran at 310 GB/s beside kernels. In a
graph, an exchange of 1 MB takes 24 us.
"""
