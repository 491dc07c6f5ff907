"""Machine code of time loops can be made for processors other than ours: nothing is of x86 only."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

import pytest
from xdsl.dialects.builtin import ModuleOp

import timetile
from support.catalogue import entry
from support.programs import program_text
from timetile.lowering.cpu.convert_temporal_to_llvm import functions_of
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine import llvm

NAMES = ("coupled-2d", "mixed-2d", "wave-3d")
"""Programs of several updates, two types, and three axes."""


@cache
def functions() -> ModuleOp:
    """The functions of the programs' time loops, with common numbering."""
    loops = [
        loop
        for name in NAMES
        for loop in loops_of(
            timetile.compile(
                program_text(entry(name).make(entry(name).domains[0])), executor="cpu", cache=False
            ).module
        )
    ]
    return ModuleOp(functions_of(loops))


def is_mach_o(code: bytes) -> bool:
    """Object code for macOS on 64-bit ARM: the magic number, then the type of processor."""
    return struct.unpack("<II", code[:8]) == (0xFEEDFACF, 0x0100000C)


def is_elf(machine: int) -> Callable[[bytes], bool]:
    """Object code for Linux on a processor with a given number."""
    return lambda code: code[:4] == b"\x7fELF" and struct.unpack("<H", code[18:20]) == (machine,)


@pytest.mark.parametrize(
    ("triple", "processor", "is_right"),
    [
        ("arm64-apple-macosx14.0.0", "apple-m1", is_mach_o),
        ("aarch64-unknown-linux-gnu", "neoverse-n1", is_elf(183)),
        ("x86_64-unknown-linux-gnu", "x86-64", is_elf(62)),
    ],
)
def test_functions_become_object_code_of_a_given_processor(
    triple: str, processor: str, is_right: Callable[[bytes], bool]
):
    binding = llvm.binding()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=processor, opt=llvm.SPEED, jit=True)
    made = llvm.optimised(functions(), machine)
    text, code = str(made), machine.emit_object(made)
    assert is_right(code)
    assert "x double>" in text and "x float>" in text
    assert "fmuladd" not in text and "x86" not in text.replace("x86_64", "")
    for number in range(len(NAMES)):
        assert f"loop{number}.steps".encode() in code
