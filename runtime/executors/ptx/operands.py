"""Operands as functions of a strand's registers, made once for each instruction."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from timetile.runtime.executors.ptx.arithmetic import KINDS, Array, InstructionRule
from timetile.runtime.executors.ptx.parse import Entry, Instruction, Operand, PtxAddress
from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Ints, Mask

LaneAction = Callable[[Strand, Mask | None], None]
"""The action of an instruction in the lanes of a mask, or in all lanes."""

Source = Callable[[Strand], Array]


@dataclass(frozen=True)
class Context:
    """Names for operands: the registers of a kernel, and variables with values."""

    entry: Entry
    names: dict[str, Array]


SPECIAL_REGISTERS = ("%tid.x", "%ctaid.x")


def literal(text: str, kind: str) -> Array:
    """A number as written in an instruction."""
    if text.startswith("0d"):
        return np.array(struct.unpack(">d", bytes.fromhex(text[2:]))[0], dtype=np.float64)
    if text.startswith("0f"):
        return np.array(bytes.fromhex(text[2:])[::-1]).view(np.float32).reshape(())
    if kind == "pred":
        return np.array(bool(int(text, 0)))
    return np.array(int(text, 0)).astype(KINDS[kind])


def bits_of(kind: str) -> int:
    """The size of a type; 1 for predicates."""
    return 1 if kind == "pred" else int(kind[1:])


def register(context: Context, operand: Operand, kind: str, text: str) -> str:
    """A register operand of a type's size."""
    if not isinstance(operand, str) or not operand.startswith("%"):
        raise SimtError(text, f"{operand} is no register")
    if operand in SPECIAL_REGISTERS:
        return operand
    declared = context.entry.type_of(operand)
    if bits_of(declared) != bits_of(kind):
        raise SimtError(text, f"{operand} has {declared}, and the instruction takes {kind}")
    return operand


def source(
    context: Context, operand: Operand, kind: str, text: str
) -> tuple[Source, tuple[str, ...]]:
    """A function reading an operand, and the register read, if any."""
    assert isinstance(operand, str)
    if operand.startswith("%"):
        name, dtype = register(context, operand, kind, text), KINDS[kind]

        def get(s: Strand) -> Array:
            value = s.values.get(name)
            return value if value is not None and value.dtype is dtype else s.read(name, dtype)

        return get, (name,)
    named = context.names.get(operand)
    value = literal(operand, kind) if named is None else named
    if value.dtype.itemsize != KINDS[kind].itemsize:
        raise SimtError(text, f"{operand} is not of the type {kind}")
    fixed = value.view(KINDS[kind])
    return lambda s: fixed, ()


def address(
    context: Context, operand: Operand, kind: str, text: str
) -> tuple[Callable[[Strand], Ints], tuple[str, ...]]:
    """A function computing a place in memory for all lanes, and the register read, if any."""
    if not isinstance(operand, PtxAddress):
        raise SimtError(text, f"{operand} is no place in memory")
    base, names = source(context, operand.base, kind, text)
    offset = operand.offset

    def get(s: Strand) -> Ints:
        return np.broadcast_to(base(s).astype(np.int64) + offset, s.at.shape)

    return get, names


def computes(context: Context, instruction: Instruction, rule: InstructionRule) -> LaneAction:
    """A step that computes a register from others."""
    text = instruction.text
    target, *operands = instruction.operands
    if isinstance(target, tuple):
        return splits(context, target, operands[0], text)
    if isinstance(operands[0], tuple):
        return joins(context, target, operands[0], instruction)
    if len(operands) != len(rule.operands):
        raise SimtError(text, f"takes {len(rule.operands)} operands")
    result = register(context, target, rule.result, text)
    found = [source(context, o, kind, text) for o, kind in zip(operands, rule.operands)]
    gets = [get for get, _ in found]
    names = tuple(name for _, each in found for name in each)
    function = rule.function
    if instruction.name.startswith("selp."):
        return selects(result, gets, names, found[2][1], [each for _, each in found[:2]])

    def step(s: Strand, mask: Mask | None) -> None:
        s.write(result, function(*[get(s) for get in gets]), mask, s.any_unset(names))

    return step


def selects(
    result: str, gets: list[Source], names: tuple[str, ...], chooser: tuple[str, ...],
    sides: list[tuple[str, ...]],
) -> LaneAction:  # fmt: skip
    """A selection: unset if the predicate or the selected value is."""
    first, second, which = gets

    def step(s: Strand, mask: Mask | None) -> None:
        holds, unset = which(s), s.any_unset(names)
        if unset is not None:
            none = np.zeros(s.lanes, dtype=bool)
            taken, other, unknown = (
                none if (found := s.any_unset(each)) is None else found
                for each in (*sides, chooser)
            )
            unset = unknown | np.where(holds, taken, other)
        s.write(result, np.where(holds, first(s), second(s)), mask, unset)

    return step


def splits(context: Context, targets: tuple[str, ...], operand: Operand, text: str) -> LaneAction:
    """A 64-bit register as two of 32 bits, the lower one first."""
    get, names = source(context, operand, "b64", text)
    low, high = (register(context, target, "b32", text) for target in targets)

    def step(s: Strand, mask: Mask | None) -> None:
        value, unset = get(s), s.any_unset(names)
        s.write(low, value.astype(np.uint32), mask, unset)
        s.write(high, (value >> np.uint64(32)).astype(np.uint32), mask, unset)

    return step


def joins(
    context: Context, target: Operand, parts: tuple[str, ...], instruction: Instruction
) -> LaneAction:
    """Two registers as one of twice the bits, 64 or 32; the lower one first."""
    text, whole = instruction.text, instruction.name.removeprefix("mov.")
    half, dtype, bits = ("b16", np.uint32, 16) if whole == "b32" else ("b32", np.uint64, 32)
    result = register(context, target, whole, text)
    (low, names), (high, more) = (source(context, part, half, text) for part in parts)

    def step(s: Strand, mask: Mask | None) -> None:
        value = low(s).astype(dtype) | high(s).astype(dtype) << dtype(bits)
        s.write(result, value, mask, s.any_unset(names + more))

    return step
