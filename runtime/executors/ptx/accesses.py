"""Loads, stores and asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from timetile.lowering.ptx.memory import LINE_HINT
from timetile.lowering.ptx.symbols import FUNCTION_PREFIX
from timetile.runtime.arithmetic.library_calls import call_named
from timetile.runtime.executors.ptx.arithmetic import FLOATS, KINDS
from timetile.runtime.executors.ptx.memory import WORD_BYTES, LaneAccess, Words
from timetile.runtime.executors.ptx.operands import (
    Context,
    LaneAction,
    address,
    register,
    source,
)
from timetile.runtime.executors.ptx.parse import Instruction, Operand, PtxAddress
from timetile.runtime.executors.ptx.strand import Strand
from timetile.runtime.executors.simt.errors import SimtError
from timetile.runtime.executors.simt.memory import Ints, Mask

COUNTER_BYTES = 4
"""Bytes of a counter of arriving blocks."""

Special = Callable[[Context, Instruction], LaneAction]

VECTORS = {"": 1, ".v2": 2, ".v4": 4}


def registers(operand: Operand) -> tuple[Operand, ...]:
    """The registers moved by one access."""
    return operand if isinstance(operand, tuple) else (operand,)


def place_kind(space: str) -> str:
    """The type of the register in an address."""
    return "u64" if space == "global" else "u32"


# Loads and stores.


def load_parameter(kind: str) -> Special:
    """Load a parameter of the kernel, or the result of a function."""

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        target, place = instruction.operands
        assert isinstance(place, PtxAddress)
        result = register(c, target, "u32" if kind == "u8" else kind, instruction.text)
        name, dtype = place.base, PARAMETERS[kind]

        def step(s: Strand, mask: Mask | None) -> None:
            given = s.launch.parameters.get(name)
            value = s.read(name, dtype) if given is None else given.view(dtype)
            s.write(result, value.astype(np.uint32) if kind == "u8" else value, mask)

        return step

    return bind


def argument(kind: str) -> Special:
    """Set an argument of the next call."""

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        place, value = instruction.operands
        assert isinstance(place, PtxAddress)
        get, names = source(c, value, kind, instruction.text)
        return lambda s, mask: s.write(place.base, get(s), mask, s.any_unset(names))

    return bind


def calls(c: Context, instruction: Instruction) -> LaneAction:
    """
    Call a function of the mathematical library: the processor's, with last bits possibly other than
    the GPU's.
    """
    result, function, arguments = (each for each in instruction.operands)
    assert isinstance(result, tuple) and isinstance(function, str) and isinstance(arguments, tuple)
    name = function.removeprefix(FUNCTION_PREFIX)
    kind = KINDS["f32" if name.endswith("f") and name != "erf" else "f64"]

    def step(s: Strand, mask: Mask | None) -> None:
        value = call_named(name, [s.read(each, kind) for each in arguments])
        s.write(result[0], value, mask, s.any_unset(arguments))

    return step


def loads(space: str, count: int, kind: str, *, weak: bool = True) -> Special:
    """Registers from memory."""

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        text = instruction.text
        targets, place = instruction.operands
        wide = NARROW.get(kind, kind)
        results = [register(c, target, wide, text) for target in registers(targets)]
        where, names = address(c, place, place_kind(space), text)
        size = KINDS[kind].itemsize
        words = size // WORD_BYTES
        if len(results) != count:
            raise SimtError(text, f"takes {count} registers")

        def step(s: Strand, mask: Mask | None) -> None:
            s.check_set(names, mask, text, "its address")
            lanes, at = s.taking(mask), where(s)
            access = LaneAccess(text, space, s, lanes, at[lanes])
            data, unset = s.launch.memory.load(access, size * count, weak=weak)
            if not weak:
                learn(s, lanes, at)
            for k, result in enumerate(results):
                part = slice(k * words, (k + 1) * words)
                value = np.ascontiguousarray(data[:, part]).view(KINDS[kind]).reshape(-1)
                value = value.astype(KINDS[wide], copy=False)
                s.write(result, value, mask, np.asarray(unset[:, part].any(axis=1)))

        return step

    return bind


def learn(s: Strand, lanes: Ints, at: Ints) -> None:
    """Give lanes the knowledge released at the place read by them."""
    for place in np.unique(at[lanes]).tolist():
        s.launch.barriers.learn(s, lanes[at[lanes] == place], place)


def cells(
    c: Context, values: Operand, kind: str, count: int, text: str
) -> Callable[[Strand], tuple[Words, Mask]]:
    """
    Reads the words of `count` registers side by side, a row for each lane, and which words are
    unset. Raises SimtError for another number of registers.
    """
    found = [source(c, value, NARROW.get(kind, kind), text) for value in registers(values)]
    if len(found) != count:
        raise SimtError(text, f"takes {count} registers")

    def read(s: Strand) -> tuple[Words, Mask]:
        data: list[Words] = []
        unset: list[Mask] = []
        for get, names in found:
            value = np.ascontiguousarray(np.broadcast_to(get(s), s.at.shape))
            value = value.astype(KINDS[kind], copy=False)
            data.append(value.reshape(-1, 1).view(np.uint8))
            missing = s.any_unset(names)
            missing = np.zeros(s.lanes, dtype=bool) if missing is None else missing
            unset.append(np.repeat(missing[:, None], data[-1].shape[1], axis=1))
        return np.concatenate(data, axis=1), np.concatenate(unset, axis=1)

    return read


def stores(space: str, count: int, kind: str, *, weak: bool = True) -> Special:
    """Memory from registers."""

    def bind(c: Context, instruction: Instruction) -> LaneAction:
        text = instruction.text
        place, values = instruction.operands
        where, names = address(c, place, place_kind(space), text)
        read = cells(c, values, kind, count, text)

        def step(s: Strand, mask: Mask | None) -> None:
            s.check_set(names, mask, text, "its address")
            lanes = s.taking(mask)
            data, unset = read(s)
            access = LaneAccess(text, space, s, lanes, where(s)[lanes])
            s.launch.memory.store(access, data, unset, weak=weak)

        return step

    return bind


def prefetch(c: Context, instruction: Instruction) -> LaneAction:
    """Prefetch: nothing changes, but the place must exist."""
    text = instruction.text
    where, names = address(c, instruction.operands[0], "u64", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.check_set(names, mask, text, "its address")
        lanes = s.taking(mask)
        access = LaneAccess(text, "global", s, lanes, where(s)[lanes])
        for _ in s.launch.memory.places(access, WORD_BYTES):
            pass

    return step


def add_released(c: Context, instruction: Instruction) -> LaneAction:
    """Add to a word of global memory, and release earlier accesses with the word."""
    text = instruction.text
    where, names = address(c, instruction.operands[0], "u64", text)
    get, more = source(c, instruction.operands[1], "u32", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.check_set(names + more, mask, text, "it")
        at, amount = where(s), np.broadcast_to(get(s), s.at.shape)
        for lane in s.taking(mask):
            lanes = np.array([lane])
            access = LaneAccess(text, "global", s, lanes, at[lanes])
            ((buffer, _, words),) = s.launch.memory.places(access, COUNTER_BYTES)
            count = buffer.data[words].view(np.uint32) + np.uint32(amount[lane])
            buffer.data[words] = count.view(np.uint8)
            s.launch.barriers.publish(s, lanes, int(at[lane]))

    return step


# Asynchronous copies.


def copies(c: Context, instruction: Instruction) -> LaneAction:
    """Start a copy from global to shared memory."""
    text = instruction.text
    target, place, size, *rest = instruction.operands
    to, names = address(c, target, "u32", text)
    of, more = address(c, place, "u64", text)
    assert isinstance(size, str)
    bytes = int(size)
    taken, last = source(c, rest[0] if rest else size, "u32", text)

    def step(s: Strand, mask: Mask | None) -> None:
        s.check_set(names + more + last, mask, text, "it")
        lanes = s.taking(mask)
        amount = np.broadcast_to(taken(s), s.at.shape)[lanes]
        access = LaneAccess(text, "shared", s, lanes, to(s)[lanes])
        s.launch.memory.copy(access, of(s)[lanes], bytes, amount)

    return step


def commit_group(c: Context, instruction: Instruction) -> LaneAction:
    """Close the group of the copies so far."""

    def step(s: Strand, mask: Mask | None) -> None:
        s.committed[slice(None) if mask is None else mask] += 1

    return step


def wait_group(c: Context, instruction: Instruction) -> LaneAction:
    """Let copies arrive, except for those of the last groups."""
    pending = instruction.operands[0]
    assert isinstance(pending, str)
    return lambda s, mask: s.launch.memory.wait_for_copies(s, mask, int(pending))


MOVED = ("f32", "f64", "b16", "b32", "b64", "u32", "u64", "s32", "s64")

NARROW = {"s8": "s32", "s16": "s32"}
"""Types of narrow integers in memory, with the types of their registers."""

PARAMETERS = {kind: KINDS[kind] for kind in MOVED} | {"u8": KINDS["u8"]}
"""Types of kernel parameters in memory; a predicate is a byte."""

ACCESSES: dict[str, Special] = {
    **{f"ld.param.{kind}": load_parameter(kind) for kind in PARAMETERS},
    **{f"st.param.{kind}": argument(kind) for kind in FLOATS},
    "call": calls,
    "prefetch.global.L1": prefetch,
    "red.release.gpu.global.add.u32": add_released,
    "cp.async.commit_group": commit_group,
    "cp.async.wait_group": wait_group,
}
"""How instructions that access memory are bound to operands."""

for space in ("global", "shared"):
    for vector, count in VECTORS.items():
        for kind in MOVED:
            ACCESSES[f"ld.{space}{vector}.{kind}"] = loads(space, count, kind)
            ACCESSES[f"st.{space}{vector}.{kind}"] = stores(space, count, kind)

for space in ("global", "shared"):
    for vector, count in VECTORS.items():
        for kind in NARROW:
            ACCESSES[f"ld.{space}{vector}.{kind}"] = loads(space, count, kind)
            ACCESSES[f"st.{space}{vector}.{kind}"] = stores(space, count, kind)

for vector, count in VECTORS.items():
    for kind in MOVED:
        for order in ("relaxed", "acquire"):
            name = f"ld.{order}.gpu.global{vector}.{kind}"
            ACCESSES[name] = loads("global", count, kind, weak=False)
        name = f"st.relaxed.gpu.global{vector}.{kind}"
        ACCESSES[name] = stores("global", count, kind, weak=False)

for cached in ("ca", "cg"):
    for hint in ("", LINE_HINT):
        ACCESSES[f"cp.async.{cached}.shared.global{hint}"] = copies
