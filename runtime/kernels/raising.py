"""Raises a program to the temporal level, remembered by the program's text.

Parsing and verifying a large `stencil.apply` takes longer than all other work for a cached program.
A module raised without a remark is kept as text, beside the places of its operations.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.kernel import Parts
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.modules import load, load_text, text_of
from timetile.runtime.loading.places import module_of_text, places_of


def raised(program: ModuleOp | str | Path, options: Options, cache: Cache | None) -> ModuleOp:
    """
    The program at temporal level. Raises CompileError for a wrong program, or one without a time
    loop. A text raised before comes from the cache.
    """
    if cache is None or isinstance(program, ModuleOp):
        return raise_program(load(program), options)
    name = str(program) if isinstance(program, Path) else "<program>"
    text = text_of(program) if isinstance(program, Path) else program
    versions = (timetile.__version__, sources_key(), version("xdsl"))
    said = (",".join(map(str, options.temporal_passes())), options.function)
    # The key leaves out the file's name: locations are stored beside the text, and take the name on
    # reading.
    key = key_of("raised", text, *said, *versions)
    kept = cache.decoded(key, lambda parts: restored(parts, name))
    if kept is not None:
        return kept
    module = raise_program(load_text(text, name), options)
    if is_raised(module):
        places = json.dumps(places_of(module, name))
        cache.write(key, {"temporal.mlir": str(module).encode(), "places.json": places.encode()})
    return module


def is_raised(module: ModuleOp) -> bool:
    """Whether all of the module was raised: no remark is lost by using the module again."""
    return not any(op.name.startswith(("stencil.", "scf.")) for op in module.walk())


def restored(parts: Parts, name: str) -> ModuleOp:
    """
    The module, verified before it was written, with the places of its operations in a file of this
    name.
    """
    return module_of_text(parts["temporal.mlir"].decode(), json.loads(parts["places.json"]), name)
