"""
The fused multiply-add of arrays by the processor, in a process of many tests.

The executors in Python emulate the operation in some thirty steps of NumPy, a thirtieth of the
tests' time. Tests take machine code instead; `test_fma.py` shows both right by exact arithmetic,
and `make nightly` runs the emulation everywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from timetile.runtime.arithmetic import fma
from timetile.runtime.machine.llvm import binding

Floats = NDArray[np.floating[Any]]
Fused = Callable[[Any, Any, Any], Any]

EMULATED: dict[str, Fused] = {"fma64": fma.fma64, "fma32": fma.fma32}
"""The emulations, by name in their module."""

CODE = """
define void @{name}(ptr %a, ptr %b, ptr %c, ptr %r, i64 %n) {{
entry:
  %some = icmp ne i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr {kind}, ptr %a, i64 %k
  %pb = getelementptr {kind}, ptr %b, i64 %k
  %pc = getelementptr {kind}, ptr %c, i64 %k
  %pr = getelementptr {kind}, ptr %r, i64 %k
  %x = load {kind}, ptr %pa
  %y = load {kind}, ptr %pb
  %z = load {kind}, ptr %pc
  %f = call {kind} @llvm.fma.{suffix}({kind} %x, {kind} %y, {kind} %z)
  store {kind} %f, ptr %pr
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})
"""
"""A loop over contiguous arrays, in LLVM's language."""


@cache
def engine() -> Any:
    """Both loops as machine code, which lives as long as the process."""
    llvm = binding()
    module = llvm.parse_assembly(CODE.format(name="fma64", kind="double", suffix="f64"))
    module.link_in(llvm.parse_assembly(CODE.format(name="fma32", kind="float", suffix="f32")))
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )
    made = llvm.create_mcjit_compiler(module, machine)
    made.finalize_object()
    return made


@cache
def by_processor(name: str) -> Fused:
    """`fma64` or `fma32` of flat contiguous arrays of one length."""
    kinds = (ctypes.c_size_t,) * 5
    call = ctypes.CFUNCTYPE(None, *kinds)(engine().get_function_address(name))

    def fused(a: Floats, b: Floats, c: Floats) -> Floats:
        result = np.empty_like(a)
        places = [x.__array_interface__["data"][0] for x in (a, b, c, result)]
        call(*places, a.size)
        return result

    return fused


def first_call(name: str) -> Fused:
    """`fma64` or `fma32`, made by the first call: a process may need neither."""

    def fused(a: Floats, b: Floats, c: Floats) -> Floats:
        return by_processor(name)(a, b, c)

    return fused


def fuse_by_processor() -> None:
    """Fuse by the processor from now on."""
    for name in EMULATED:
        setattr(fma, name, first_call(name))


@contextmanager
def emulated() -> Generator[None]:
    """Fuse by the emulation, as users' runs do."""
    with pytest.MonkeyPatch.context() as patch:
        for name, emulation in EMULATED.items():
            patch.setattr(fma, name, emulation)
        yield
