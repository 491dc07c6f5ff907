"""Raises a program to the temporal level, remembered by the program's text.

Parsing and verifying a large `stencil.apply` takes longer than all other work for a cached program.
A raised module is kept with the places of its operations, beside the remarks on the way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

import timetile
from timetile.passes.diagnostics import OperationPlace, Remark, collected_remarks, remark_at
from timetile.runtime.cache.keys import installed_version, key_of, sources_key
from timetile.runtime.cache.sources import find_sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.kernel import Parts
from timetile.runtime.kernels.of_program import raise_program
from timetile.runtime.kernels.options import Options
from timetile.runtime.loading.made import MadeProgram
from timetile.runtime.loading.modules import load, load_text, text_of
from timetile.runtime.loading.packed import packed_module, unpacked_module
from timetile.runtime.loading.places import NO_FILE

MODULE, REMARKS = "temporal.packed", "remarks.json"
"""The parts of an entry."""


def raised(
    program: ModuleOp | str | Path | MadeProgram, options: Options, cache: Cache | None
) -> ModuleOp:
    """
    The program at temporal level. Raises CompileError for a wrong program, or one without a time
    loop. What was raised before from a text, or from what a program is made from, comes from the
    cache.
    """
    if cache is None or isinstance(program, ModuleOp):
        return raise_program(load(program), options)
    name, text = named_text(program)
    find_sources_key(cache)
    versions = (timetile.__version__, sources_key(), installed_version("xdsl"))
    said = (",".join(map(str, options.temporal_passes())), options.function)
    # The key leaves out the file's name: locations take the name on reading.
    key = key_of("raised", text, *said, *versions)
    kept = cache.decoded(key, lambda parts: restored(parts, name))
    if kept is not None:
        return kept
    is_made = isinstance(program, MadeProgram)
    with collected_remarks() as remarks:
        module = raise_program(program.make() if is_made else load_text(text, name), options)
    packed = packed_module(module, name)
    if packed is not None and not any(name in remark.reason for remark in remarks):
        told = json.dumps(remarks_apart(remarks, name)).encode()
        cache.write(key, {MODULE: packed, REMARKS: told})
    return module


def named_text(program: str | Path | MadeProgram) -> tuple[str, str]:
    """The name of a program's file in messages, and its text or what it is made from."""
    if isinstance(program, MadeProgram):
        return NO_FILE, program.key
    if isinstance(program, Path):
        return str(program), text_of(program)
    return NO_FILE, program


def remarks_apart(remarks: Sequence[Remark], name: str) -> list[list[str | int | None]]:
    """Remarks on a program of a file, in parts, without the file's name."""
    return [
        [at.operation, at.symbol, None if at.file == name else at.file, at.line, remark.reason]
        for remark in remarks
        for at in [remark.place]
    ]


def restored(parts: Parts, name: str) -> ModuleOp:
    """
    The module of an entry, verified before it was written; the remarks on a file of this name are
    made again.
    """
    module = unpacked_module(parts[MODULE], name)
    found = [
        (OperationPlace(operation, symbol, file or (line and name), line), reason)
        for operation, symbol, file, line, reason in json.loads(parts[REMARKS])
    ]
    for place, reason in found:
        remark_at(place, reason)
    return module
