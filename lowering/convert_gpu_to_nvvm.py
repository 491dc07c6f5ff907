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
Arithmetic and control flow stay unchanged. A mask stays an i1, printed as a predicate in PTX. In
shared memory, the part of an index constant in a loop is added to the pointer ahead of the loop: an
integer instruction beside the arithmetic costs a step as much as an operation of a cell, or twice
as much. Loops that wait for other warps are an exception: other warps fill the wait, and registers
are worth more than instructions.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects import arith, gpu, llvm, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from timetile.dialects import nvvm, simt
from timetile.dialects.simt import (
    CELL_BYTES,
    CLUSTER_SPACE,
    SHARED_SPACE,
    address_space,
    buffer_element,
    cell_count,
)
from timetile.dialects.tile import LANES
from timetile.passes.analysis.cells.constants import integer_constant
from timetile.passes.diagnostics import refuse

FULL_WARP = -1
SUSPENDED_NANOSECONDS = 1_000_000
"""The operand of MLIR's wait: most nanoseconds of sleep before a thread looks again."""
DYNAMIC_INDEX = -(1 << 31)
"""LLVM's mark for an index given as an operand."""
FARTHEST_OFFSET = 1 << 31
"""Bytes from which an access has no constant offset: PTX has 32 bits."""


def pointer_type(pointer: SSAValue) -> llvm.LLVMPointerType:
    """The type of a pointer value."""
    assert isinstance(pointer.type, llvm.LLVMPointerType)
    return pointer.type


def defined_outside(value: SSAValue, block: Block) -> Operation | None:
    """The operation making a value in a block other than `block`; otherwise None."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and owner.parent is not block else None


def waits_in_loop(function: gpu.FuncOp) -> bool:
    """A loop of the function waits for other warps."""
    loops = (op for op in function.walk() if isinstance(op, scf.ForOp))
    return any(isinstance(op, gpu.BarrierOp | simt.WaitOp) for loop in loops for op in loop.walk())


def stands_before(first: Operation, second: Operation) -> bool:
    """
    Whether an operation stands before another operation in its block, or before the operation
    around the other.
    """
    assert first.parent is not None
    beside = first.parent.find_ancestor_op_in_block(second)
    return beside is not None and first.is_before_in_block(beside)


def multiple_of(index: SSAValue) -> tuple[SSAValue, int]:
    """A value and the constant factor behind a 32-bit index."""
    product = index.owner
    if isinstance(product, arith.MuliOp) and index.type == i32:
        count = integer_constant(product.rhs)
        if count is not None and count > 0:
            return product.lhs, count
    return index, 1


class FunctionConverter:
    """Converts one gpu.func; pointers are computed once per block."""

    def __init__(self, function: gpu.FuncOp):
        self.function = function
        self.entry = function.body.block
        self.pointers: dict[tuple[Block, SSAValue, SSAValue], SSAValue] = {}
        self.elements: dict[SSAValue, Attribute] = {}
        self.integers: dict[int, SSAValue] = {}
        self.waits = waits_in_loop(function)
        self.words: dict[SSAValue, int] = {}
        """Cells of buffers: for arrivals, one or two."""

    def int(self, value: int) -> SSAValue:
        """A 32-bit constant at the head of the function."""
        if value not in self.integers:
            constant = arith.ConstantOp(IntegerAttr(value, i32))
            assert self.entry.first_op is not None
            self.entry.insert_op_before(constant, self.entry.first_op)
            self.integers[value] = constant.result
        return self.integers[value]

    def convert_buffers(self) -> None:
        """Turn buffers into pointers, and remember the types of elements."""
        for block in self.function.body.blocks:
            for argument in block.args:
                self.convert_buffer(argument)
        for op in self.function.walk():
            if isinstance(op, simt.SharedOp):
                self.convert_buffer(op.result)

    def convert_indices(self) -> None:
        """Give arguments of type index 64 bits, with casts for their users."""
        for argument in self.entry.args:
            if isinstance(argument.type, IndexType):
                new = Rewriter.replace_value_with_new_type(argument, i64)
                uses = list(new.uses)
                cast = arith.IndexCastOp(new, IndexType())
                for use in uses:
                    use.operation.operands[use.index] = cast.result
                Rewriter.insert_op(cast, InsertPoint.at_start(self.entry))

    def convert_buffer(self, value: SSAValue) -> None:
        """Turn a buffer into a pointer."""
        element = buffer_element(value)
        if element is not None:
            pointer = llvm.LLVMPointerType(IntAttr(address_space(value)))
            self.elements[value] = element
            count = cell_count(value.type)
            new = Rewriter.replace_value_with_new_type(value, pointer)
            self.elements[new] = element
            self.words[new] = count

    def pointer(self, op: Operation, buffer: SSAValue, index: SSAValue | None) -> SSAValue:
        """
        `buffer + index`, computed once in the block of `op`. In shared memory, the part constant in
        a loop is computed ahead of the loop, unless warps wait for each other in the loop.
        """
        if index is None:
            return buffer
        block = op.parent
        assert block is not None
        if address_space(buffer) != SHARED_SPACE or self.waits:
            return self.pointer_in(block, buffer, index, InsertPoint.before(op))
        if (known := defined_outside(index, block)) is not None:
            return self.pointer_behind(known, buffer, index)
        total = index.owner
        if isinstance(total, arith.AddiOp):
            for fixed, other in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
                if (known := defined_outside(fixed, block)) is not None:
                    buffer, index = self.pointer_behind(known, buffer, fixed), other
                    break
        return self.pointer_in(block, buffer, index, InsertPoint.before(op))

    def pointer_behind(self, known: Operation, buffer: SSAValue, index: SSAValue) -> SSAValue:
        """
        `buffer + index`, computed at the first place with both: the operation makes the index in a
        block around the access.
        """
        later, own = known, buffer.owner
        if isinstance(own, Operation) and stands_before(known, own):
            later = own
        assert later.parent is not None
        return self.pointer_in(later.parent, buffer, index, InsertPoint.after(later))

    def pointer_in(
        self, block: Block, buffer: SSAValue, index: SSAValue, place: InsertPoint
    ) -> SSAValue:
        """
        `buffer + index`, made once in a block. A multiple of a constant counts arrays of so many
        cells.
        """
        key = (block, buffer, index)
        if key not in self.pointers:
            element = self.elements[buffer]
            cells, count = multiple_of(index)
            kind = element if count == 1 else llvm.LLVMArrayType(count, element)
            gep = llvm.GEPOp(buffer, [DYNAMIC_INDEX], kind, [cells], pointer_type(buffer))
            Rewriter.insert_op(gep, place)
            self.pointers[key] = gep.result
            self.elements[gep.result] = element
        return self.pointers[key]

    def nearer(
        self, op: Operation, base: SSAValue, offset: int, element: Attribute
    ) -> tuple[SSAValue, int]:
        """An equal place by an allowed offset of an access, in elements."""
        if abs(offset) * CELL_BYTES[element] < FARTHEST_OFFSET:
            return base, offset
        index = arith.ConstantOp(IntegerAttr(offset, i64))
        gep = llvm.GEPOp(base, [DYNAMIC_INDEX], element, [index.result], pointer_type(base))
        Rewriter.insert_op([index, gep], InsertPoint.before(op))
        return gep.result, 0

    def place(
        self, op: simt.LoadOp | simt.StoreOp | simt.OverrideOp | simt.PrefetchOp
    ) -> tuple[SSAValue, int]:
        """The pointer of an access, and the offset from the pointer."""
        pointer = self.pointer(op, op.buffer, op.index)
        return self.nearer(op, pointer, op.offset.value.data, self.elements[op.buffer])

    def constant_pointer(
        self, op: Operation, base: SSAValue, offset: int, element: Attribute
    ) -> SSAValue:
        """`base + offset`, in elements."""
        base, offset = self.nearer(op, base, offset, element)
        if offset == 0:
            return base
        gep = llvm.GEPOp(base, [offset], element, [], pointer_type(base))
        Rewriter.insert_op(gep, InsertPoint.before(op))
        return gep.result

    # One method an operation.

    def convert_load(self, op: simt.LoadOp) -> None:
        """Convert a load."""
        if op.index is not None:
            pointer, offset = self.place(op)
            new = simt.LoadOp(pointer, None, offset, list(op.cells.types), op.mask)
            Rewriter.replace_op(op, new)

    def convert_store(self, op: simt.StoreOp) -> None:
        """Convert a store."""
        if op.index is not None:
            pointer, offset = self.place(op)
            new = simt.StoreOp(list(op.cells), pointer, None, offset, op.mask)
            Rewriter.replace_op(op, new)

    def convert_override(self, op: simt.OverrideOp) -> None:
        """Convert an override."""
        assert op.mask is not None
        if op.index is not None:
            pointer, offset = self.place(op)
            new = simt.OverrideOp(list(op.cells), pointer, None, offset, op.mask)
            Rewriter.replace_op(op, new)

    def convert_prefetch(self, op: simt.PrefetchOp) -> None:
        """Convert a prefetch."""
        if op.index is not None:
            pointer, offset = self.place(op)
            new = simt.PrefetchOp(pointer, None, offset, op.cell, op.mask)
            Rewriter.replace_op(op, new)

    def convert_copy(self, op: simt.CopyAsyncOp) -> None:
        """Convert an asynchronous copy."""
        element = self.elements[op.target]
        target = self.pointer(op, op.target, op.target_index)
        source = self.pointer(op, op.source, op.source_index)
        target = self.constant_pointer(op, target, op.target_offset.value.data, element)
        source = self.constant_pointer(op, source, op.source_offset.value.data, element)
        size = op.bytes.value.data
        taken: SSAValue | None = None
        if op.mask is not None:
            select = arith.SelectOp(op.mask, self.int(size), self.int(0))
            Rewriter.insert_op(select, InsertPoint.before(op))
            taken = select.result
        Rewriter.replace_op(op, nvvm.CpAsyncOp(target, source, size, taken))

    def convert_shuffle(self, op: simt.ShuffleOp) -> None:
        """Convert a shuffle, in halves for a 64-bit value."""
        delta = op.delta.value.data
        kind, clamp = ("up", 0) if delta < 0 else ("down", 31)
        mask, distance, bound = self.int(FULL_WARP), self.int(abs(delta)), self.int(clamp)

        def shuffle(value: SSAValue) -> nvvm.ShflSyncOp:
            return nvvm.ShflSyncOp(mask, value, distance, bound, kind)

        if CELL_BYTES[op.value.type] == 4:
            Rewriter.replace_op(op, shuffle(op.value))
            return
        split = simt.SplitOp(op.value)
        low, high = shuffle(split.low), shuffle(split.high)
        join = simt.JoinOp(low.res, high.res, op.value.type)
        Rewriter.replace_op(op, [split, low, high, join], [join.result])

    def convert_uniform(self, op: simt.UniformOp) -> None:
        """The result of a reduction over the warp lies in a uniform register."""
        Rewriter.replace_op(op, nvvm.ReduxSyncOp(op.value, self.int(FULL_WARP), "min"))

    def convert_all(self, op: simt.AllOp) -> None:
        """Convert a vote."""
        Rewriter.replace_op(op, nvvm.VoteSyncOp(self.int(FULL_WARP), op.value, "all"))

    def convert_id(
        self, op: gpu.ThreadIdOp | gpu.BlockIdOp, register: nvvm.SpecialRegisterOp
    ) -> None:
        """Convert a thread's or a block's number."""
        if op.dimension.data != DimensionEnum.X:
            refuse(op, "kernels are one-dimensional; use dimension x")
        Rewriter.insert_op(register, InsertPoint.before(op))
        for use in list(op.result.uses):
            cast = use.operation
            if not (isinstance(cast, arith.IndexCastOp) and cast.result.type == i32):
                refuse(op, "thread and block numbers are used as i32; cast them")
            cast.result.replace_all_uses_with(register.res)
            Rewriter.erase_op(cast)
        Rewriter.erase_op(op)

    def convert_thread_id(self, op: gpu.ThreadIdOp) -> None:
        """Convert the number of a thread."""
        self.convert_id(op, nvvm.ThreadIdXOp())

    def convert_block_id(self, op: gpu.BlockIdOp) -> None:
        """Convert the number of a block."""
        self.convert_id(op, nvvm.BlockIdXOp())

    def convert_barrier(self, op: gpu.BarrierOp) -> None:
        """Convert a barrier of a block."""
        Rewriter.replace_op(op, nvvm.BarrierOp())

    def convert_expect(self, op: simt.ExpectOp) -> None:
        """
        Initialise all words, and two words so that other blocks see them, too. Every thread
        arrives.
        """
        count, words = self.int(op.warps.value.data * LANES), self.words[op.arrivals]
        for word in range(words):
            where = self.constant_pointer(op, op.arrivals, word, i64)
            Rewriter.insert_op(nvvm.MbarrierInitOp(where, count), InsertPoint.before(op))
        if words > 1:
            Rewriter.insert_op(nvvm.FenceMbarrierInitOp(), InsertPoint.before(op))
        Rewriter.erase_op(op)

    def word_of(self, op: Operation, arrivals: SSAValue, phase: SSAValue) -> SSAValue:
        """Where a phase is counted."""
        if self.words[arrivals] == 1:
            return arrivals
        turn = arith.AndIOp(phase, self.int(1))
        Rewriter.insert_op(turn, InsertPoint.before(op))
        gep = llvm.GEPOp(arrivals, [DYNAMIC_INDEX], i64, [turn.result], pointer_type(arrivals))
        Rewriter.insert_op(gep, InsertPoint.before(op))
        return gep.result

    def convert_arrive(self, op: simt.ArriveOp) -> None:
        """Convert an arrival."""
        word = self.word_of(op, op.arrivals, op.phase)
        if op.bytes is None:
            Rewriter.replace_op(op, nvvm.MbarrierArriveOp(word), [])
        else:
            Rewriter.replace_op(op, nvvm.MbarrierArriveExpectTxOp(word, op.bytes))

    def convert_wait(self, op: simt.WaitOp) -> None:
        """Convert a wait. Phases take turns on a word, and one bit tells them apart."""
        word, turn = self.word_of(op, op.arrivals, op.phase), op.phase
        if self.words[op.arrivals] == 2:
            shift = arith.ShRUIOp(turn, self.int(1))
            Rewriter.insert_op(shift, InsertPoint.before(op))
            turn = shift.result
        parity = arith.AndIOp(turn, self.int(1))
        ticks = self.int(SUSPENDED_NANOSECONDS)
        wait = nvvm.MbarrierTryWaitParityOp(word, parity.result, ticks)
        Rewriter.replace_op(op, [parity, wait])

    def convert_cluster_barrier(self, op: simt.ClusterBarrierOp) -> None:
        """Convert a barrier of a cluster."""
        Rewriter.replace_op(op, [nvvm.ClusterArriveOp(), nvvm.ClusterWaitOp()])

    def convert_peer(self, op: simt.PeerOp) -> None:
        """Convert an address in another block of the cluster."""
        peer = nvvm.MapaOp(op.buffer, op.rank, llvm.LLVMPointerType(IntAttr(CLUSTER_SPACE)))
        self.elements[peer.res], self.words[peer.res] = (
            self.elements[op.buffer],
            self.words[op.buffer],
        )
        Rewriter.replace_op(op, peer)

    def convert_send(self, op: simt.SendOp) -> None:
        """Convert a send."""
        pointer = op.buffer if op.index is None else self.pointer(op, op.buffer, op.index)
        word = self.word_of(op, op.arrivals, op.phase)
        offset = op.offset.value.data
        new = simt.SendOp(list(op.cells), pointer, None, offset, op.mask, word, op.phase)
        Rewriter.replace_op(op, new)

    def convert_post(self, op: simt.PostOp) -> None:
        """Convert a post."""
        if op.index is not None:
            pointer = self.pointer(op, op.buffer, op.index)
            new = simt.PostOp(list(op.cells), pointer, None, op.places, op.number)
            Rewriter.replace_op(op, new)

    def convert_take(self, op: simt.TakeOp) -> None:
        """Convert a take."""
        if op.index is not None:
            pointer = self.pointer(op, op.buffer, op.index)
            new = simt.TakeOp(pointer, None, op.places, op.number, list(op.cells.types))
            Rewriter.replace_op(op, new)

    def convert_tile_barrier(self, op: simt.TileBarrierOp) -> None:
        """Convert a barrier of a tile."""
        if op.index is not None:
            pointer = self.pointer(op, op.words, op.index)
            new = simt.TileBarrierOp(pointer, None, op.number, op.blocks.value.data)
            Rewriter.replace_op(op, new)

    def convert_return(self, op: gpu.ReturnOp) -> None:
        """Convert a return."""
        Rewriter.replace_op(op, llvm.ReturnOp())

    def convert(self) -> None:
        """Convert the whole function in one sweep."""
        self.convert_buffers()
        self.convert_indices()
        table: dict[type[Operation], Callable[..., None]] = {
            simt.LoadOp: self.convert_load,
            simt.StoreOp: self.convert_store,
            simt.OverrideOp: self.convert_override,
            simt.PrefetchOp: self.convert_prefetch,
            simt.CopyAsyncOp: self.convert_copy,
            simt.ShuffleOp: self.convert_shuffle,
            simt.UniformOp: self.convert_uniform,
            simt.AllOp: self.convert_all,
            simt.PhaseOp: Rewriter.erase_op,
            simt.ExpectOp: self.convert_expect,
            simt.ArriveOp: self.convert_arrive,
            simt.WaitOp: self.convert_wait,
            simt.ClusterBarrierOp: self.convert_cluster_barrier,
            simt.PeerOp: self.convert_peer,
            simt.SendOp: self.convert_send,
            simt.PostOp: self.convert_post,
            simt.TakeOp: self.convert_take,
            simt.TileBarrierOp: self.convert_tile_barrier,
            gpu.ThreadIdOp: self.convert_thread_id,
            gpu.BlockIdOp: self.convert_block_id,
            gpu.BarrierOp: self.convert_barrier,
            gpu.ReturnOp: self.convert_return,
        }
        for op in list(self.function.walk()):
            if (converter := table.get(type(op))) is not None:
                converter(op)


def convert_function(function: gpu.FuncOp, occupancy: int, cluster: int, *, reports: bool) -> None:
    """
    Replace a gpu.func by the llvm.func of a kernel. The last argument but one may take reports.
    """
    FunctionConverter(function).convert()
    assert function.known_block_size is not None
    block = tuple(function.known_block_size.get_values())
    body = function.detach_region(function.body)
    more: dict[str, Attribute] = {}
    if cluster > 1:
        more["nvvm.cluster_dim"] = DenseArrayBase.from_list(i32, [cluster, 1, 1])
    if reports:
        more["timetile.report"] = IntegerAttr(len(body.block.args) - 2, i32)
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


def count_of(module: gpu.ModuleOp, fact: str) -> int:
    """A number of the launch stated by a module; 1 by default."""
    value = module.attributes.get(f"timetile.{fact}")
    return value.value.data if isinstance(value, IntegerAttr) else 1


class ConvertGpuToNvvmPass(ModulePass):
    """Convert every kernel; see the module's documentation."""

    name = "convert-gpu-to-nvvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for module in [m for m in op.ops if isinstance(m, gpu.ModuleOp)]:
            occupancy = count_of(module, "occupancy")
            cluster = count_of(module, "cluster")
            reports = count_of(module, "apart") > 1
            for function in [f for f in module.body.block.ops if isinstance(f, gpu.FuncOp)]:
                if function.kernel is not None:
                    convert_function(function, occupancy, cluster, reports=reports)
