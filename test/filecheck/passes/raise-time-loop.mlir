// RUN: xdsl-opt %s -p raise-time-loop --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p raise-time-loop --split-input-file | filecheck %s --check-prefix=LEFT

// A loop over rotated fields becomes a temporal.loop: the yield becomes the rotation, each apply a
// private function of scalars, each run of stores an update. Nothing of the stencil dialect is left.

// LEFT:     builtin.module
// LEFT-NOT: scf.for
// LEFT-NOT: stencil.{{load|apply|access|index|store|return}}

// Two buffers, first order in time. Equal accesses are one tap; constants stay in the cell function.

!field = !stencil.field<[-1,9]x[-1,9]xf64>
!temp = !stencil.temp<?x?xf64>

// CHECK-LABEL: func.func private @heat_cell0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64 {
// CHECK-NEXT:    %[[half:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-NEXT:    %[[sum:.*]] = arith.addf %[[l:.*]], %[[r:.*]] : f64
// CHECK-NEXT:    %[[mean:.*]] = arith.mulf %[[sum]], %[[half]] : f64
// CHECK-NEXT:    %[[change:.*]] = arith.subf %[[mean]], %[[l]] : f64
// CHECK-NEXT:    %[[new:.*]] = arith.addf %[[change]], %{{.*}} : f64
// CHECK-NEXT:    func.return %[[new]] : f64
// CHECK-NEXT:  }
// CHECK-NEXT:  func.func @heat(%n: index, %A: {{.*}}, %B: {{.*}}) -> !stencil.field<[-1,9]x[-1,9]xf64> {
// CHECK:         %last, %before = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
// CHECK-NEXT:      temporal.update %b = @heat_cell0(%a[-1, 0], %a[0, 1], %a[0, 0]) in <[0, 0], [8, 8]>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %last
func.func @heat(%n: index, %A: !field, %B: !field) -> !field {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last, %before = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %half = arith.constant 0.5 : f64
      %l = stencil.access %x[-1, 0] : !temp
      %r = stencil.access %x[0, 1] : !temp
      %again = stencil.access %x[-1, 0] : !temp
      %c = stencil.access %x[0, 0] : !temp
      %sum = arith.addf %l, %r : f64
      %mean = arith.mulf %sum, %half : f64
      %change = arith.subf %mean, %again : f64
      %new = arith.addf %change, %c : f64
      stencil.return %new : f64
    }
    stencil.store %v to %b(<[0, 0], [8, 8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return %last : !field
}

// -----

// Three buffers, second order in time, with a coefficient field that is captured: it is not a buffer
// of the loop.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @wave
// CHECK:         temporal.loop %n (%now = %A, %next = %B, %before = %C) rotate [1, 2, 0] {
// CHECK-NEXT:      temporal.update %next = @wave_cell0(%now[-1], %now[1], %before[0], %K[0]) in <[0], [8]>
// CHECK-NEXT:    }
func.func @wave(%n: index, %A: !field, %B: !field, %C: !field, %K: !stencil.field<[0,8]xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %t = %c0 to %n step %c1 iter_args(%now = %A, %next = %B, %before = %C) -> (!field, !field, !field) {
    %u = stencil.load %now : !field -> !temp
    %p = stencil.load %before : !field -> !temp
    %k = stencil.load %K : !stencil.field<[0,8]xf64> -> !temp
    %v = stencil.apply(%x = %u : !temp, %y = %p : !temp, %z = %k : !temp) -> (!temp) {
      %0 = stencil.access %x[-1] : !temp
      %1 = stencil.access %x[1] : !temp
      %2 = stencil.access %y[0] : !temp
      %3 = stencil.access %z[0] : !temp
      %4 = arith.addf %0, %1 : f64
      %5 = arith.mulf %4, %3 : f64
      %6 = arith.subf %5, %2 : f64
      stencil.return %6 : f64
    }
    stencil.store %v to %next(<[0], [8]>) : !temp to !field
    scf.yield %next, %before, %now : !field, !field, !field
  }
  return
}

// -----

// Two updates a step: the second update loads the field again, and reads the first update's cells. A field
// from outside, written in place, becomes a buffer that rotates onto itself.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @leapfrog
// CHECK:         temporal.loop %n (%[[p:.*]] = %P, %[[v:.*]] = %V) rotate [0, 1] {
// CHECK-NEXT:      temporal.update %[[v]] = @leapfrog_cell0(%[[p]][1], %[[v]][0]) in <[0], [8]>
// CHECK-NEXT:      temporal.update %[[p]] = @leapfrog_cell1(%[[v]][-1], %[[p]][0]) in <[1], [8]>
// CHECK-NEXT:    }
func.func @leapfrog(%n: index, %P: !field, %V: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%p = %P) -> (!field) {
    %p0 = stencil.load %p : !field -> !temp
    %v0 = stencil.load %V : !field -> !temp
    %v = stencil.apply(%x = %p0 : !temp, %y = %v0 : !temp) -> (!temp) {
      %0 = stencil.access %x[1] : !temp
      %1 = stencil.access %y[0] : !temp
      %2 = arith.addf %0, %1 : f64
      stencil.return %2 : f64
    }
    stencil.store %v to %V(<[0], [8]>) : !temp to !field
    %v1 = stencil.load %V : !field -> !temp
    %q = stencil.apply(%x = %v1 : !temp, %y = %p0 : !temp) -> (!temp) {
      %0 = stencil.access %x[-1] : !temp
      %1 = stencil.access %y[0] : !temp
      %2 = arith.subf %0, %1 : f64
      stencil.return %2 : f64
    }
    stencil.store %q to %p(<[1], [8]>) : !temp to !field
    scf.yield %p : !field
  }
  return
}

// -----

// Several results of an apply over one box become an update with several targets. Results over another box
// become a second update, and its function computes only those results.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func private @pair_cell0({{.*}}) -> (f64, f64)
// CHECK-LABEL: func.func private @pair_cell1({{.*}}) -> f64
// CHECK-NOT:     arith.addf
// CHECK-LABEL: func.func @pair(
// CHECK:         temporal.update %b, %d = @pair_cell0(%a[-1], %a[1]) in <[0], [8]>
// CHECK-NEXT:    temporal.update %e = @pair_cell1(%a[-1], %a[1]) in <[2], [4]>
// CHECK-NEXT:  }
func.func @pair(%n: index, %A: !field, %B: !field, %D: !field, %E: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:4 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B, %d = %D, %e = %E) -> (!field, !field, !field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v, %w, %z = stencil.apply(%x = %u : !temp) -> (!temp, !temp, !temp) {
      %0 = stencil.access %x[-1] : !temp
      %1 = stencil.access %x[1] : !temp
      %sum = arith.addf %0, %1 : f64
      %product = arith.mulf %0, %1 : f64
      %difference = arith.subf %0, %1 : f64
      stencil.return %sum, %product, %difference : f64, f64, f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    stencil.store %w to %d(<[0], [8]>) : !temp to !field
    stencil.store %z to %e(<[2], [4]>) : !temp to !field
    scf.yield %b, %a, %d, %e : !field, !field, !field, !field
  }
  return
}

// -----

// A store of another apply between two stores keeps its place: the second of the two is an update of
// its own, after it.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @between
// CHECK:         temporal.update %[[b:.*]] = @between_cell0(%A[0]) in <[0], [8]>
// CHECK-NEXT:    temporal.update %{{.*}} = @between_cell1(%[[c:.*]][0]) in <[0], [8]>
// CHECK-NEXT:    temporal.update %[[c]] = @between_cell2(%A[0]) in <[0], [8]>
// CHECK-NEXT:  }
func.func @between(%n: index, %A: !field, %B: !field, %C: !field, %D: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v, %w = stencil.apply(%x = %u : !temp) -> (!temp, !temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.addf %0, %0 : f64
      stencil.return %0, %1 : f64, f64
    }
    stencil.store %v to %B(<[0], [8]>) : !temp to !field
    %old = stencil.load %C : !field -> !temp
    %z = stencil.apply(%x = %old : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.mulf %0, %0 : f64
      stencil.return %1 : f64
    }
    stencil.store %z to %D(<[0], [8]>) : !temp to !field
    stencil.store %w to %C(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

// Scalars of the function follow the taps, coordinates follow the scalars. An offset of stencil.index
// is added in the cell function; a constant of the loop's body moves into it.

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>

// CHECK:       func.func private @source_cell0(%[[u:.*]]: f64, %[[dt:.*]]: f64, %[[row:.*]]: index, %[[column:.*]]: index) -> f64 {
// CHECK-DAG:     %[[two:.*]] = arith.constant 2.000000e+00 : f64
// CHECK-DAG:     %[[minus:.*]] = arith.constant -3 : index
// CHECK-DAG:     %[[moved:.*]] = arith.addi %[[column]], %[[minus]] : index
// CHECK:         arith.cmpi slt, %[[row]], %[[moved]] : index
// CHECK:         arith.mulf %[[dt]], %[[two]] : f64
// CHECK-LABEL: func.func @source(
// CHECK:         temporal.update %b = @source_cell0(%a[0, 0]) scalars(%dt) indices [0, 1] in <[0, 0], [8, 8]>
func.func @source(%n: index, %dt: f64, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %two = arith.constant 2.0 : f64
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %s = %dt : f64, %k = %two : f64) -> (!temp) {
      %row = stencil.index 0 <[0, 0]>
      %column = stencil.index 1 <[0, -3]>
      %0 = stencil.access %x[0, 0] : !temp
      %below = arith.cmpi slt, %row, %column : index
      %1 = arith.mulf %s, %k : f64
      %2 = arith.select %below, %0, %1 : f64
      stencil.return %2 : f64
    }
    stencil.store %v to %b(<[0, 0], [8, 8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

// The number of steps is what the loop counts: from any bound, by any step, of any integer type, and
// never below zero.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @counted
// CHECK:         %[[span:.*]] = arith.subi %last, %first : i32
// CHECK-NEXT:    %[[count:.*]] = arith.ceildivsi %[[span]], %by : i32
// CHECK-NEXT:    %[[zero:.*]] = arith.constant 0 : i32
// CHECK-NEXT:    %[[steps:.*]] = arith.maxsi %[[count]], %[[zero]] : i32
// CHECK-NEXT:    %[[index:.*]] = arith.index_cast %[[steps]] : i32 to index
// CHECK-NEXT:    temporal.loop %[[index]] (
func.func @counted(%first: i32, %last: i32, %by: i32, %A: !field) {
  scf.for %t = %first to %last step %by : i32 {
    %u = stencil.load %A : !field -> !temp
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

// Two loops of a function, and a taken name: every cell function has a name of its own.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:       func.func private @twice_cell0()
// CHECK:       temporal.update %{{.*}} = @twice_cell0_1(
// CHECK:       temporal.update %{{.*}} = @twice_cell0_2(
func.func private @twice_cell0()

func.func @twice(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

// Carried fields of unknown bounds that the body casts: the loop carries the casts.

!open = !stencil.field<?xf64>
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @casts_inside
// CHECK:         %[[a:.*]] = stencil.cast %A : !stencil.field<?xf64> -> !stencil.field<[-1,9]xf64>
// CHECK:         %[[b:.*]] = stencil.cast %B : !stencil.field<?xf64> -> !stencil.field<[-1,9]xf64>
// CHECK:         temporal.loop %n (%{{.*}} = %[[a]], %{{.*}} = %[[b]]) rotate [1, 0] {
func.func @casts_inside(%n: index, %A: !open, %B: !open) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!open, !open) {
    %p = stencil.cast %a : !open -> !field
    %q = stencil.cast %b : !open -> !field
    %u = stencil.load %p : !field -> !temp
    stencil.store %u to %q(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !open, !open
  }
  return
}

// -----

// A number read at the step's number from memory that the loop leaves alone is a series of the update.

// CHECK-LABEL: func.func private @series_cell0(%0: f64, %1: f64) -> f64
// CHECK-LABEL: func.func @series
// CHECK:         temporal.loop %n
// CHECK-NEXT:      temporal.update %b = @series_cell0(%a[0]) scalars(%f) in <[0], [8]>
// CHECK-NEXT:    }
// CHECK-NOT:     memref.load
func.func @series(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>, %f: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>) {
    %w = memref.load %f[%t] : memref<?xf64>
    %u = stencil.load %a : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>, %y = %w : f64) -> (!stencil.temp<?xf64>) {
      %l = stencil.access %x[0] : !stencil.temp<?xf64>
      %s = arith.addf %l, %y : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !stencil.temp<?xf64> to !stencil.field<[0,8]xf64>
    scf.yield %b, %a : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  }
  func.return
}
