"""The CPU executor: a program's time loops and the host's loops as machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

import timetile
from timetile.dialects.temporal import LoopOp
from timetile.lowering.cpu.convert_temporal_to_llvm import functions_of
from timetile.lowering.cpu.host_nests import nest_functions
from timetile.lowering.cpu.reductions import reduction_functions
from timetile.lowering.cpu.sweeps import ordered_sweeps, sweep_functions
from timetile.runtime.cache.keys import key_of, sources_key
from timetile.runtime.cache.sources import find_sources_key
from timetile.runtime.cache.store import Cache
from timetile.runtime.executors.numpy_loops import Progress
from timetile.runtime.host.memory_protocol import Memory
from timetile.runtime.kernels.loops import loops_of
from timetile.runtime.machine.llvm import Code, object_code, processor
from timetile.runtime.native.loops import LoopCode, LoopTask, WidenedCode, prepared
from timetile.runtime.native.memory import NativeMemory
from timetile.runtime.native.nests import HostNests, NestCode
from timetile.runtime.native.sweeps import SweepCode
from timetile.runtime.native.widened import widened_loops


def code_of(module: ModuleOp, loops: Sequence[LoopOp], cache: Cache | None) -> bytes:
    """
    The machine code of a program's time loops, given as they run, and of the host's loops, from the
    cache if made on this processor.
    """
    if cache is not None:
        find_sources_key(cache)
    key = key_of(
        "machine code", str(module), processor().key(), timetile.__version__, sources_key()
    )
    kept = None if cache is None else cache.decoded(key, lambda parts: parts["loops.o"])
    if kept is not None:
        return kept
    nests = nest_functions(module, loops_of(module))
    functions = functions_of(loops, nests, reduction_functions(module), sweep_functions(module))
    code = object_code(ModuleOp(functions))
    if cache is not None:
        cache.write(key, {"loops.o": code})
    return code


class NativeProgram:
    """The loops of a program as machine code, made or loaded here."""

    def __init__(self, module: ModuleOp, cache: Cache | None):
        loops, split = loops_of(module), loops_of(prepared(module))
        nests = nest_functions(module, loops)
        widened = widened_loops(module)
        code = Code(code_of(module, [*split, *(made.loop for made in widened.values())], cache))
        wide = {
            loops[number]: WidenedCode(made, LoopCode(made.loop, made.loop, place, code))
            for place, (number, made) in enumerate(widened.items(), len(loops))
        }
        self.loops = {
            loop: LoopCode(loop, run, number, code, wide.get(loop))
            for number, (loop, run) in enumerate(zip(loops, split, strict=True))
        }
        self.nests: dict[Operation, NestCode] = {nest.nest: NestCode(nest, code) for nest in nests}
        self.code = code
        self.sweeps = {
            op: SweepCode(op, number, code) for number, op in enumerate(ordered_sweeps(module))
        }


class NativeRunner:
    """Runs time loops with machine code on some threads."""

    def __init__(self, program: NativeProgram, threads: int, progress: Progress | None = None):
        self.memory: Memory = NativeMemory(program.code, threads, program.sweeps)
        self.program, self.threads, self.progress = program, threads, progress
        self.nests = HostNests(program.nests, program.loops, threads, progress)

    def __call__(
        self, loop: LoopOp, steps: int, buffers: Sequence[Any], outside: dict[SSAValue, Any]
    ) -> Sequence[Any]:
        asked = LoopTask(steps, buffers, outside, self.threads, self.progress)
        return self.program.loops[loop].run(asked)
