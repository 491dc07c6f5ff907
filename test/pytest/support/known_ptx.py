"""
Assembling for the executor of PTX, in a process of many tests.

The executor interprets PTX as printed, and runs no machine code: assembling takes up to a third of
the time of a test with this executor. A kernel is assembled if a line has a form that the assembler
has not yet taken in this process: registers, numbers and names of parameters are no part of a form.
`test_ptx_is_known.py` assembles each form that can be printed, and other tests assemble whole
kernels. In `make nightly`, all kernels are assembled.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from timetile.dialects.tile import LaunchOp
from timetile.runtime.executors.ptx.runner import PtxRunner
from timetile.runtime.host.functions import HostValues
from timetile.runtime.kernels import making
from timetile.runtime.kernels.kernel import Kernel

ASSEMBLED = making.assembled
LAUNCH = PtxRunner.launch

LEFT_OUT = (
    (re.compile(r"(%[a-z]+)\d+"), r"\1"),
    (re.compile(r"\b(?:0[fdx][0-9A-Fa-f]+|\d+)\b"), "0"),
    (re.compile(r"\[[A-Za-z_$][\w$]*"), "[name"),
    (re.compile(r"\bbra \$\w+"), "bra label"),
    (re.compile(r"\+-?0\]"), "]"),
    (re.compile(r"@!?%p\s+"), ""),
)
"""
What is no part of a form: numbers, names of registers, parameters and labels, offsets of addresses,
and guards.
"""

TAKEN: defaultdict[str, set[str]] = defaultdict(set)
"""The forms taken by the assembler so far, by architecture."""

interpreted = [False]
"""Whether the present launch interprets its kernel, as the last entry."""


def forms_of(ptx: str) -> set[str]:
    """The forms of the instructions of a module."""
    for pattern, left in LEFT_OUT:
        ptx = pattern.sub(left, ptx)
    lines = (line.partition("//")[0].strip() for line in ptx.splitlines())
    return {line for line in lines if line.endswith(";") and not line.startswith(".")}


def assembled_for_new_forms(kernel: Kernel, *, spares: bool = False) -> Kernel:
    """A kernel with machine code; as it is if interpreted, and without a new form."""
    forms = forms_of(kernel.ptx)
    if interpreted[-1] and forms <= TAKEN[kernel.arch]:
        return kernel
    made = ASSEMBLED(kernel, spares=spares)
    TAKEN[kernel.arch] |= forms
    return made


@contextmanager
def interpreting() -> Generator[None]:
    """Kernels made in the block are interpreted."""
    interpreted.append(True)
    try:
        yield
    finally:
        interpreted.pop()


def launch(
    self: PtxRunner, op: LaunchOp, operands: Sequence[Any], values: HostValues
) -> Sequence[Any]:
    """A launch of the executor of PTX."""
    with interpreting():
        return LAUNCH(self, op, operands, values)


def assemble_seldom() -> None:
    """Assemble interpreted kernels for new forms alone, from now on."""
    making.assembled = assembled_for_new_forms
    PtxRunner.launch = launch
