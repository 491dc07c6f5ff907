"""Programs of the Open Earth Compiler (MLIR of 2020 and 2021), translated to xDSL's spelling.

Before:
```
func @damp(%arg0: !stencil.field<?x?x?xf64>, %arg1: !stencil.field<0x?x0xf64>) {
  %0 = stencil.cast %arg0([-4, -4, -4] : [68, 68, 68])
      : (!stencil.field<?x?x?xf64>) -> !stencil.field<72x72x72xf64>
  %3 = stencil.apply (%a = %2 : !stencil.temp<?x?x?xf64>) -> !stencil.temp<?x?x?xf64> {
    %4 = stencil.access %a [0, 0, -1] : (!stencil.temp<?x?x?xf64>) -> f64
    %5 = addf %4, %4 : f64
```
After:
```
func.func @damp(%arg0: !stencil.field<?x?x?xf64>, %arg1: !stencil.field<?xf64>) {
  %0 = stencil.cast %arg0 : !stencil.field<?x?x?xf64>
      -> !stencil.field<[-4,68]x[-4,68]x[-4,68]xf64>
  %3 = stencil.apply (%a = %2 : !stencil.temp<?x?x?xf64>) -> (!stencil.temp<?x?x?xf64>) {
    %4 = stencil.access %a[0, 0, -1] : !stencil.temp<?x?x?xf64>
    %5 = arith.addf %4, %4 : f64
```
1. Operations of the former dialect std become operations of arith and math; `func` becomes
   `func.func`.
2. A field's type states the number of cells, and a cast their beginning: now the type states both.
3. An axis of 0 cells is missing in a field: `_` in an access.
4. Bounds added by shape inference to loads, applies and values are removed; bounds of stores
   decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Axes = tuple[int, ...]

ARITH = {
    "addf", "subf", "mulf", "divf", "remf", "negf", "addi", "subi", "muli", "cmpf", "cmpi",
    "select",
    "constant", "sitofp", "uitofp", "fptosi", "fptoui", "index_cast", "trunci", "sexti", "zexti",
    "fpext", "fptrunc", "and", "or", "xor", "divi_signed", "divi_unsigned", "remi_signed",
    "remi_unsigned", "shift_left", "shift_right_signed", "shift_right_unsigned",
}  # fmt: skip
MATH = {"sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "absf", "ceilf", "floorf", "copysign"}
RENAMED = {
    "sexti": "extsi", "zexti": "extui", "fpext": "extf", "fptrunc": "truncf", "and": "andi",
    "or": "ori", "xor": "xori", "divi_signed": "divsi", "divi_unsigned": "divui",
    "remi_signed": "remsi", "remi_unsigned": "remui", "shift_left": "shli",
    "shift_right_signed": "shrsi", "shift_right_unsigned": "shrui", "ceilf": "ceil",
    "floorf": "floor",
}  # fmt: skip
"""Operations with a new name."""

FUNCTION = re.compile(r"^(\s*)func(\s+(?:private\s+)?@)", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*")
OPERATION = re.compile(r"^(\s*(?:%[^=]*=\s*)?)([a-z_]+(?:\.[a-z_]+)?)\b(.*)$")
TYPE = re.compile(r"!stencil\.(field|temp)<((?:(?:\?|\d+)x)+)([a-z]\w*)>")
NUMBERS = re.compile(r"\[([-\d,\s]*)\]")
SPAN = re.compile(r"\s*\(\s*\[[-\d,\s]*\]\s*:\s*\[[-\d,\s]*\]\s*\)")
RESULT = re.compile(r"->\s*(\(?)\s*(!stencil\.temp<[^>]*>[^{]*?)\)?\s*\{\s*$")
NAME = re.compile(r"%[\w$.#]+")
IN_TURN = re.compile(r"stencil\.apply\s+seq\b")
EXTENDED = re.compile(r"(lowerext|upperext) = \(([^)]*)\)")
UNROLLED = re.compile(r"\s+unroll\s+(\[[-\d,\s]*\])([^:]*?)\s*:")


class UnknownSpellingError(Exception):
    """An operation of the stencil dialect has another form than in the Open Earth Compiler."""


def required(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """The first match of a pattern. Raises UnknownSpellingError without a match."""
    found = pattern.search(text)
    if found is None:
        raise UnknownSpellingError
    return found


def first_two(parts: list[str]) -> tuple[str, str]:
    """The first two parts of an operation. Raises UnknownSpellingError without them."""
    if len(parts) < 2:
        raise UnknownSpellingError
    return parts[0], parts[1]


def is_earth(text: str) -> bool:
    """The text has functions of the older spelling."""
    return FUNCTION.search(text) is not None


def numbers(text: str) -> list[int]:
    """The integers of a list."""
    return [int(part) for part in text.split(",") if part.strip()]


def two_lists(text: str) -> tuple[list[int], list[int]]:
    """The first two lists of integers, mostly the beginning and the end of cells."""
    first, second = first_two(NUMBERS.findall(text))
    return numbers(first), numbers(second)


def axes_of(sizes: str) -> Axes:
    """The axes of a type, from sizes such as `0x?x0x`."""
    return tuple(k for k, size in enumerate(sizes.split("x")[:-1]) if size != "0")


def kept(values: list[int], axes: Axes) -> list[int]:
    """The entries of the axes."""
    return [values[axis] for axis in axes]


def dynamic(text: str) -> str:
    """The text with types without sizes, and without axes of 0 cells."""

    def replace(found: re.Match[str]) -> str:
        kind, sizes, element = found.groups()
        return f"!stencil.{kind}<{'?x' * len(axes_of(sizes))}{element}>"

    return TYPE.sub(replace, text)


@dataclass
class Earth:
    """Rewrites the operations of one text, in order."""

    fields: dict[str, str] = field(default_factory=dict[str, str])
    """The types of cast fields, by name."""
    domain: Axes = (0, 1, 2)
    """The axes of the values of the apply at hand."""

    def line(self, text: str) -> str:
        """One line, rewritten."""
        if FUNCTION.match(text):
            self.fields = {}
            return dynamic(FUNCTION.sub(r"\1func.func\2", text))
        found = OPERATION.match(text)
        if found is None:
            return dynamic(SPAN.sub("", text) if text.lstrip().startswith("}") else text).replace(
                "} to", "}"
            )
        before, name, rest = found.groups()
        if name in ARITH:
            rest = re.sub(r'"(\w+)"', r"\1", rest) if name.startswith("cmp") else rest
            return f"{before}arith.{RENAMED.get(name, name)}{rest}"
        if name in MATH:
            return f"{before}math.{RENAMED.get(name, name)}{rest}"
        if name == "call":
            return dynamic(f"{before}func.call{rest}")
        try:
            return dynamic(f"{before}{name}{self.after(name, before, rest)}")
        except UnknownSpellingError:
            # The parser reports the operation.
            return text

    def after(self, name: str, before: str, rest: str) -> str:
        """The rewritten text after the name of an operation. `before` names the results."""
        match name:
            case "stencil.cast":
                return self.cast(before, rest)
            case "stencil.load":
                return self.load(rest)
            case "stencil.store":
                return self.store(rest)
            case "stencil.apply":
                return self.apply(rest)
            case "stencil.access":
                return self.access(rest)
            case "stencil.dyn_access":
                return self.dyn_access(rest)
            case "stencil.index":
                return self.index(rest)
            case "stencil.buffer":
                return re.sub(r":\s*\(([^()]*)\)\s*->", r": \1 ->", SPAN.sub("", rest))
            case "stencil.combine":
                return EXTENDED.sub(r"\1 = \2", SPAN.sub("", rest))
            case "stencil.store_result":
                rest = re.sub(r":\s*\([^()]*\)\s*->", ":", rest)
                return re.sub(r":\s*\(([^()]*)\)\s*$", r": \1", rest)
            case "stencil.return":
                # A missing factor is 1.
                return UNROLLED.sub(r"\2 unroll <\1> :", re.sub(r"^\s+unroll\s+(?=%)", " ", rest))
            case _:
                return rest

    # Operations of the stencil dialect: the text after the name.

    def cast(self, before: str, rest: str) -> str:
        """Rewrite a cast."""
        name, given, source = required(NAME, before), required(TYPE, rest), required(NAME, rest)
        result = TYPE.findall(rest)[-1]
        low, high = two_lists(rest)
        axes = axes_of(result[1])
        spans = zip(kept(low, axes), kept(high, axes))
        kind = f"!stencil.field<{''.join(f'[{a},{b}]x' for a, b in spans)}{result[2]}>"
        self.fields[name[0]] = kind
        return f" {source[0]} : {dynamic(given[0])} -> {kind}"

    def load(self, rest: str) -> str:
        """Rewrite a load."""
        source, given, types = required(NAME, rest), required(TYPE, rest), list(TYPE.finditer(rest))
        return f" {source[0]} : {self.fields.get(source[0], given[0])} -> {types[-1][0]}"

    def store(self, rest: str) -> str:
        """Rewrite a store."""
        given, types = required(TYPE, rest), list(TYPE.finditer(rest))
        axes = axes_of(types[-1][2])
        value, target = first_two(NAME.findall(rest))
        low, high = (kept(found, axes) for found in two_lists(rest))
        kind = self.fields.get(target, types[-1][0])
        return f" {value} to {target}(<{low}, {high}>) : {given[0]} to {kind}"

    def apply(self, rest: str) -> str:
        found = RESULT.search(rest)
        if found is None:
            return rest
        results = TYPE.search(found[2])
        if results is not None:
            self.domain = axes_of(results[2])
        head = rest[: found.start()].rstrip()
        return f"{head or '()'} -> ({found[2].strip()}) {{"

    def access(self, rest: str) -> str:
        """Rewrite an access."""
        source, kind = required(NAME, rest), required(TYPE, rest)
        offset = numbers(required(NUMBERS, rest)[1])
        own = axes_of(kind[2])
        places = [str(offset[axis]) if axis in own else "_" for axis in self.domain]
        return f" {source[0]}[{', '.join(places)}] : {kind[0]}"

    def dyn_access(self, rest: str) -> str:
        """Rewrite a dyn_access."""
        source, *places = NAME.findall(rest)
        kind = required(TYPE, rest)
        own = axes_of(kind[2])
        low, high = (kept(found, own) for found in two_lists(rest))
        chosen = ", ".join(places[axis] for axis in own)
        return f" {source}[{chosen}] in <{low}> : <{high}> : {kind[0]}"

    def index(self, rest: str) -> str:
        """Rewrite an index."""
        axis = int(re.findall(r"\d+", rest)[0])
        offset = kept(numbers(NUMBERS.findall(rest)[0]), self.domain)
        return f" {self.domain.index(axis)} <{offset}>"


def is_whole(line: str) -> bool:
    """
    Whether an operation of possibly several lines has ended: an apply with its body, a combine with
    its types.
    """
    if "stencil.apply" in line:
        return "{" in line
    if "stencil.combine" in line:
        return re.search(r"\)\s*:\s*!stencil[^)]*[^,\s]\s*$", line) is not None
    return True


def goes_on(line: str) -> bool:
    """Whether a line continues an operation: no operation begins with a colon or an arrow."""
    return line.lstrip().startswith((":", "->"))


def joined(lines: list[str]) -> list[str]:
    """The lines, with each operation on its first line, followed by empty lines for the others."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        line, taken = lines[at], 1
        while at + taken < len(lines) and (not is_whole(line) or goes_on(lines[at + taken])):
            line += " " + lines[at + taken].strip()
            taken += 1
        out += [line, *[""] * (taken - 1)]
        at += taken
    return out


def modern_earth(text: str) -> str:
    """The text in xDSL's spelling, each operation on its old line."""
    earth = Earth()
    lines = joined(COMMENT.sub("", text).split("\n"))
    return "\n".join(map(earth.line, lines))


def line_in_turn(text: str) -> int | None:
    """
    The number, from 1, of the first line of an apply with cells computed in turn along an axis.
    """
    text = COMMENT.sub("", text)
    found = IN_TURN.search(text)
    return None if found is None else text.count("\n", 0, found.start()) + 1
