"""Machine code of the work at points, for time loops that run as kernels elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import timetile
from timetile.dialects.temporal import PointRunOp
from timetile.lowering.cpu.convert_temporal_to_llvm import functions_of
from timetile.lowering.cpu.host_nests import NestFunction
from timetile.lowering.cpu.nest_rules import compiled_loops
from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.host.point_loops import function_of
from timetile.runtime.machine.llvm import Code, object_code, processor
from timetile.runtime.native.nests import HostNests, NestCode

PARTS = ("places", "values", "after")
"""The functions without a kernel."""


class PointNests(HostNests):
    """The loops of the functions of points, run by machine code on one thread."""

    def __init__(self, module: ModuleOp, cache: Cache | None):
        runs = [op for op in module.walk() if isinstance(op, PointRunOp)]
        functions = [function_of(run, part) for run in runs for part in PARTS]
        numbers = count()
        nests = [NestFunction(op, next(numbers), {}) for f in functions for op in compiled_loops(f)]
        for nest in nests:
            nest.make()
        # The functions point to memory of the code.
        self.code = Code(code_of(functions, nests, cache))
        super().__init__({nest.nest: NestCode(nest, self.code) for nest in nests}, {}, 1, None)


def code_of(
    functions: Sequence[FuncOp], nests: Sequence[NestFunction], cache: Cache | None
) -> bytes:
    """The machine code of loops of functions, from the cache if made on this processor."""
    text = "".join(map(str, functions))
    key = key_of("points", text, processor().key(), timetile.__version__, sources_key())
    kept = None if cache is None else cache.decoded(key, lambda parts: parts["points.o"])
    if kept is not None:
        return kept
    code = object_code(ModuleOp(functions_of([], nests)))
    if cache is not None:
        cache.write(key, {"points.o": code})
    return code
