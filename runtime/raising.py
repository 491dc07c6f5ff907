"""From a program to the temporal level, remembered by the program's text.

Parsing and verifying a large `stencil.apply` takes longer than everything else that a cached program
needs. What was raised without a remark is kept as text, with the places of its operations beside it.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.parser import Parser

import timetile
from timetile.runtime.cache import Cache, key_of, sources_key
from timetile.runtime.kernels import Options, raise_program
from timetile.runtime.loading import load, load_text, make_context


def raised(program: ModuleOp | str | Path, options: Options, cache: Cache | None) -> ModuleOp:
    """
    The program at temporal level; CompileError where it is wrong or has no time loop. A text that was
    raised before comes from the cache.
    """
    if cache is None or isinstance(program, ModuleOp):
        return raise_program(load(program), options)
    name = str(program) if isinstance(program, Path) else "<program>"
    text = program.read_text() if isinstance(program, Path) else program
    versions = (timetile.__version__, sources_key(), version("xdsl"))
    said = (options.fp_contract, options.fp_division, options.halos, options.function)
    key = key_of("raised", name, text, *said, *versions)
    files = cache.read(key)
    if files is not None:
        return restored(files["temporal.mlir"].decode(), json.loads(files["places.json"]), name)
    module = raise_program(load_text(text, name), options)
    if is_raised(module):
        places = json.dumps(places_of(module))
        cache.write(key, {"temporal.mlir": str(module).encode(), "places.json": places.encode()})
    return module


def is_raised(module: ModuleOp) -> bool:
    """Nothing was left as it was: no remark is lost by not raising the program again."""
    return not any(op.name.startswith(("stencil.", "scf.")) for op in module.walk())


def places_of(module: ModuleOp) -> list[tuple[int, int] | None]:
    """Line and column of every operation, in order; None where they are unknown."""
    return [
        (op.location.line.data, op.location.column.data)
        if isinstance(op.location, FileLineColLoc)
        else None
        for op in module.walk()
    ]


def restored(text: str, places: list[tuple[int, int] | None], name: str) -> ModuleOp:
    """The module, verified when it was written, with the places of its operations."""
    module = Parser(make_context(), text).parse_module()
    file = StringAttr(name)
    for op, place in zip(module.walk(), places, strict=True):
        if place is not None:
            op.location = FileLineColLoc(file, *map(IntAttr, place))
    return module
