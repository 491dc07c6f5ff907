"""
Programs of equal text, in a process of many tests.

Tests compile a program for many schedules and executors, and a third of these begin with the same
text. A text is parsed and verified once, and raised once for each choice of passes: tests get
copies. A text with an error or a remark is read anew every time, and so is a text for a disk cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from timetile.passes.diagnostics import collected_remarks
from timetile.runtime.cache.store import Cache
from timetile.runtime.kernels.options import Options
from timetile.runtime.kernels.raising import raised
from timetile.runtime.loading.modules import parsed, text_of

KEPT = 48
"""Modules kept of each kind. Tests of a file follow each other, and so do equal texts."""

PARSED: OrderedDict[Hashable, ModuleOp] = OrderedDict()
"""Parsed modules by text and name, the last used one last."""

RAISED: OrderedDict[Hashable, ModuleOp] = OrderedDict()
"""Raised modules by text, name, function and passes, the last used one last."""


def known(
    kept: OrderedDict[Hashable, ModuleOp], key: Hashable, make: Callable[[], ModuleOp]
) -> ModuleOp:
    """A copy of a kept module, or of a new one; a module made with a remark is not kept."""
    if key not in kept:
        with collected_remarks() as remarks:
            made = make()
        if remarks:
            return made
        kept[key] = made
        if len(kept) > KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key].clone()


def parsed_once(text: str, name: str) -> ModuleOp:
    """The module of a text."""
    return known(PARSED, (text, name), lambda: parsed(text, name))


def raised_once(program: ModuleOp | str | Path, options: Options, cache: Cache | None) -> ModuleOp:
    """A program at temporal level."""
    if cache is not None or isinstance(program, ModuleOp):
        return raised(program, options, cache)
    text = text_of(program) if isinstance(program, Path) else program
    passes = tuple((type(item), str(item)) for item in options.temporal_passes())
    key = text, str(program), options.function, passes
    return known(RAISED, key, lambda: raised(program, options, None))


def forget() -> None:
    """Read all texts anew from now on, as in a new process."""
    PARSED.clear()
    RAISED.clear()
