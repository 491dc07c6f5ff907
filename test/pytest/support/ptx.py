"""A machine for hand-written PTX: all threads of a launch, an instruction at a time, with NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.uint64]

WORD = np.uint64(0xFFFFFFFF)


def chosen(first: Lanes, second: Lanes, predicate: Lanes) -> Lanes:
    """The first word for lanes with a true predicate, otherwise the second word."""
    return np.where(predicate != 0, first, second)


OF_ONE: dict[str, Callable[[Any], Any]] = {
    "mov.u32": lambda a: a,
    "ld.param.u32": lambda a: a,
    "ld.param.u64": lambda a: a,
}
OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "shr.u32": lambda a, b: a >> b,
    "shl.b64": lambda a, b: a << b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "add.u32": lambda a, b: (a + b) & WORD,
    "add.u64": lambda a, b: a + b,
    "sub.u32": lambda a, b: (a - b) & WORD,
    "mul.lo.u32": lambda a, b: (a * b) & WORD,
    "mul.wide.u32": lambda a, b: a * b,
    "min.u32": np.minimum,
    "div.u32": lambda a, b: a // b,
    "rem.u32": lambda a, b: a % b,
    "setp.ge.u32": lambda a, b: a >= b,
    "setp.lt.u32": lambda a, b: a < b,
    "setp.ne.u32": lambda a, b: a != b,
}
OF_THREE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mad.lo.u32": lambda a, b, c: (a * b + c) & WORD,
    "setp.ge.and.u32": lambda a, b, p: (a >= b) & (p != 0),
    "setp.lt.and.u32": lambda a, b, p: (a < b) & (p != 0),
    "selp.u32": chosen,
}
ARITHMETIC: dict[str, Callable[..., Any]] = {**OF_ONE, **OF_TWO, **OF_THREE}
"""The meaning of instructions on words of 64 bits, by the operands: NumPy's arrays or numbers."""

LINE = re.compile(r"(?:@(?P<guard>%\w+) )?(?P<op>[\w.]+)(?: (?P<operands>.*))?;$")


class Memory:
    """Buffers of 32-bit words at addresses far from each other."""

    def __init__(self, *buffers: NDArray[np.uint32]):
        self.buffers = buffers
        self.reads = [np.zeros(buffer.size, dtype=int) for buffer in buffers]
        """How often each word was loaded."""
        self.bases = [(k + 1) << 40 for k in range(len(buffers))]

    def place(self, address: np.uint64) -> tuple[int, int]:
        """
        The number of the buffer and the place in the buffer; AssertionError for an address outside
        all buffers.
        """
        number, byte = divmod(int(address), 1 << 40)
        assert byte % 4 == 0 and 1 <= number <= len(self.buffers)
        assert byte // 4 < self.buffers[number - 1].size
        return number - 1, byte // 4

    def load(self, address: np.uint64) -> np.uint32:
        number, place = self.place(address)
        self.reads[number][place] += 1
        return self.buffers[number][place]

    def store(self, address: np.uint64, word: np.uint64) -> None:
        number, place = self.place(address)
        self.buffers[number][place] = word


def launch(
    text: str, parameters: Mapping[str, int], memory: Memory, blocks: int, threads: int
) -> None:
    """Run all threads of a kernel with one entry; the threads furthest behind run first."""
    body = re.sub(r"//.*", "", text[text.index("{") + 1 : text.rindex("}")])
    lines = [line.strip() for line in body.splitlines()]
    lines = [line for line in lines if line and not line.startswith(".reg")]
    places: dict[str, int] = {}
    code: list[re.Match[str]] = []
    for line in lines:
        if line.endswith(":"):
            places[line[:-1]] = len(code)
            continue
        found = LINE.match(line)
        assert found is not None, line
        code.append(found)
    lanes = np.arange(blocks * threads, dtype=np.uint64)
    registers: dict[str, Lanes] = {
        "%tid.x": lanes % np.uint64(threads),
        "%ctaid.x": lanes // np.uint64(threads),
    }
    at = np.zeros(lanes.size, dtype=np.int64)
    while (running := at < len(code)).any():
        place = int(at[running].min())
        here, instruction = at == place, code[place]
        at[here] += 1
        if instruction["guard"]:
            here &= registers[instruction["guard"]] != 0
        operands = re.findall(r"[%\w.]+", instruction["operands"] or "")
        run(instruction["op"], operands, here, registers, parameters, memory, at, places, len(code))


def run(
    op: str,
    operands: Sequence[str],
    here: NDArray[np.bool_],
    registers: dict[str, Lanes],
    parameters: Mapping[str, int],
    memory: Memory,
    at: NDArray[np.int64],
    places: Mapping[str, int],
    end: int,
) -> None:
    """One instruction of the threads `here`."""

    def value(name: str) -> Any:
        if name in parameters:
            return np.uint64(parameters[name])
        return registers[name][here] if name.startswith("%") else np.uint64(int(name))

    if op in ("bra", "ret"):
        at[here] = places[operands[0]] if operands else end
        return
    target, *sources = operands
    if op == "st.global.u32":
        addresses: Lanes = value(target)
        words: Lanes = np.broadcast_to(value(sources[0]), addresses.shape)
        for address, stored in zip(addresses, words):
            memory.store(address, stored)
        return
    if op == "ld.global.u32":
        made: Any = [memory.load(address) for address in value(sources[0])]
    else:
        made = ARITHMETIC[op](*map(value, sources))
    registers.setdefault(target, np.zeros(here.size, dtype=np.uint64))[here] = made
