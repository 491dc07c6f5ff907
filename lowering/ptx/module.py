"""The PTX of whole kernels and modules."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import gpu, llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp, i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from timetile.dialects import nvvm
from timetile.dialects.cell_types import CELL_BYTES
from timetile.dialects.tile import LaunchAttr
from timetile.lowering.launch_facts import known_launch_facts
from timetile.lowering.ptx.control import CONTROL
from timetile.lowering.ptx.functions import CALLS, device_functions
from timetile.lowering.ptx.memory import MEMORY
from timetile.lowering.ptx.messages import MESSAGES
from timetile.lowering.ptx.quotients import QUOTIENTS
from timetile.lowering.ptx.repeated_loads import loads_to_set
from timetile.lowering.ptx.symbols import SHARED_SYMBOL, report_symbol, symbol
from timetile.lowering.ptx.text import DECLARED, REGISTERS
from timetile.lowering.ptx.threads import THREADS
from timetile.lowering.ptx.values import VALUES
from timetile.lowering.ptx.writer import Writer
from timetile.passes.diagnostics import refuse
from timetile.passes.targets.target import Target, target_named

TABLE = VALUES | QUOTIENTS | CALLS | CONTROL | MEMORY | THREADS | MESSAGES
"""How every kind of operation is written."""


SCALAR_WORDS = 32
"""
Most registers of scalars loaded at a kernel's start. More scalars are loaded at their use:
otherwise the assembler keeps all, and spills registers.
"""

MESSAGE_WORDS = -2
"""
The parameter with the words for messages, of a kernel whose blocks exchange through global memory.
A wait in vain is reported in the first word.
"""


def load_boolean(w: Writer, argument: SSAValue, parameter: str) -> None:
    """Print a parameter that is a truth value, a byte in PTX, as a predicate."""
    byte = w.register(i32)
    w.line(f"ld.param.u8 {byte}, [{parameter}]")
    w.line(f"setp.ne.u32 {w.define(argument)}, {byte}, 0")


def numbers_of(function: llvm.FuncOp, name: str) -> tuple[int, ...]:
    """The numbers of an attribute of a kernel; none without the attribute."""
    value = function.attributes.get(name)
    if isa(value, DenseArrayBase[IntegerType]):
        return value.get_values()
    return (value.value.data,) if isinstance(value, IntegerAttr) else ()


def check_launch(function: llvm.FuncOp, facts: LaunchAttr) -> None:
    """Refuse a kernel whose NVVM attributes contradict the facts of its launch."""
    known = {
        "nvvm.maxntid": facts.block.data,
        "nvvm.minctasm": facts.occupancy.data,
        "nvvm.cluster_dim": facts.cluster.data,
    }
    for name, number in known.items():
        if (said := prod(numbers_of(function, name))) != number:
            refuse(
                function,
                f"its {name} says {said} and its #tile.launch {number}; give both one number",
            )


def print_parameters(w: Writer, function: llvm.FuncOp) -> list[str]:
    """Print the loads of a kernel's parameters. Returns their declarations."""
    args = function.body.block.args
    numbers = [argument for argument in args if argument.type in CELL_BYTES]
    many = sum(CELL_BYTES[argument.type] // 4 for argument in numbers) > SCALAR_WORDS
    declared: list[str] = []
    for k, argument in enumerate(args):
        parameter = f"{symbol(function.sym_name.data)}_param_{k}"
        pointer = isinstance(argument.type, llvm.LLVMPointerType)
        if argument.type == i1:
            declared.append(f"\t.param .u8 {parameter}")
            load_boolean(w, argument, parameter)
            continue
        kind = "u64" if pointer else REGISTERS[argument.type][1].replace("s", "u")
        declared.append(f"\t.param .{kind} {parameter}")
        if many and not pointer:
            w.scalars[argument] = kind, parameter
            continue
        register = w.define(argument)
        w.line(f"ld.param.{kind} {register}, [{parameter}]")
        if pointer:
            w.line(f"cvta.to.global.u64 {register}, {register}")
    return declared


def print_report(w: Writer, function: llvm.FuncOp) -> str:
    """
    Let waits in vain be reported, in the words for messages or in a variable of the module. Returns
    the declaration of the variable.
    """
    block, facts = function.body.block, known_launch_facts(function.parent_op())
    if facts is not None and facts.has_messages:
        w.report = w.use(block.args[MESSAGE_WORDS])
        return ""
    if not any(isinstance(op, nvvm.MbarrierTryWaitParityOp) for op in block.walk()):
        return ""
    report = report_symbol(function.sym_name.data)
    w.report = w.register(i64)
    w.line(f"mov.u64 {w.report}, {report}")
    return f".visible .global .align 8 .u64 {report};\n\n"


def header_of(function: llvm.FuncOp, parameters: Sequence[str]) -> str:
    """The name, the declared parameters, and the shape of the launch of a kernel."""
    shape = ", ".join(map(str, numbers_of(function, "nvvm.maxntid")))
    (occupancy,) = numbers_of(function, "nvvm.minctasm")
    grouped = ""
    if clusters := numbers_of(function, "nvvm.cluster_dim"):
        grouped = f".explicitcluster\n.reqnctapercluster {', '.join(map(str, clusters))}\n"
    return (
        f".visible .entry {symbol(function.sym_name.data)}(\n" + ",\n".join(parameters) + "\n)\n"
        f".maxntid {shape}\n.minnctapersm {occupancy}\n{grouped}"
    )


def print_kernel(
    function: llvm.FuncOp, functions: dict[str, tuple[str, int]], *, bound_waits: bool
) -> str:
    """The text of a whole kernel. `functions` gets the called library functions."""
    w = Writer(TABLE)
    w.functions = functions
    parameters = print_parameters(w, function)
    declared = print_report(w, function) if bound_waits else ""
    w.loads_to_set = loads_to_set(function)
    w.print_block(function.body.block)
    registers = "\n".join(
        f"\t.reg .{kind} {prefix}<{w.counts[prefix] + 1}>;" for prefix, kind in DECLARED.items()
    )
    code = "\n".join(w.lines)
    return f"{declared}{header_of(function, parameters)}{{\n{registers}\n{code}\n}}\n"


SPLIT_BARRIERS: tuple[type[Operation], ...] = (nvvm.MbarrierTryWaitParityOp,)
"""Waits for arrivals, of instruction sets that split barriers."""

OF_CLUSTERS: tuple[type[Operation], ...] = (nvvm.MapaOp, nvvm.ClusterArriveOp)
"""Accesses to other blocks of a cluster, and meetings of these blocks."""


def check_target(functions: Sequence[llvm.FuncOp], arch: Target) -> None:
    """Refuse kernels without an instruction, or room, on an architecture."""
    for function in functions:
        facts = known_launch_facts(function.parent_op())
        if facts is not None:
            check_launch(function, facts)
        taken = 0 if facts is None else facts.shared_bytes.data
        if taken > arch.isa.shared_per_block:
            refuse(
                function,
                f"the kernel takes {taken} bytes of shared memory a block, and {arch.name} has "
                f"{arch.isa.shared_per_block}; compile for the GPU (arch={arch.name})",
            )
    missing = () if arch.isa.splits_barriers else SPLIT_BARRIERS
    missing += () if arch.isa.has_clusters else OF_CLUSTERS
    found = (op for function in functions for op in function.walk()) if missing else ()
    for op in found:
        if type(op) in missing:
            refuse(
                op,
                f"{arch.name} has no instruction for the synchronisation; use sync=barrier and "
                "tiles of a block, or sync=grid and tiles of the device",
            )


def print_module(
    functions: Sequence[llvm.FuncOp], version: str, target: str, *, bound_waits: bool = False
) -> str:
    """
    A PTX module with these kernels. With `bound_waits`, waits for messages, arrivals and other
    blocks are bounded.
    """
    check_target(functions, target_named(target))
    header = (
        f"//\n// Generated by timetile\n//\n.version {version}\n.target {target}\n.address_size "
        "64\n\n"
        f".extern .shared .align 128 .b8 {SHARED_SYMBOL}[];\n\n"
    )
    called: dict[str, tuple[str, int]] = {}
    kernels = [print_kernel(function, called, bound_waits=bound_waits) for function in functions]
    return header + device_functions(called, target) + "\n".join(kernels)


def kernels_of(module: Operation) -> list[llvm.FuncOp]:
    """The kernels of a module, in order."""
    found: list[llvm.FuncOp] = []
    for op in (op for region in module.regions for block in region.blocks for op in block.ops):
        if isinstance(op, ModuleOp | gpu.ModuleOp):
            found += kernels_of(op)
        elif isinstance(op, llvm.FuncOp) and "nvvm.kernel" in op.attributes:
            found.append(op)
    return found
