// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>/dev/null | filecheck %s --check-prefix=LEFT

// A loop that cannot be raised stays as it is, with a remark that names the operation, its function,
// the fact and the way out. Each case is one loop, and nothing of it is raised.

// LEFT:     builtin.module
// LEFT-NOT: temporal.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @carries_a_number: the time loop is left as it is: it carries a value of type f64; carry stencil.field values only
// CHECK:      scf.for
func.func @carries_a_number(%n: index, %A: !field, %s: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %x = %s) -> (!field, f64) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %a(<[0], [8]>) : !temp to !field
    scf.yield %a, %x : !field, f64
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.yield in @yields_another: the time loop is left as it is: it yields something else than the loop's own fields; yield a rotation of them
// CHECK:      scf.for
func.func @yields_another(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A) -> (!field) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %a(<[0], [8]>) : !temp to !field
    scf.yield %B : !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.yield in @yields_twice: the time loop is left as it is: it yields a field twice; yield each carried field once
// CHECK:      scf.for
func.func @yields_twice(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %b : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      arith.index_cast in @uses_the_time: the time loop is left as it is: it uses the time index; pass what depends on time as a field or unroll it
// CHECK:      scf.for
func.func @uses_the_time(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %i = arith.index_cast %t : index to i64
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// Source injection, for example.
// CHECK:      memref.store in @writes_memory: the time loop is left as it is: it has no place in a raised time loop; move it out of the loop
// CHECK:      scf.for
func.func @writes_memory(%n: index, %A: !field, %source: f64, %memory: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[0], [8]>) : !temp to !field
    memref.store %source, %memory[%c1] : memref<8xf64>
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.combine in @combines: the time loop is left as it is: it has no place in a raised time loop; store what it reads to a field, and load that again
// CHECK:      scf.for
func.func @combines(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.load %B : !field -> !temp
    %w = stencil.combine 0 at 4 lower = (%u : !temp) upper = (%v : !temp) : !temp
    stencil.store %w to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store in @stores_a_load: the time loop is left as it is: it stores a loaded value; store the result of a stencil.apply
// CHECK:      scf.for
func.func @stores_a_load(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %B(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @chains: the time loop is left as it is: it reads the result of stencil.apply directly; store it to a field and load it again
// CHECK:      scf.for
func.func @chains(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    %w = stencil.apply(%x = %v : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %w to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.apply in @reads_a_temp: the time loop is left as it is: it reads the result of an argument directly; store it to a field and load it again
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

// CHECK:      stencil.apply in @forgets: the time loop is left as it is: its result is not stored in the loop; store it to a field
// CHECK:      scf.for
func.func @forgets(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    %w = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>

// CHECK:      stencil.apply in @writes_buffers: the time loop is left as it is: it writes buffers itself; use results and stencil.store
// CHECK:      scf.for
func.func @writes_buffers(%n: index, %A: !field, %B: !field) {
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

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>

// CHECK:      stencil.access in @lower_rank: the time loop is left as it is: it reads a field of rank 1 in a domain of rank 2; give the field all axes
// CHECK:      scf.for
func.func @lower_rank(%n: index, %A: !field, %K: !stencil.field<[0,8]xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %k = stencil.load %K : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %k : !stencil.temp<?xf64>) -> (!temp) {
      %0 = stencil.access %x[_, 0] : !stencil.temp<?xf64>
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0, 0], [8, 8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store_result in @stores_nothing: the time loop is left as it is: it stores nothing; return a value on every path
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

// CHECK:      stencil.return in @unrolled: the time loop is left as it is: it is unrolled; run timetile before stencil-unroll
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

// CHECK:      scf.if in @branches: the time loop is left as it is: it is not supported inside a stencil.apply yet; use arith, math and stencil.access
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

// CHECK:      stencil.dyn_access in @reads_anywhere: the time loop is left as it is: it is not supported inside a stencil.apply yet; use arith, math and stencil.access
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

// CHECK:      stencil.store in @loads_too_early: the time loop is left as it is: it writes a field between its load and the store of what was computed from it; load the field again after the store
// CHECK:      scf.for
func.func @loads_too_early(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v, %w = stencil.apply(%x = %u : !temp) -> (!temp, !temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.addf %0, %0 : f64
      stencil.return %0, %1 : f64, f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
    stencil.store %w to %B(<[0], [4]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// An apply on a field reads it itself.
// CHECK:      stencil.store in @reads_too_early: the time loop is left as it is: it writes a field between its load and the store of what was computed from it; load the field again after the store
// CHECK:      scf.for
func.func @reads_too_early(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = stencil.apply(%x = %A : !field) -> (!temp) {
      %0 = stencil.access %x[0] : !field
      stencil.return %0 : f64
    }
    %w = stencil.apply() -> (!temp) {
      %0 = arith.constant 1.0 : f64
      stencil.return %0 : f64
    }
    stencil.store %w to %A(<[0], [8]>) : !temp to !field
    stencil.store %v to %B(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      stencil.store in @loads_before: the time loop is left as it is: it writes a field that was loaded before the loop; load it inside
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

// CHECK:      scf.for in @unknown_bounds: the time loop is left as it is: expected a field with static bounds, got !stencil.field<?xf64>; cast the field to static bounds
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

!field = !stencil.field<[0,8]xf16>
!temp = !stencil.temp<?xf16>

// CHECK:      scf.for in @half_floats: the time loop is left as it is: it has a field of f16; use f32 or f64
// CHECK:      scf.for
func.func @half_floats(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f16
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @outer_name: the time loop is left as it is: it uses a carried field by its outer name; use the loop's argument
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

// CHECK:      scf.for in @one_field_twice: the time loop is left as it is: two of its buffers are one field; give each its own
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

// CHECK:      scf.for in @one_cast_twice: the time loop is left as it is: two of its buffers are one field; give each its own
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

// CHECK:      arith.fptosi in @eighth_of_a_cell: the time loop is left as it is: a cell has no values of i8; use f64, f32, i64, i32, i1 or index
// CHECK:      scf.for
func.func @eighth_of_a_cell(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.fptosi %0 : f64 to i8
      %2 = arith.sitofp %1 : i8 to f64
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

// CHECK:      arith.sitofp in @counts_with_booleans: the time loop is left as it is: it takes i1 for a number; use arith.andi, ori, xori, select, extui or uitofp
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

// CHECK:      arith.trunci in @cuts_to_a_boolean: the time loop is left as it is: it makes an i1 of a number; use arith.cmpi or arith.cmpf
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

// CHECK:      stencil.index in @third_axis: the time loop is left as it is: it names axis 2 of 1; the first is 0
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

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// What the update's own verifier says.
// CHECK:      scf.for in @in_place: the time loop is left as it is: an update may read its own target at offset 0 only, got [-1]
// CHECK:      scf.for
func.func @in_place(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[-1] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[1], [8]>) : !temp to !field
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
