"""Programs in the spelling of xDSL of 2023 and 2024, translated to today's.

Before:
```
stencil.store %v to %b ([0, 0] : [8, 8]) : !stencil.temp<?x?xf64> to !f
"stencil.store"(%v, %b) {"lb" = #stencil.index<0, 0>, "ub" = #stencil.index<8, 8>} : (!t, !f) -> ()
%v = "stencil.apply"(%u) ({ ... }) : (!t) -> !t
```
After:
```
stencil.store %v to %b(<[0, 0], [8, 8]>) : !stencil.temp<?x?xf64> to !f
"stencil.store"(%v, %b) {"bounds" = #stencil.bounds<[0, 0], [8, 8]>} : (!t, !f) -> ()
%v = "stencil.apply"(%u) <{"operandSegmentSizes" = array<i32: 1, 0>}> ({ ... }) : (!t) -> !t
```
"""

from __future__ import annotations

import re

NUMBERS = r"(-?\d+(?:\s*,\s*-?\d+)*)"
STORED = re.compile(
    rf"(stencil\.store\s+%[\w$.#]+\s+to\s+%[\w$.#]+)\s*\(\s*\[{NUMBERS}\]\s*:\s*\[{NUMBERS}\]\s*\)"
)
STORED_BARE = re.compile(
    rf"(stencil\.store\s+%[\w$.#]+\s+to\s+%[\w$.#]+)\s*<\s*\[{NUMBERS}\]\s*,\s*\[{NUMBERS}\]\s*>"
)
INDEX = re.compile(rf"#stencil\.index(?:<{NUMBERS}>|\[{NUMBERS}\])")
INDICES = r"#stencil\.index<(\[[-\d,\s]*\])>"
BOUNDS = re.compile(rf'"?lb"?\s*=\s*{INDICES}\s*,\s*"?ub"?\s*=\s*{INDICES}')
APPLY = re.compile(r'("stencil\.apply"\()([^()]*)\)\s*\(\{')
AXIS = re.compile(r'("stencil\.index"\(\)\s*<?\{[^}]*?"?dim"?\s*=\s*\d+\s*:\s*)i64')


def with_segments(found: re.Match[str]) -> str:
    """An apply with a number of read operands: all, as none is written."""
    read = len(re.findall("%", found[2]))
    return f'{found[1]}{found[2]}) <{{"operandSegmentSizes" = array<i32: {read}, 0>}}> ({{'


def modern_older(text: str) -> str:
    """The text in today's spelling, each operation on its old line."""
    text = STORED.sub(r"\1(<[\2], [\3]>)", text)
    text = STORED_BARE.sub(r"\1(<[\2], [\3]>)", text)
    text = INDEX.sub(lambda found: f"#stencil.index<[{found[1] or found[2]}]>", text)
    # The bounds of a dyn_access keep their names.
    lines = [
        line if "dyn_access" in line else BOUNDS.sub(r'"bounds" = #stencil.bounds<\1, \2>', line)
        for line in text.split("\n")
    ]
    text = APPLY.sub(with_segments, "\n".join(lines))
    text = AXIS.sub(r"\1index", text)
    return text.replace("operand_segment_sizes", "operandSegmentSizes")
