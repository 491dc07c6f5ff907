"""A kernel ready to be launched, and the disk cache's form of kernels and launch plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, cast

from timetile.dialects.boxes import CellBox
from timetile.dialects.tile import RoleAttr, RoleKind
from timetile.dialects.tile.launch_shape import LaunchShape
from timetile.lowering.plan_launches import PlannedKernel
from timetile.passes.analysis.launches.accesses import CellAccess

Parts = Mapping[str, bytes]
"""The files of an entry of the disk cache, by name."""


@dataclass(frozen=True)
class Kernel(LaunchShape):
    """A kernel ready to be launched: machine code or PTX, and the shape of a launch."""

    name: str
    ptx: str
    cubin: bytes | None
    """Machine code for GPUs of one architecture, if an assembler was there."""
    arch: str
    """The architecture for which the kernel was compiled."""
    bound_waits: bool
    """
    Whether waits in vain are reported: in the first message word, or, without message words, in a
    word of the module.
    """
    registers: int
    spill_bytes: int
    accesses: tuple[CellAccess, ...] = ()
    """The cells of each argument that a launch reads and writes; empty where they are not known."""

    def __hash__(self) -> int:
        return self.hashed

    @cached_property
    def hashed(self) -> int:
        """The hash of name, code and grid, kept: a launch looks its kernel up."""
        return hash((self.name, self.arch, self.ptx, self.cubin, self.grid))

    @cached_property
    def is_attended(self) -> bool:
        """
        Whether the host has work before or after every launch: words to set to 0, or a report to
        read.
        """
        return self.has_messages or self.bound_waits


NUMBERS = (*(each.name for each in fields(LaunchShape)), "registers", "spill_bytes")
"""The fields of a kernel with whole numbers."""


def boxed(box: CellBox | None) -> list[tuple[int, ...]] | None:
    """A box as lists of numbers."""
    return None if box is None else [box.lower, box.upper]


def box_of(lists: list[list[int]] | None) -> CellBox | None:
    """The box made to lists by `boxed`."""
    return None if lists is None else CellBox(tuple(lists[0]), tuple(lists[1]))


def encode_kernel(kernel: Kernel) -> Parts:
    """A kernel as parts of an entry."""
    facts = {name: getattr(kernel, name) for name in ("name", "arch", "bound_waits", *NUMBERS)}
    facts["accesses"] = [[boxed(a.reads), boxed(a.writes)] for a in kernel.accesses]
    parts = {"facts.json": json.dumps(facts).encode(), "kernel.ptx": kernel.ptx.encode()}
    return parts if kernel.cubin is None else parts | {"kernel.cubin": kernel.cubin}


def decode_kernel(parts: Parts) -> Kernel:
    """
    The kernel encoded by `encode_kernel`. Raises ValueError, TypeError or LookupError for other
    parts.
    """
    facts = cast(dict[str, Any], json.loads(parts["facts.json"]))
    if any(type(facts[name]) is not int for name in NUMBERS):
        raise ValueError("a number of the kernel is none")
    facts["accesses"] = tuple(CellAccess(box_of(a), box_of(b)) for a, b in facts["accesses"])
    return Kernel(ptx=parts["kernel.ptx"].decode(), cubin=parts.get("kernel.cubin"), **facts)


def encode_facts(facts: list[list[PlannedKernel]]) -> Parts:
    """The facts about kernels needed by launch plans, as parts of an entry."""
    rows = [
        [[k.name, k.steps, [[r.kind.data.value, r.index.data] for r in k.roles]] for k in loop]
        for loop in facts
    ]
    return {"facts.json": json.dumps(rows).encode()}


def decode_facts(parts: Parts) -> list[list[PlannedKernel]]:
    """
    The facts encoded by `encode_facts`. Raises ValueError, TypeError or LookupError for other
    parts.
    """
    rows = cast(list[list[tuple[str, int, Any]]], json.loads(parts["facts.json"]))
    if any(
        type(name) is not str or type(steps) is not int for loop in rows for name, steps, _ in loop
    ):
        raise ValueError("a kernel has no name or no steps")
    return [
        [
            PlannedKernel(
                name, steps, tuple(RoleAttr(RoleKind(kind), index) for kind, index in roles)
            )
            for name, steps, roles in loop
        ]
        for loop in rows
    ]
