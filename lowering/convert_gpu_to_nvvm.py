"""convert-gpu-to-nvvm: threads, shuffles, copies and pointers take the form of the hardware.

Before                                          After
```
gpu.func @k(%a: memref<4356xf64, 1>) kernel     llvm.func @k(%a: !llvm.ptr<1>) {nvvm.kernel, ...}
%t = gpu.thread_id x                            %t = nvvm.read.ptx.sreg.tid.x
%v = simt.load %a[%i + 2] : f64                 %p = llvm.getelementptr %a[%i], simt.load %p[2]
%s = simt.shuffle %v delta -1 : f64             two nvvm.shfl.sync, between simt.split and simt.join
simt.copy_async %r[..], %a[..] bytes 16         nvvm.cp.async.shared.global
gpu.barrier                                     nvvm.barrier
simt.arrive %b phase %p                         nvvm.mbarrier.arrive.shared
simt.wait %b phase %p                           nvvm.mbarrier.try_wait.parity.shared
```
Arithmetic and control flow stay unchanged. A mask stays an i1, printed as a predicate in PTX.

1. Numbers of threads that the hardware has no register for are refused, and so are kernels without
   a number of threads.
2. Buffers become pointers, and arguments of type index get 64 bits (`gpu_to_nvvm/pointers.py`).
3. Each operation meets the pattern of its type once, in the order of the text: a pattern finds the
   pointers made by the patterns before. The patterns lie in `gpu_to_nvvm`, a file for each family
   of operations.
4. The `gpu.func` becomes an `llvm.func`.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import gpu, llvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from timetile.dialects.tile import LaunchAttr
from timetile.lowering.gpu_to_nvvm.accesses import access_patterns
from timetile.lowering.gpu_to_nvvm.arrivals import arrival_patterns
from timetile.lowering.gpu_to_nvvm.messages import message_patterns
from timetile.lowering.gpu_to_nvvm.pointers import FunctionValues
from timetile.lowering.gpu_to_nvvm.threads import check_numbers, thread_patterns
from timetile.lowering.launch_facts import known_launch_facts
from timetile.passes.diagnostics import refuse
from timetile.passes.not_raised import BEFORE_THREADS, remark_without_loops
from timetile.passes.patterns import Patterns, rewrite_once


def all_patterns(values: FunctionValues) -> Patterns:
    """The pattern of each converted operation, by the type of the operation."""
    return {
        **access_patterns(values),
        **arrival_patterns(values),
        **message_patterns(values),
        **thread_patterns(values),
    }


def convert_function(function: gpu.FuncOp, facts: LaunchAttr | None) -> None:
    """Replace a gpu.func by the llvm.func of a kernel, launched as `facts` say."""
    if function.known_block_size is None:
        refuse(function, "it names no number of threads; give it gpu.known_block_size")
    ops = list(function.body.walk())
    check_numbers(ops)
    values = FunctionValues(function, ops)
    values.convert_buffers(ops)
    values.convert_indices()
    rewrite_once(ops, all_patterns(values))
    block = function.known_block_size.get_values()
    body = function.detach_region(function.body)
    more: dict[str, Attribute] = {}
    if facts is not None and facts.cluster.data > 1:
        more["nvvm.cluster_dim"] = DenseArrayBase.from_list(i32, [facts.cluster.data, 1, 1])
    occupancy = 1 if facts is None else facts.occupancy.data
    kernel = llvm.FuncOp(
        function.sym_name,
        llvm.LLVMFunctionType(list(body.block.arg_types)),
        llvm.LinkageAttr("external"),
        body=body,
        extra_attrs={
            "nvvm.kernel": UnitAttr(),
            "nvvm.maxntid": DenseArrayBase.from_list(i32, list(block)),
            "nvvm.minctasm": IntegerAttr(occupancy, i32),
            **more,
        },
    )
    Rewriter.replace_op(function, kernel)


class ConvertGpuToNvvmPass(ModulePass):
    """Convert every kernel; see the module's documentation."""

    name = "convert-gpu-to-nvvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remark_without_loops(self, op, BEFORE_THREADS)
        for module in [m for m in op.ops if isinstance(m, gpu.ModuleOp)]:
            facts = known_launch_facts(module)
            for function in [f for f in module.body.block.ops if isinstance(f, gpu.FuncOp)]:
                if function.kernel is not None:
                    convert_function(function, facts)
