"""Names of classes and functions that several modules define: a further name is a decision.

A search for a name finds all uses: a name of several things mixes their uses. Names of the lists
are equal on purpose, like an operation on two levels of the IR, or belong to packages without
imports of each other. A name of its own is better.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import timetile
from support.syntax import tree_of

# One worker reads the sources.
pytestmark = pytest.mark.xdist_group("sources")

PACKAGE = Path(timetile.__file__).parent
LAYERS = ("dialects", "passes", "lowering", "runtime", "frontend")

TYPES = """
    Argument Array Buffer Cells Comparison Extent Kind LoadOp Offset OpT Operands Options
    Parameters ScratchOp State StoreOp Sweep Value Values Writer
"""
"""Classes and types."""

FUNCTIONS = """
    address all_patterns along argument_of arguments_of arithmetic bits_of box_of cache
    callee_of cell_of check check_alignment check_fields check_loop check_options
    choice code_of compare compared_floats compared_integers compile compiled constant converted
    coordinate copy_of covers describe distance divides evaluate extents fields_of
    folded function_of functions_of gather gathered index_of integer invariants is_known
    is_plain is_private is_scalar joined key_of launch_facts limits load loop_of made
    main maximum meaning_of minimum moved name_of number_of numbers opened parse_value
    parts parts_of place_of places_of publish reads_of reciprocal_root register registers
    replaced said same_bits select shape_of shift_left shifted source span_of spans splits
    strides_of synchronise taps_of title_of type_of variants_of warn where with_operands
    written_arguments
"""

SHARED = {*TYPES.split(), *FUNCTIONS.split()}


def is_type_name(name: str) -> bool:
    """A name like `Layout`, other than a constant like `MOST`."""
    return name[0].isupper() and not name.isupper()


def names_of(path: Path) -> Iterator[str]:
    """Classes, types and functions of a module, each once."""
    names: set[str] = set()
    for node in tree_of(path).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if is_type_name(name):
                    names.add(name)
            case _:
                pass
    yield from sorted(names)


def homonyms() -> dict[str, list[str]]:
    """Names of several modules, with the modules."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for layer in LAYERS:
        for path in sorted((PACKAGE / layer).rglob("*.py")):
            for name in names_of(path):
                found[name].append(str(path.relative_to(PACKAGE)))
    return {name: modules for name, modules in found.items() if len(modules) > 1}


def test_a_name_of_several_modules_is_a_decision():
    new = [
        f"{name}: {', '.join(modules)}"
        for name, modules in homonyms().items()
        if name not in SHARED
    ]
    assert not new, f"give each a name of its own, or add the name to a list here: {new}"


def test_the_lists_have_no_name_of_a_single_module():
    assert not SHARED - homonyms().keys()
