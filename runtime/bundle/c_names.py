"""Names in the files of a bundle: valid in C and C++, different, and readable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

LONGEST = 64
"""Characters of a name; longer names end in a digest."""

C_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while typeof asm
"""

CPP_WORDS = """
alignas alignof and and_eq bitand bitor bool catch char8_t char16_t char32_t class compl concept
const_cast consteval constexpr constinit co_await co_return co_yield decltype delete dynamic_cast
explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public reinterpret_cast requires static_assert static_cast template this
thread_local throw true try typeid typename using virtual wchar_t xor xor_eq
"""

MACROS = "NULL EOF TRY I errno stdin stdout stderr assert complex linux unix i386"
"""Names that headers and compilers define as macros."""

RESERVED_WORDS = frozenset(f"{C_WORDS} {CPP_WORDS} {MACROS}".split())

OF_HEADERS = re.compile(r"(CU|cu)[A-Z_]\w*|u?int\w*_t|\w*_MAX|\w*_MIN")
"""Names of types, functions and macros in `cuda.h`, `stdint.h` and the like."""

OF_COMPILERS = re.compile(r"_[A-Z_]\w*")
"""Names that C keeps for its compilers."""


def c_word(name: str) -> str:
    """Letters, digits and `_` of a name, a digit not ahead; longer names end in a digest."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII) or "unnamed"
    if len(made) > LONGEST:
        made = f"{made[: LONGEST - 9]}_{sha256(name.encode()).hexdigest()[:8]}"
    return f"_{made}" if made[0].isdigit() else made


def c_name(name: str) -> str:
    """The name of a member or a variable: a word without another meaning in C or C++."""
    made = c_word(name)
    if made in RESERVED_WORDS or OF_HEADERS.fullmatch(made):
        return f"{made}_"
    return f"n{made}" if OF_COMPILERS.fullmatch(made) else made


def distinct_names(names: Iterable[str]) -> list[str]:
    """
    A C name for each name, no two equal; different also for file systems that ignore case.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        first = made = c_name(name)
        number = 2
        while made.casefold() in taken:
            made = f"{first}_{number}"
            number += 1
        taken.add(made.casefold())
        found.append(made)
    return found
