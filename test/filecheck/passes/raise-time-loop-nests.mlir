// RUN: xdsl-opt %s -p 'raise-time-loop{points=true}' --split-input-file 2>&1 | filecheck %s

// The host's work at points becomes functions beside the time loop; work without lists has a remark.

!field = !stencil.field<[0,66]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:       func.func private @shot_lists({{.*}}) -> (!stencil.field<[0,29]xi32>, !stencil.field<[0,4]xf64>, !stencil.field<[0,1024]xf64>,
// CHECK:       func.func private @shot_places(%0: memref<4xi64>, %1: memref<1xi64>,
// CHECK:         scf.for %k
// CHECK:           memref.store %{{.*}}, %0[%{{.*}}] : memref<4xi64>
// CHECK:       func.func private @shot_values(%0: index, %1: index, %2: index, %3: memref<1024xf64>,
// CHECK:         scf.for
// CHECK:           scf.for %k
// CHECK-NOT:         arith.addf
// CHECK:             memref.store %{{.*}}, %3[%{{.*}}] : memref<1024xf64>
// CHECK:       func.func private @shot_steps(
// CHECK:         temporal.loop %0 (%{{.*}}, %{{.*}}) rotate [1, 0] {
// CHECK-NEXT:      temporal.update
// CHECK-SAME:        uses [#temporal.points<inject 0 columns 4 of <[0], [66]>>, #temporal.points<sample 0 columns 1 of <[0], [66]>>]
// CHECK:       func.func private @shot_after(%0: index, %1: index, %2: index, %3: memref<257xf64>,
// CHECK:         scf.for
// CHECK:           memref.load %3
// CHECK:       func.func @shot
// CHECK:         temporal.point_run [@shot_lists, @shot_places, @shot_values, @shot_steps, @shot_after]
// CHECK-SAME:      [#temporal.point_list<inject 1 later 0 in <[1], [65]> of <[0], [66]>>, #temporal.point_list<sample 1 later 1 in <[1], [65]> of <[0], [66]>>]
// CHECK-SAME:      rotate [1, 0](
// CHECK:         scf.for
// CHECK:           temporal.loop %{{.*}} sweep {
func.func @shot(%n: index, %A: !field, %B: !field, %at: memref<4xindex>, %wave: memref<9xf64>, %heard: memref<9xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %b(<[1], [65]>) : !temp to !field
    %new = builtin.unrealized_conversion_cast %b : !field to memref<66xf64>
    %old = builtin.unrealized_conversion_cast %a : !field to memref<66xf64>
    scf.for %k = %zero to %four step %one {
      %i = memref.load %at[%k] : memref<4xindex>
      %f = memref.load %wave[%t] : memref<9xf64>
      %c = memref.load %new[%i] : memref<66xf64>
      %s = arith.addf %c, %f : f64
      memref.store %s, %new[%i] : memref<66xf64>
    }
    %h = memref.load %old[%four] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,66]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      memref.store in @sets: the time loop runs a step at a time: it sets a cell of a field, and points add to cells; add to the old value
// CHECK-NOT:    temporal.point_run
func.func @sets(%n: index, %A: !field, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    memref.store %x, %c[%one] : memref<66xf64>
  }
  return
}

// -----

!field = !stencil.field<[0,66]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      memref.load in @reads_cells: the time loop runs a step at a time: a value added to cells depends on cells of a field; kernels add known values
// CHECK-NOT:    temporal.point_run
func.func @reads_cells(%n: index, %A: !field) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    scf.for %k = %zero to %four step %one {
      %x = memref.load %c[%four] : memref<66xf64>
      %y = memref.load %c[%k] : memref<66xf64>
      %s = arith.addf %y, %x : f64
      memref.store %s, %c[%k] : memref<66xf64>
    }
  }
  return
}

// -----

!field = !stencil.field<[0,66]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @unknown: the time loop runs a step at a time: the number of points is unknown; give the loop constant bounds, or let it read memory of static extents at its counter
// CHECK-NOT:    temporal.point_run
func.func @unknown(%n: index, %m: index, %A: !field, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    scf.for %k = %zero to %m step %one {
      %j = arith.addi %k, %one : index
      %y = memref.load %c[%j] : memref<66xf64>
      %s = arith.addf %y, %x : f64
      memref.store %s, %c[%j] : memref<66xf64>
    }
  }
  return
}

// -----

!field = !stencil.field<[0,66]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      memref.load in @early: the time loop runs a step at a time: cells are read before points add to the field; read behind the additions
// CHECK:      memref.load in @between: the time loop runs a step at a time: an update follows the points; put points last in the step
// CHECK:      scf.for in @moves: the time loop runs a step at a time: places or values of points depend on memory that the loop writes; write other memory
// CHECK-NOT:    temporal.point_run
func.func @early(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %h = memref.load %c[%one] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
    "memref.atomic_rmw"(%x, %c, %one) <{kind = 0 : i64}> : (f64, memref<66xf64>, index) -> f64
  }
  return
}
func.func @between(%n: index, %A: !field, %heard: memref<9xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %h = memref.load %c[%one] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
  }
  return
}
func.func @moves(%n: index, %A: !field, %heard: memref<9xf64>, %at: memref<1xindex>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    scf.for %k = %zero to %one step %one {
      %i = memref.load %at[%k] : memref<1xindex>
      %h = memref.load %c[%i] : memref<66xf64>
      memref.store %h, %heard[%t] : memref<9xf64>
      memref.store %t, %at[%k] : memref<1xindex>
    }
  }
  return
}

// -----

!field = !stencil.field<[0,66]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:      scf.for in @mixed: the time loop runs a step at a time: it adds to cells of a field and writes other memory, too; write two loops
// CHECK:      scf.for in @two_places: the time loop runs a step at a time: it writes cells of a field at two places; write a loop for each
// CHECK:      memref.atomic_rmw in @product: the time loop runs a step at a time: it changes a cell of a field by more than a sum
// CHECK:      scf.for in @carries: the time loop runs a step at a time: the loop over points carries a value; add to memory
// CHECK:      memref.copy in @calls: the time loop runs a step at a time: the work at points holds other operations than accesses and numbers
// CHECK:      scf.for in @counts: the time loop runs a step at a time: the loop over points counts by no index; use type index
// CHECK:      memref.load in @open: the time loop runs a step at a time: the memref has unknown extents; give static extents
// CHECK:      memref.store in @either: the time loop runs a step at a time: the memory may be a field of the loop; give each a name of its own
// CHECK:      scf.for in @moving: the time loop runs a step at a time: places of points depend on cells or on the number of the step; keep places
// CHECK-NOT:    temporal.point_run
func.func @mixed(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    scf.for %k = %zero to %four step %one {
    %y = memref.load %c[%k] : memref<66xf64>
    %s = arith.addf %y, %x : f64
    memref.store %s, %c[%k] : memref<66xf64>
    memref.store %x, %heard[%k] : memref<9xf64>
    }
  }
  return
}
func.func @two_places(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    scf.for %k = %zero to %four step %one {
    %y = memref.load %c[%k] : memref<66xf64>
    %s = arith.addf %y, %x : f64
    memref.store %s, %c[%k] : memref<66xf64>
    %y1 = memref.load %c[%four] : memref<66xf64>
    %s1 = arith.addf %y1, %x : f64
    memref.store %s1, %c[%four] : memref<66xf64>
    }
  }
  return
}
func.func @product(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %z = "memref.atomic_rmw"(%x, %c, %one) <{kind = 9 : i64}> : (f64, memref<66xf64>, index) -> f64
  }
  return
}
func.func @carries(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %z = scf.for %k = %zero to %four step %one iter_args(%h = %x) -> (f64) {
    %y = memref.load %c[%k] : memref<66xf64>
    %s = arith.addf %y, %h : f64
    scf.yield %s : f64
    }
    memref.store %z, %heard[%t] : memref<9xf64>
  }
  return
}
func.func @calls(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    scf.for %k = %zero to %four step %one {
    %y = memref.load %c[%k] : memref<66xf64>
    %s = arith.addf %y, %x : f64
    memref.store %s, %c[%k] : memref<66xf64>
    "memref.copy"(%heard, %heard) : (memref<9xf64>, memref<9xf64>) -> ()
    }
  }
  return
}
func.func @counts(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %a = arith.constant 0 : i64
    %b = arith.constant 1 : i64
    scf.for %k = %a to %b step %b : i64 {
    %y = memref.load %c[%one] : memref<66xf64>
    %s = arith.addf %y, %x : f64
    memref.store %s, %c[%one] : memref<66xf64>
    }
  }
  return
}
func.func @open(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %d = builtin.unrealized_conversion_cast %A : !field to memref<?xf64>
    %h = memref.load %d[%one] : memref<?xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
  }
  return
}
func.func @either(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64, %B: memref<66xf64>, %is: i1) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %m = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
  %p = arith.select %is, %m, %B : memref<66xf64>
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %h = memref.load %c[%one] : memref<66xf64>
    memref.store %h, %p[%t] : memref<66xf64>
  }
  return
}
func.func @moving(%n: index, %A: !field, %heard: memref<9xf64>, %x: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xf64>
    %h = memref.load %c[%t] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
  }
  return
}

// -----

!field = !stencil.field<[0,66]xi32>
!temp = !stencil.temp<?xi32>

// CHECK:      memref.load in @integers: the time loop runs a step at a time: points of cells of i32; use f32 or f64
// CHECK:      memref.load in @unwritten: the time loop runs a step at a time: no update of the step writes the field with points
// CHECK:      scf.for in @driven: the time loop runs a step at a time: updates of a step with points depend on the number of the step; use cells alone
// CHECK:      memref.load in @boxes: the time loop runs a step at a time: fields that take turns have updates of several boxes; use one box
// CHECK-NOT:    temporal.point_run
func.func @integers(%n: index, %A: !field, %heard: memref<9xi32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %A : !field to memref<66xi32>
    %h = memref.load %c[%one] : memref<66xi32>
    memref.store %h, %heard[%t] : memref<9xi32>
  }
  return
}
func.func @unwritten(%n: index, %A: !field, %B: !stencil.field<[0,66]xf64>, %C: !stencil.field<[0,66]xf64>, %heard: memref<9xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %B, %b = %C) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %u = stencil.load %A : !field -> !temp
    stencil.store %u to %A(<[1], [65]>) : !temp to !field
    %c = builtin.unrealized_conversion_cast %a : !stencil.field<[0,66]xf64> to memref<66xf64>
    %h = memref.load %c[%one] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  return
}
func.func @driven(%n: index, %A: !stencil.field<[0,66]xf64>, %wave: memref<9xf64>, %heard: memref<9xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    %f = memref.load %wave[%t] : memref<9xf64>
    %u = stencil.load %A : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>, %g = %f : f64) -> (!stencil.temp<?xf64>) {
      %l = stencil.access %x[0] : !stencil.temp<?xf64>
      %s = arith.addf %l, %g : f64
      stencil.return %s : f64
    }
    stencil.store %v to %A(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    %c = builtin.unrealized_conversion_cast %A : !stencil.field<[0,66]xf64> to memref<66xf64>
    %h = memref.load %c[%one] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
  }
  return
}
func.func @boxes(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>, %heard: memref<9xf64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>) {
    %u = stencil.load %a : !stencil.field<[0,66]xf64> -> !stencil.temp<?xf64>
    stencil.store %u to %b(<[1], [65]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    stencil.store %u to %a(<[2], [64]>) : !stencil.temp<?xf64> to !stencil.field<[0,66]xf64>
    %c = builtin.unrealized_conversion_cast %a : !stencil.field<[0,66]xf64> to memref<66xf64>
    %h = memref.load %c[%one] : memref<66xf64>
    memref.store %h, %heard[%t] : memref<9xf64>
    scf.yield %b, %a : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  }
  return
}
