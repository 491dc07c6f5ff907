"""Asynchronous copies from global to shared memory."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
)

from timetile.dialects.making import make
from timetile.dialects.nvvm.keywords import KeywordAttr
from timetile.dialects.nvvm.ordering import OrderingOp
from timetile.dialects.simt import OrderingEffects


@irdl_attr_definition
class CacheModifierAttr(KeywordAttr):
    """The caches filled by a copy. Example: `#nvvm.load_cache_modifier<cg>`"""

    name = "nvvm.load_cache_modifier"
    WORDS = ("ca", "cg", "cs", "lu", "cv")

    def __init__(self, word: str):
        super().__init__(StringAttr(word))


@irdl_op_definition
class CpAsyncOp(IRDLOperation):
    """
    Start copying `size` bytes from global to shared memory; only the first `cpSize` are read, the
    rest is zero.

    Example: `"nvvm.cp.async.shared.global"(%dst, %src) <{size = 16 : i32, modifier =
    #nvvm.load_cache_modifier<cg>}> : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()`
    """

    name = "nvvm.cp.async.shared.global"
    dst = operand_def(LLVMPointerType)
    src = operand_def(LLVMPointerType)
    cp_size = opt_operand_def(i32)
    size = prop_def(IntegerAttr)
    modifier = prop_def(CacheModifierAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, dst: SSAValue, src: SSAValue, size: int, cp_size: SSAValue | None = None):
        # Only 16-byte copies can bypass L1.
        properties: dict[str, Attribute] = {
            "size": IntegerAttr(size, i32),
            "modifier": CacheModifierAttr("cg" if size == 16 else "ca"),
        }
        make(self, [dst, src] if cp_size is None else [dst, src, cp_size], properties)


@irdl_op_definition
class CpAsyncCommitGroupOp(OrderingOp):
    """
    Close a group: all copies started since the previous group was closed.

    Example: `"nvvm.cp.async.commit.group"() : () -> ()`
    """

    name = "nvvm.cp.async.commit.group"


@irdl_op_definition
class CpAsyncWaitGroupOp(IRDLOperation):
    """
    Wait until at most `n` of the thread's groups are on their way.

    Example: `"nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()`
    """

    name = "nvvm.cp.async.wait.group"
    n = prop_def(IntegerAttr)
    traits = traits_def(OrderingEffects())

    def __init__(self, pending: int):
        super().__init__(properties={"n": IntegerAttr(pending, i32)})
