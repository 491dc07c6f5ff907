"""A kernel that can be launched, and what the disk cache holds of it and of launch plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from timetile.dialects.tile_attributes import RoleAttr
from timetile.lowering.plan_launches import KernelFacts

Parts = Mapping[str, bytes]
"""Of an entry of the disk cache, by name."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be launched: machine code or PTX, and its launch configuration."""

    name: str
    ptx: str
    cubin: bytes | None
    """For the GPUs of one architecture, where an assembler was there."""
    arch: str
    """That it was compiled for."""
    grid: int
    block: int
    cluster: int
    """Blocks that are launched together and reach each other's shared memory."""
    apart: int
    """Blocks that hold a tile, wait for each other and so must be resident together; 1 where none do."""
    message_words: int
    """64-bit words of device memory, 0 before a launch, by which the blocks of one tile exchange edges."""
    bound_waits: bool
    """Waits in vain are reported: in the first of those words, or, where there are none, in one of the module's."""
    shared_bytes: int
    registers: int
    spill_bytes: int

    @property
    def is_attended(self) -> bool:
        """The host has work before or after every launch: words that are 0 before, or a report to read."""
        return self.apart > 1 or self.bound_waits


NUMBERS = (
    "grid", "block", "cluster", "apart", "message_words", "shared_bytes", "registers", "spill_bytes",
)  # fmt: skip
"""The fields of a kernel that are whole numbers."""


def encode_kernel(kernel: Kernel) -> Parts:
    """A kernel as parts of an entry."""
    facts = {name: getattr(kernel, name) for name in ("name", "arch", "bound_waits", *NUMBERS)}
    parts = {"facts.json": json.dumps(facts).encode(), "kernel.ptx": kernel.ptx.encode()}
    return parts if kernel.cubin is None else parts | {"kernel.cubin": kernel.cubin}


def decode_kernel(parts: Parts) -> Kernel:
    """What `encode_kernel` made; ValueError, TypeError or LookupError where the parts are something else."""
    facts = cast(dict[str, Any], json.loads(parts["facts.json"]))
    if any(type(facts[name]) is not int for name in NUMBERS):
        raise ValueError("a number of the kernel is none")
    return Kernel(ptx=parts["kernel.ptx"].decode(), cubin=parts.get("kernel.cubin"), **facts)


def encode_facts(facts: list[list[KernelFacts]]) -> Parts:
    """What launch plans need to know of kernels as parts of an entry."""
    rows = [[[k.name, k.steps, [list(r.role) for r in k.roles]] for k in loop] for loop in facts]
    return {"facts.json": json.dumps(rows).encode()}


def decode_facts(parts: Parts) -> list[list[KernelFacts]]:
    """What `encode_facts` made; ValueError, TypeError or LookupError where the parts are something else."""
    rows = cast(list[list[tuple[str, int, Any]]], json.loads(parts["facts.json"]))
    if any(
        type(name) is not str or type(steps) is not int for loop in rows for name, steps, _ in loop
    ):
        raise ValueError("a kernel has no name or no steps")
    return [
        [
            KernelFacts(name, steps, tuple(RoleAttr(kind, index) for kind, index in roles))
            for name, steps, roles in loop
        ]
        for loop in rows
    ]
