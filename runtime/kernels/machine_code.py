"""What a kernel's machine code does in its loops: instructions, arithmetic, and spilled registers.

The assembler reports spilled bytes of a whole kernel. A spill at the beginning of a tile costs
nothing, and a spill in the loop over stream steps is paid in every step: the loops are read from
the code. An instruction has 16 bytes (NVIDIA's "CUDA Binary Utilities", sm_70 and newer); a loop
is a branch to an earlier instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import unpack_from

from timetile.passes.targets.isa import version_of

OPCODE, KIND = 0xFFF, 0x1FF
"""Bits with the opcode of an instruction, and with the opcode whatever the operands' kinds are."""

BRANCH, EXIT, LOCAL_LOAD, LOCAL_STORE = 0x947, 0x94D, 0x983, 0x387
"""
Opcodes: a branch, the end of a thread, and accesses to spilled registers in local memory.
"""

ALWAYS = 7
"""The predicate of an instruction without a condition."""

SPLIT_OFFSETS = version_of("sm_90")
"""The first architecture with offsets of branches in two parts."""

ARITHMETIC = frozenset({0x020, 0x021, 0x023, 0x028, 0x029, 0x02B})
"""Kinds of products, sums and fused products and sums, in FP32 and FP64."""

MOST_ARITHMETIC = 0.9
"""Loops with this share of the most arithmetic of a loop are loops over stream steps."""


@dataclass(frozen=True)
class CodeLoop:
    """An innermost loop of a kernel: instructions and accesses of spilled registers of a turn."""

    instructions: int
    arithmetic: int
    """Products, sums, and fused products and sums."""
    spills: int
    """Loads from, and stores to, local memory."""
    spill_words: int
    """32-bit words of a thread in these loads and stores."""

    @property
    def useful(self) -> int:
        """Instructions beside accesses of spilled registers."""
        return self.instructions - self.spills


def code_of(cubin: bytes) -> Iterator[bytes]:
    """The code of the kernels of a cubin, a 64-bit ELF file: its sections `.text.*`."""
    (table,) = unpack_from("<Q", cubin, 40)
    size, count, names = unpack_from("<HHH", cubin, 58)
    sections = [unpack_from("<IIQQQQ", cubin, table + size * k) for k in range(count)]
    text = sections[names][4]
    for name, _, _, _, offset, length in sections:
        if cubin[text + name :].startswith(b".text."):
            yield cubin[offset : offset + length]


def branch_target(place: int, low: int, high: int, *, split: bool) -> int:
    """
    The instruction to which a branch at `place` goes; `low` and `high` are its 64-bit words. The
    offset counts from the next instruction: bytes, or if `split` 4-byte units with the last eight
    bits apart.
    """
    if not split:
        far = low >> 32 | (high & 0x3FFFF) << 32
        far -= (far >> 49) << 50
        return place + 1 + far // 16
    far = low >> 34 | (high & 0x3FFFF) << 30
    far -= (far >> 47) << 48
    return place + 1 + (far << 8 | low >> 16 & 0xFF) // 4


def backward_branches(words: Sequence[int], *, split: bool) -> Iterator[tuple[int, int]]:
    """The first and the last instruction of each loop; an instruction has two 64-bit words."""
    end = -1
    for place in range(len(words) // 2):
        low, high = words[2 * place], words[2 * place + 1]
        if low & OPCODE == EXIT and low >> 12 & 0xF == ALWAYS:
            # Rarely running code stands behind an end, and goes back into the loop.
            end = place
        if low & OPCODE == BRANCH:
            first = branch_target(place, low, high, split=split)
            if end < first <= place:
                yield first, place


def width_of(high: int) -> int:
    """32-bit words accessed by a load or a store, whose second 64-bit word is `high`."""
    return {5: 2, 6: 4}.get(high >> 9 & 7, 1)


def loop_of(words: Sequence[int], first: int, last: int) -> CodeLoop:
    """The loop from an instruction to another."""
    low = words[2 * first : 2 * last + 2 : 2]
    high = words[2 * first + 1 : 2 * last + 2 : 2]
    local = [k for k, word in enumerate(low) if word & OPCODE in (LOCAL_LOAD, LOCAL_STORE)]
    return CodeLoop(
        last - first + 1,
        sum(word & KIND in ARITHMETIC for word in low),
        len(local),
        sum(width_of(high[k]) for k in local),
    )


def loops_of_code(code: bytes, arch: str) -> list[CodeLoop]:
    """The loops of a kernel that hold no other loop with arithmetic, in the order of the code."""
    words = unpack_from(f"<{len(code) // 8}Q", code)
    spans = list(backward_branches(words, split=version_of(arch) >= SPLIT_OFFSETS))
    loops = {span: loop_of(words, *span) for span in spans}
    busy = [span for span in spans if loops[span].arithmetic]

    def is_innermost(span: tuple[int, int]) -> bool:
        inside = (s for s in busy if s != span and span[0] <= s[0] and s[1] <= span[1])
        return not any(inside)

    return [loops[span] for span in busy if is_innermost(span)]


def steady_loop(cubin: bytes, arch: str) -> CodeLoop | None:
    """
    The loop over stream steps of tiles inside the bounds: of the loops with most arithmetic the
    shortest without its spills, as tiles on the rim have guards. None for code without such a loop.
    """
    loops = [loop for code in code_of(cubin) for loop in loops_of_code(code, arch)]
    most = max((loop.arithmetic for loop in loops), default=0)
    full = (loop for loop in loops if loop.arithmetic >= MOST_ARITHMETIC * most)
    return min(full, key=lambda loop: loop.useful, default=None)
