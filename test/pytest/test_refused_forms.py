"""Forms that programs of other tools have, each refused in a sentence with a way out and a line."""

from __future__ import annotations

import numpy as np
import pytest

import timetile
from timetile.passes.diagnostics import CompileError
from timetile.runtime.program.compiled_program import Executor

HEAD = """
!field = !stencil.field<[0,16]xf64>
!temp = !stencil.temp<?xf64>
"""

POINTER = """
func.func @f(%z: f64) {
  %p = arith.constant 140000000 : i64
  %ptr = llvm.inttoptr %p : i64 to !llvm.ptr
  %A = stencil.external_load %ptr : !llvm.ptr -> !field
  stencil.apply(%x = %z : f64) outs (%A : !field) {
    stencil.return %x : f64
  } to <[0], [16]>
  return
}
"""

REDUCED = """
func.func @f(%A: !field, %B: !field, %z: f64) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp, %i = %z : f64) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    stencil.reduce %l init %i {
    ^bb0(%p: f64, %q: f64):
      %s = arith.addf %p, %q : f64
      stencil.yield %s : f64
    } : f64
    stencil.return %l : f64
  }
  stencil.store %v to %B(<[0], [16]>) : !temp to !field
  return
}
"""

EXTENTS = """
func.func @f(%A: memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %A[%i, %c1] : memref<?x?xf64>
    memref.store %x, %A[%i, %c0] : memref<?x?xf64>
  }
  return
}
"""

VIEW = """
!part = memref<16xf64, strided<[1], offset: ?>>
func.func @f(%d: memref<4x16xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %dk = memref.subview %d[%k, 0] [1, 16] [1, 1] : memref<4x16xf64> to !part
    %fk = stencil.external_load %dk : !part -> !field
    %x = stencil.load %fk : !field -> !temp
    %r = stencil.apply(%y = %x : !temp) -> (!temp) {
      %v = stencil.access %y[0] : !temp
      stencil.return %v : f64
    }
    stencil.store %r to %fk(<[0], [16]>) : !temp to !field
  }
  return
}
"""

BOUNDS = """
func.func @f(%A: !stencil.field<?xf64>, %B: !field) {
  %u = stencil.load %A : !stencil.field<?xf64> -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[-1] : !temp
    stencil.return %l : f64
  }
  stencil.store %v to %B(<[1], [16]>) : !temp to !field
  return
}
"""

GLOBAL = """
memref.global "private" @table : memref<18xf64> = dense<0.0>
"""

RESULTS = """
func.func @f(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v, %w = stencil.apply(%x = %u : !temp) -> (!temp, !temp) {
    %l = stencil.access %x[0] : !temp
    %r = stencil.access %x[1] : !temp
    stencil.return %l, %r : f64, f64
  }
  %s = stencil.apply(%x = %v : !temp, %y = %w : !temp) -> (!temp) {
    %l = stencil.access %x[1] : !temp
    %r = stencil.access %y[0] : !temp
    %q = arith.addf %l, %r : f64
    stencil.return %q : f64
  }
  stencil.store %s to %B(<[0], [15]>) : !temp to !field
  return
}
"""

CARRIED = """
func.func @f(%A: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %u) -> (!temp) {
    %y = stencil.apply(%x = %a : !temp) -> (!temp) {
      %l = stencil.access %x[SHIFT] : !temp
      %m = arith.addf %l, %l : f64
      stencil.return %m : f64
    }
    scf.yield %y : !temp
  }
  stencil.store %r to %A(<[0], [16]>) : !temp to !field
  return
}
"""

AFFINE = """
#least = affine_map<() -> (17, 18)>
func.func @f(%A: memref<18xf64>, %B: memref<18xf64>) {
  affine.for %i = 1 to min #least() {
    %l = affine.load %A[%i] : memref<18xf64>
    affine.store %l, %B[%i] : memref<18xf64>
  }
  return
}
"""

SWAPPED = """
func.func @f(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    "dmp.swap"(%a) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x1>, false>, swaps = []}
      : (!field) -> ()
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      stencil.return %l : f64
    }
    stencil.store %v to %b(<[1], [16]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
"""

STORE = "    stencil.store %v to %b(<[1], [16]>) : !temp to !field\n"

SEVERAL_BOXES = SWAPPED.replace(STORE, STORE + STORE.replace("16", "15"))

REFUSED = {
    "a loop that carries a value": (
        CARRIED.replace("SHIFT", "-1"),
        "stencil.store in @f (<program>:17): the operation is left unchanged: it reads a value of "
        "scf.for; read a stencil.load or a stencil.apply, and let loops carry fields, with a store "
        "in every step",
    ),
    "a loop to the least of several numbers": (
        AFFINE,
        "affine.for in @f (<program>:7): the loop is left unchanged: a bound is the least or the "
        "greatest of several numbers; give the loop one number for each bound",
    ),
    "parts of ranks with several boxes": (
        SEVERAL_BOXES,
        "stencil.store in @f (<program>:17): a rank stores the cells [1, 15) here, and [1, 16) "
        "elsewhere, and the domain of all ranks is unknown; give the program before "
        "distribute-stencil",
    ),
    "a number taken for a pointer": (
        POINTER,
        "llvm.inttoptr in @f (<program>:7): it makes a pointer of a number, and the memory behind "
        "is unknown; make the memory an argument: a field, a memref or a pointer",
    ),
    "cells reduced to a number": (
        REDUCED,
        "stencil.reduce in @f (<program>:9): the operation is left unchanged: the operation has no "
        "result, and cells are not reduced to a number; store the values in a field, and write "
        "temporal.reduce of the field behind the time loop",
    ),
    "open extents": (
        EXTENTS,
        "memref.store in @f (<program>:11): the extents of a memref are open (memref<?x?xf64>), "
        "and no loop of constant bounds over its cells tells them; give the memref's type all "
        "extents",
    ),
    "a view of a memref": (
        VIEW,
        "memref.subview in @f (<program>:10): it makes a view of a part of a memref, and fields "
        "are whole memrefs; make the part an argument, or the levels an axis of a field",
    ),
    "unknown bounds": (
        BOUNDS,
        "<program>:6: a field here has unknown bounds; give them, as in "
        "!stencil.field<[0,64]x[0,64]xf64>",
    ),
    "a form of MLIR that xDSL does not read": (
        GLOBAL,
        "<program>:5: memref.global is read in its generic form only; print the program with "
        "`mlir-opt --mlir-print-op-generic`",
    ),
    "results with boxes of their own": (
        RESULTS,
        "stencil.apply in @f (<program>:7): the operation is left unchanged: box and offset [1] "
        "reach [1, 17) along axis 0, outside the field's [0, 16); the results of a stencil.apply "
        "are computed over one box: compute them in an apply each, give the field these cells, or "
        "store fewer",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_is_refused_with_its_line_and_a_way_out(name: str):
    text, said = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        timetile.compile(HEAD + text, cache=False)
    assert str(caught.value) == said


INVALID = {
    "scf.reduce(%x, %x : f64)": "1 types for 2 values",
    "%o = memref.atomic_rmw addf %x, %A[%i, %i] : (f64, memref<16xf64>) -> f64": (
        "2 indices for 1 axes"
    ),
    "%y = memref.load %A[%i, %i] : memref<16xf64>": "expected an index for each dimension",
    "cf.br ^next\n^next:": "one block expected in a parallel loop",
}


@pytest.mark.parametrize("line", INVALID)
def test_an_invalid_operation_of_a_parallel_loop_is_named(line: str):
    text = f"""
      func.func @f(%A: memref<16xf64>, %n: index) {{
        scf.parallel (%i) = (%n) to (%n) step (%n) {{
          %x = memref.load %A[%i] : memref<16xf64>
          {line}
        }}
        return
      }}"""
    with pytest.raises(CompileError, match="is not a valid program: ") as caught:
        timetile.compile(text, cache=False)
    assert INVALID[line] in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("stencil.index 1 <[0]>", "it names axis 1 of 1; the first is 0"),
        ("stencil.index -1 <[0]>", "it names axis -1 of 1; the first is 0"),
        (
            "stencil.index 0 <[0, 0]>",
            "cells have 1 axes, and its offset has 2; give a number for each axis",
        ),
    ],
)
def test_an_axis_that_cells_do_not_have_is_refused(operation: str, said: str):
    text = f"""
      func.func @f(%A: !field, %k: index) {{
        %v = stencil.apply(%b = %k : index) -> (!temp) {{
          %i = {operation}
          %c = arith.cmpi slt, %i, %b : index
          %x = arith.uitofp %c : i1 to f64
          stencil.return %x : f64
        }}
        stencil.store %v to %A(<[0], [16]>) : !temp to !field
        return
      }}"""
    with pytest.raises(CompileError) as caught:
        timetile.compile(HEAD + text, cache=False)
    assert str(caught.value) == f"stencil.index in @f (<program>:7): {said}"


@pytest.mark.parametrize("region", ["", "scf.if %c {"])
def test_a_value_used_above_its_definition_is_refused(region: str):
    text = f"""
      func.func @f(%A: memref<16xf64>, %c: i1, %n: index) {{
        memref.store %x, %A[%n] : memref<16xf64>
        {region}
        %x = arith.constant 1.0 : f64
        {region and "}"}
        return
      }}"""
    with pytest.raises(CompileError) as caught:
        timetile.compile(text, cache=False)
    assert str(caught.value) == (
        "memref.store in @f (<program>:3): %x is used above its definition, or outside of the "
        "region of the definition; define each value above its uses"
    )


@pytest.mark.parametrize("text", ["$", "\0"])
def test_a_first_character_of_no_program_is_refused(text: str):
    with pytest.raises(CompileError, match="Unexpected character"):
        timetile.compile(text, cache=False)


def test_a_function_with_several_blocks_is_refused():
    text = """
      func.func @f(%A: memref<16xf64>, %at: i64, %n: index) {
        %p = llvm.inttoptr %at : i64 to !llvm.ptr
        %B = builtin.unrealized_conversion_cast %p : !llvm.ptr to memref<16xf64>
        %x = memref.load %A[%n] : memref<16xf64>
        memref.store %x, %B[%n] : memref<16xf64>
        cf.br ^end
      ^end:
        return
      }"""
    with pytest.raises(CompileError) as caught:
        timetile.compile(text, cache=False)
    assert str(caught.value) == (
        "cf.br in @f (<program>:7): it stays on the host, which cannot run it; keep only time "
        "loops, sweeps, casts, scalar arithmetic, conditions, and memref loads and stores in the "
        "function"
    )


LEVELS = (
    """
!levels = !stencil.field<[0,4]x[0,16]xf64>
!cells = !stencil.temp<?x?xf64>
func.func @f(%A: !levels) {
"""
    + "".join(
        f"""
  %u{k} = stencil.load %A : !levels -> !cells
  %v{k} = stencil.apply(%x = %u{k} : !cells) -> (!cells) {{
    %l = stencil.access %x[0, 0] : !cells
    %b = stencil.access %x[-1, 0] : !cells
    %m = arith.subf %l, %b : f64
    stencil.return %m : f64
  }}
  stencil.store %v{k} to %A(<[{k}, 0], [{k + 1}, 16]>) : !cells to !levels
"""
        for k in (1, 2, 3)
    )
    + "  return\n}\n"
)


@pytest.mark.parametrize("executor", ["cpu", "planes"])
def test_levels_as_an_axis_of_a_field_are_the_way_out_of_views(executor: Executor):
    """What the refusal of a view names: each sweep reads the level written before."""
    a = np.random.default_rng(6).random((4, 16))
    right = a.copy()
    for k in (1, 2, 3):
        right[k] -= right[k - 1]
    timetile.compile(LEVELS, executor=executor, fp_contract="off", cache=False)(a)
    assert a.tobytes() == right.tobytes()


def test_fields_carried_with_a_store_in_every_step_are_the_way_out_of_carried_values():
    """What the refusal of a carried value names."""
    text = CARRIED.replace("(%a = %u) -> (!temp)", "(%a = %A) -> (!field)").replace("SHIFT", "0")
    text = text.replace("  %u = stencil.load %A : !field -> !temp\n", "")
    text = text.replace("    %y =", "    %u = stencil.load %a : !field -> !temp\n    %y =")
    text = text.replace("(%x = %a", "(%x = %u").replace(
        "    scf.yield %y : !temp",
        "    stencil.store %y to %a(<[0], [16]>) : !temp to !field\n    scf.yield %a : !field",
    )
    text = text.replace(
        "  stencil.store %r to %A(<[0], [16]>) : !temp to !field\n  return", "  return"
    )
    a = np.random.default_rng(7).random(16)
    right = a * 8
    timetile.compile(HEAD + text, executor="planes", cache=False)(a, 3)
    assert a.tobytes() == right.tobytes()


def test_swaps_of_one_process_exchange_nothing():
    text = HEAD + SWAPPED.replace("2x1", "1x1")
    a, b = np.arange(16.0), np.arange(16.0)
    timetile.compile(text, executor="planes", cache=False)(a, b, 3)
    assert b[1:].tolist() == [0.0, 0.0, *range(13)] and b[0] == 0.0
