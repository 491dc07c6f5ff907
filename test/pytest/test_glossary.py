"""docs/glossary.md defines every name of the IR and of schedules, each once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.str_enum import StrEnum

from timetile.dialects.tile.schedule import Schedule
from timetile.lowering.universe import DIALECTS

ROOT = Path(__file__).parents[2]

STANDARD = frozenset(
    [
        "sym_name",
        "argument",
        "body",
        "data",
        "res",
        "result",
        "index",
        "indices",
        "value",
        "a",
        "b",
        "c",
        "i",
        "k",
        "x",
        "condition",
        "count",
        "operandSegmentSizes",
    ]
)
"""Words of MLIR and of any program, without a need for an entry."""


BUILT_IN = {name for name in DIALECTS if name == "nvvm"}
"""Dialects of MLIR's own names."""


def entries() -> set[str]:
    """
    The words defined in docs/glossary.md: in bold, in the first column, or explained within an
    entry.
    """
    text = (ROOT / "docs" / "glossary.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    return {word for row in rows for word in re.findall(r"\*\*([^*]+)\*\*", row)}


def names_of_operations(dialect: Dialect) -> Iterator[str]:
    """The words in the names of a dialect's operations, operands, results and properties."""
    for operation in dialect.operations:
        yield operation.name.split(".", 1)[1]
        assert issubclass(operation, IRDLOperation)
        definition = operation.get_irdl_definition()
        yield from definition.properties
        yield from definition.attributes
        yield from (name for name, _ in (*definition.operands, *definition.results))


def names_of_attributes(dialect: Dialect) -> Iterator[str]:
    """The words in the names of a dialect's attributes, parameters, and values of enumerations."""
    for attribute in dialect.attributes:
        yield attribute.name.split(".", 1)[1]
        if issubclass(attribute, ParametrizedAttribute):
            yield from (name for name, _ in attribute.get_irdl_definition().parameters)
        if issubclass(attribute, EnumAttribute):
            yield from (str(value) for value in attribute.enum_type)


def names_of_the_schedule() -> Iterator[str]:
    """The words in the names of the parts of a schedule, and in the values of the parts."""
    for part in fields(Schedule):
        yield part.name
        default: object = part.default
        if isinstance(default, StrEnum):
            yield from map(str, type(default))


def names_of_the_ir() -> set[str]:
    """All required words of the glossary."""
    names = set(names_of_the_schedule())
    for key, factory in DIALECTS.items():
        if key not in BUILT_IN:
            dialect = factory()
            names |= {*names_of_operations(dialect), *names_of_attributes(dialect)}
    # Words of literals, as long as enumerations are strings: Literal["warp", "block"].
    for path in (ROOT / "dialects").rglob("*.py"):
        for literal in re.findall(r"Literal\[([^\]]*)\]", path.read_text()):
            names |= set(re.findall(r'"(\w+)"', literal))
    return names


def is_defined(name: str, known: set[str] | frozenset[str]) -> bool:
    """
    Whether a name, its singular, or each part of the name is known: `source_index` is of `source`
    and `index`.
    """
    if name in known or name.removesuffix("s") in known:
        return True
    parts = name.split("_")
    return len(parts) > 1 and all(is_defined(part, known) for part in parts)


def test_every_name_of_the_ir_is_in_the_glossary():
    known = entries() | STANDARD
    missing = sorted(name for name in names_of_the_ir() if not is_defined(name, known))
    assert not missing, f"docs/glossary.md has no entry for {missing}"


def test_an_entry_of_the_glossary_is_one():
    text = (ROOT / "docs" / "glossary.md").read_text()
    first = [line.split("|")[1] for line in text.splitlines() if line.startswith("| **")]
    words = [word for cell in first for word in re.findall(r"\*\*([^*]+)\*\*", cell)]
    assert sorted(words) == sorted(set(words))
