"""Links between the GPUs of a host, for predicting exchanges of ghosts."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Link:
    """
    What an exchange of ghosts takes: `seconds` for waits and the start of copies, and
    `bytes_per_second` of a copy from a neighbour's memory. Where kernels store rims to a
    neighbour's memory, nothing is copied, neighbours wait for each other (`meeting_seconds`), and
    a launch of one step takes `stalled_share` of the rims' copies longer, and of several steps
    `deep_stalled_share`: all blocks of a wave store rims at one time.
    """

    seconds: float
    bytes_per_second: float
    meeting_seconds: float
    stalled_share: float = 0.0
    deep_stalled_share: float = 0.0
    reaches: bool = True
    """Whether copies of a GPU reach the memory of its neighbours, without work of the host."""


NVLINK = Link(
    seconds=10e-6,
    bytes_per_second=310e9,
    meeting_seconds=3e-6,
    stalled_share=0.5,
    deep_stalled_share=1.2,
)
"""
Fitted to two H200s of a host, against launches without exchanges. An exchange between whole
launches is one kernel, and counts 10 us and its bytes; by meetings and copies it took 27 us for 0.8
and 2.6 MB (j2d5pt), 50 us for 9.4 MB (star25), 106 us for 25 MB and 115 us for 19 MB of six fields.
A meeting took 2.5 us a launch (j3d7pt of 256 x 256 x 256 cells, 4.4 us with addresses in memory).
Rims stored by kernels took 16 and 27 us for 9.4 and 19 MB (star25, one step), 82 us for 25 MB, and
130 to 181 us for 34 MB (j3d7pt of four steps).
"""

NEAR_PROCESSES = replace(NVLINK, seconds=16e-6)
"""
Between processes of a host with a GPU each, by the same kernel of the stream, from opened buffers.
Two H200s with j2d5pt on 2048 x 2048 cells in FP32: 12 steps with their exchange took 36.2 us for
29.8 us of one process, 48 steps 103.4 us for 105.8 us (`benchmarks/gpu_ranks.py --ways opened`).
"""

FAR_PROCESSES = replace(NVLINK, seconds=300e-6, reaches=False)
"""
Between processes with a GPU each, of hosts that wait for each exchange and for messages: two H200s
of a host took some 320 us for each launch of j3d7pt on 384 x 512 x 512 cells in FP32 (0.8 MB),
through NCCL, and with opened buffers and messages.
"""
