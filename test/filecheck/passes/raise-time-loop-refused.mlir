// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>/dev/null | filecheck %s --check-prefix=LEFT

// A loop whose stores cannot be raised stays as it is, with a remark that names the operation, its
// function, the fact and the way out. Each case is a loop, and no part of the loop is raised.

// LEFT:     builtin.module
// LEFT-NOT: temporal.{{[^b]}}


!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @reads_a_temp: the time loop is left unchanged: it reads a value of a block argument; read a stencil.load or a stencil.apply, and let loops carry fields, with a store in every step
// CHECK:      scf.for
func.func @reads_a_temp(%n: index, %A: !field, %u: !temp) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store_result in @stores_nothing: the time loop is left unchanged: it stores nothing; return a value on every path
// CHECK:      scf.for
func.func @stores_nothing(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = stencil.apply() -> (!temp) {
      %0 = "stencil.store_result"() : () -> !stencil.result<f64>
      stencil.return %0 : !stencil.result<f64>
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.return in @unrolled: the time loop is left unchanged: the apply is unrolled; run roll-returns first
// CHECK:      scf.for
func.func @unrolled(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.access %x[1] : !temp
      stencil.return %0, %1 unroll <[2]> : f64, f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.if in @branches: the time loop is left unchanged: the operation is not supported inside a stencil.apply; use arith, math and stencil.access
// CHECK:      scf.for
func.func @branches(%n: index, %A: !field, %flag: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %f = %flag : i1) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = scf.if %f -> (f64) {
        %2 = arith.addf %0, %0 : f64
        scf.yield %2 : f64
      } else {
        scf.yield %0 : f64
      }
      stencil.return %1 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.dyn_access in @reads_anywhere: the time loop is left unchanged: the operation is not supported inside a stencil.apply; use arith, math and stencil.access
// CHECK:      scf.for
func.func @reads_anywhere(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %i = stencil.index 0 <[0]>
      %0 = stencil.dyn_access %x[%i] in <[0]> : <[0]> : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store in @loads_before: the time loop is left unchanged: the loop writes a field loaded before the loop; load the field inside
// CHECK:      scf.for
func.func @loads_before(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  scf.for %t = %c0 to %n step %c1 {
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.addf %0, %0 : f64
      stencil.return %1 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store in @unknown_bounds: the time loop is left unchanged: expected a field with static bounds, got !stencil.field<?xf64>; cast the field to static bounds
// CHECK:      scf.for
func.func @unknown_bounds(%n: index, %A: !field, %B: !stencil.field<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = stencil.apply(%x = %B : !stencil.field<?xf64>) -> (!temp) {
      %0 = stencil.access %x[0] : !stencil.field<?xf64>
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xi4>
!temp = !stencil.temp<?xi4>

// CHECK:      stencil.load in @bytes: the time loop is left unchanged: it has a field of i4; use f64, f32, f16, bf16, i64, i32, i16 or i8
// CHECK:      scf.for
func.func @bytes(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : i4
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.load in @outer_name: the time loop is left unchanged: the loop uses a carried field by the outer name; use the loop's argument
// CHECK:      scf.for
func.func @outer_name(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.yield in @one_field_twice: the time loop is left unchanged: two buffers of the loop are one field; give each buffer a field
// CHECK:      scf.for
func.func @one_field_twice(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %A) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.yield in @one_cast_twice: the time loop is left unchanged: two buffers of the loop are one field; give each buffer a field
// CHECK:      scf.for
func.func @one_cast_twice(%n: index, %A: !stencil.field<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %P = stencil.cast %A : !stencil.field<?xf64> -> !field
  %Q = stencil.cast %A : !stencil.field<?xf64> -> !field
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %P, %b = %Q) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      arith.fptosi in @eighth_of_a_cell: the time loop is left unchanged: a cell has no values of i4; use f64, f32, i64, i32, i1 or index
// CHECK:      scf.for
func.func @eighth_of_a_cell(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.fptosi %0 : f64 to i4
      %2 = arith.sitofp %1 : i4 to f64
      stencil.return %2 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      arith.sitofp in @counts_with_booleans: the time loop is left unchanged: it takes i1 for a number; use arith.andi, ori, xori, select, extui or uitofp
// CHECK:      scf.for
func.func @counts_with_booleans(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.constant 0.0 : f64
      %2 = arith.cmpf olt, %0, %1 : f64
      %3 = arith.sitofp %2 : i1 to f64
      stencil.return %3 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      arith.trunci in @cuts_to_a_boolean: the time loop is left unchanged: it makes an i1 of a number; use arith.cmpi or arith.cmpf
// CHECK:      scf.for
func.func @cuts_to_a_boolean(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.fptosi %0 : f64 to i32
      %2 = arith.trunci %1 : i32 to i1
      %3 = arith.uitofp %2 : i1 to f64
      stencil.return %3 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.index in @third_axis: the time loop is left unchanged: it names axis 2 of 1; the first is 0
// CHECK:      scf.for
func.func @third_axis(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.index 2 <[0]>
      stencil.return %0 : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

// A loop that writes no field is nobody's time loop: it stays, without a remark.
// CHECK-NOT:  the time loop
// CHECK:      func.func @no_time_loop
// CHECK:      scf.for
func.func @no_time_loop(%n: index, %memory: memref<8xf64>, %x: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    memref.store %x, %memory[%t] : memref<8xf64>
  }
  return
}

// -----

// What stands outside a time loop.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @outside: the operation is left unchanged: it reads a value of a block argument; read a stencil.load or a stencil.apply, and let loops carry fields, with a store in every step
// CHECK:      stencil.store
func.func @outside(%A: !field, %u: !temp) {
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    stencil.return %0 : f64
  }
  stencil.store %v to %A(<[0], [8]>) : !temp to !field
  return
}

// -----

// A part of a program that distribute-stencil has cut for several processes.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @distributed: the operation is left unchanged: the operation reads halos of other processes (dmp.swap); run join-parts first
// CHECK:      dmp.swap
func.func @distributed(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %s = "dmp.swap"(%u) {strategy = #dmp.grid_slice_2d<#dmp.topo<2x1>, false>, swaps = []} : (!temp) -> !temp
  %v = stencil.apply(%x = %s : !temp) -> (!temp) {
    %0 = stencil.access %x[-1] : !temp
    stencil.return %0 : f64
  }
  stencil.store %v to %B(<[0], [8]>) : !temp to !field
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store in @made_elsewhere: the time loop is left unchanged: it reads a value that stencil.apply makes in another block; store the value to a field
// CHECK:      scf.for
func.func @made_elsewhere(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    stencil.return %0 : f64
  }
  scf.for %t = %c0 to %n step %c1 {
    stencil.store %v to %B(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>

// CHECK:      stencil.apply in @writes_fields: the time loop is left unchanged: the apply writes fields; run load-fields first
// CHECK:      scf.for
func.func @writes_fields(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    stencil.apply(%x = %A : !field) outs (%B : !field) {
      %0 = stencil.access %x[0] : !field
      stencil.return %0 : f64
    } to <[0], [8]>
  }
  return
}

// -----

// A single cell of the carried field is read by the field's outer name: the field has two names.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      memref.store in @two_names: the time loop is left unchanged: the loop uses a carried field by the outer name; use the loop's argument
// CHECK:      scf.for
func.func @two_names(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = builtin.unrealized_conversion_cast %A : !field to memref<8xf64>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %b(<[0], [8]>) : !temp to !field
    %c = memref.load %m[%c1] : memref<8xf64>
    memref.store %c, %m[%c0] : memref<8xf64>
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,8]xf64>
!values = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @narrow_value: the operation is left unchanged: the value has fewer axes than the reading domain; store the value to a field, and load the field
func.func @narrow_value(%A: !field, %w: !line) {
  %d = stencil.load %w : !line -> !values
  %g = stencil.apply(%x = %d : !values) -> (!values) {
    %a = stencil.access %x[0] : !values
    %m = arith.mulf %a, %a : f64
    stencil.return %m : f64
  }
  %z = stencil.apply(%x = %g : !values) -> (!temp) {
    %a = stencil.access %x[0, _] : !values
    stencil.return %a : f64
  }
  stencil.store %z to %A(<[0, 0], [8, 8]>) : !temp to !field
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store_result in @stores_in_one_branch: the operation is left unchanged: it stores nothing; return a value on every path
func.func @stores_in_one_branch(%A: !field, %p: i1) {
  %d = stencil.load %A : !field -> !temp
  %g = stencil.apply(%x = %d : !temp, %q = %p : i1) -> (!temp) {
    %a = stencil.access %x[0] : !temp
    %r = scf.if %q -> (!stencil.result<f64>) {
      %s = stencil.store_result %a : !stencil.result<f64>
      scf.yield %s : !stencil.result<f64>
    } else {
      %s = stencil.store_result : !stencil.result<f64>
      scf.yield %s : !stencil.result<f64>
    }
    stencil.return %r : !stencil.result<f64>
  }
  stencil.store %g to %A(<[0], [8]>) : !temp to !field
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.load in @boundary_of_words: the operation is left unchanged: boundary is a #temporal.boundary, got "periodic"; write one, or none
func.func @boundary_of_words(%A: !field, %B: !field) {
  %d = stencil.load %A attributes {boundary = "periodic"} : !field -> !temp
  %g = stencil.apply(%x = %d : !temp) -> (!temp) {
    %a = stencil.access %x[-1] : !temp
    stencil.return %a : f64
  }
  stencil.store %g to %B(<[0], [8]>) : !temp to !field
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @two_boundaries: the operation is left unchanged: it reads a field with two boundaries; load the field with one
func.func @two_boundaries(%A: !field, %B: !field) {
  %d = stencil.load %A attributes {boundary = #temporal.boundary<periodic>} : !field -> !temp
  %e = stencil.load %A attributes {boundary = #temporal.boundary<mirror>} : !field -> !temp
  %g = stencil.apply(%x = %d : !temp, %y = %e : !temp) -> (!temp) {
    %a = stencil.access %x[-1] : !temp
    %b = stencil.access %y[-1] : !temp
    %c = arith.addf %a, %b : f64
    stencil.return %c : f64
  }
  stencil.store %g to %B(<[0], [8]>) : !temp to !field
  return
}

// -----

// Cells of 16 bits are computed in f32: other uses, and numbers of 16 bits, have no meaning.

!field = !stencil.field<[0,16]xf16>
!temp = !stencil.temp<?xf16>

// CHECK:      arith.bitcast in @bits_of_a_cell: the operation is left unchanged: it computes with f16, a type of memory; extend cells to f32 by arith.extf, and round results by arith.truncf from f32
func.func @bits_of_a_cell(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    %i = arith.bitcast %l : f16 to i16
    %r = arith.bitcast %i : i16 to f16
    stencil.return %r : f16
  }
  stencil.store %v to %B(<[0], [16]>) : !temp to !field
  func.return
}

// -----

!field = !stencil.field<[0,16]xf16>
!temp = !stencil.temp<?xf16>

// CHECK:      stencil.apply in @a_number_of_16_bits: the operation is left unchanged: it takes a number of f16; give the number as f32
func.func @a_number_of_16_bits(%A: !field, %B: !field, %k: f16) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp, %q = %k : f16) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    %m = arith.mulf %l, %q : f16
    stencil.return %m : f16
  }
  stencil.store %v to %B(<[0], [16]>) : !temp to !field
  func.return
}
