"""Parses PTX text: the kernels of a module, with parameters, registers and instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PtxAddress:
    """A place in memory: a register, parameter or variable, and an offset in bytes."""

    base: str
    offset: int


Operand = str | PtxAddress | tuple[str, ...]
"""A register, a literal or a name; a place in memory; several registers between braces."""


@dataclass(frozen=True)
class Instruction:
    """One instruction, with its guard predicate and the text of its line."""

    name: str
    operands: tuple[Operand, ...]
    guard: str | None
    negated: bool
    text: str


@dataclass
class Entry:
    """A kernel. Labels give the number of the next instruction."""

    name: str
    parameters: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Types and names, in order."""
    variables: list[str] = field(default_factory=list[str])
    """The module's variables of one 64-bit word each."""
    registers: dict[str, str] = field(default_factory=dict[str, str])
    """The type of registers, by prefix."""
    code: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])

    def type_of(self, register: str) -> str:
        """A register's declared type."""
        return self.registers[register.rstrip("0123456789")]


INSTRUCTION = re.compile(
    r"(?:@(?P<negated>!?)(?P<guard>%\w+)\s+)?(?P<name>[a-z][\w.:]*)(?:\s+(?P<operands>.*))?;$"
)
OPERAND = re.compile(r"\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|[^,\s]+")
ENTRY = re.compile(
    r"\.visible \.entry ([\w$]+)\(([^)]*)\)([^{]*)\{(.*?)^\}", re.DOTALL | re.MULTILINE
)
PARAMETER = re.compile(r"\.param \.(\w+) ([\w$]+)")
VARIABLE = re.compile(r"^\.visible \.global \.align 8 \.u64 ([\w$]+);", re.MULTILINE)
PREFIX = re.compile(r"(%[a-z]+)<")


def parse_operand(text: str) -> Operand:
    """One operand."""
    if text.startswith(("{", "(")):
        return tuple(part.strip() for part in text[1:-1].split(","))
    if not text.startswith("["):
        return text
    base, _, offset = text[1:-1].partition("+")
    return PtxAddress(base, int(offset or "0", 0))


def parse_entry(name: str, parameters: str, body: str, variables: list[str]) -> Entry:
    """A kernel, from the text between its braces."""
    entry = Entry(name, PARAMETER.findall(parameters), variables)
    for line in (line.partition("//")[0].strip() for line in body.splitlines()):
        if not line:
            continue
        if line.endswith(":"):
            entry.labels[line[:-1]] = len(entry.code)
            continue
        if line in ("{", "}") or line.startswith((".param", ".pragma")):
            continue
        if line.startswith(".reg"):
            kind = line.split()[1].removeprefix(".")
            entry.registers |= dict.fromkeys(PREFIX.findall(line), kind)
            continue
        found = INSTRUCTION.match(line)
        if found is None:
            raise ValueError(f"{line!r} is no instruction of PTX")
        operands = tuple(map(parse_operand, OPERAND.findall(found["operands"] or "")))
        negated = found["negated"] == "!"
        entry.code.append(Instruction(found["name"], operands, found["guard"], negated, line))
    return entry


def parse_module(text: str) -> dict[str, Entry]:
    """The kernels of a module, by name; ValueError where a line is no instruction."""
    variables = VARIABLE.findall(text)
    return {
        name: parse_entry(name, parameters, body, variables)
        for name, parameters, _, body in ENTRY.findall(text)
    }
