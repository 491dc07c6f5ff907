// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s

// Values read by another apply: the field of the value's store holds the value, or a scratch field. A value
// whose sources change before its store is computed at its apply.

// A chain: the second apply reads one cell beyond the box, so the scratch field is one cell longer.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @chains
// CHECK:         %[[mid:.*]] = temporal.scratch : !stencil.field<[0,9]xf64>
// CHECK-NEXT:    temporal.loop %n (%[[m:.*]] = %[[mid]], %[[b:.*]] = %B) rotate [0, 1] {
// CHECK-NEXT:      temporal.update %[[m]] = @chains_cell0(%A[-1], %A[0]) in <[0], [9]>
// CHECK-NEXT:      temporal.update %[[b]] = @chains_cell1(%[[m]][1], %[[m]][0]) in <[0], [8]>
func.func @chains(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %mid = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[-1] : !temp
      %1 = stencil.access %x[0] : !temp
      %2 = arith.subf %1, %0 : f64
      stencil.return %2 : f64
    }
    %w = stencil.apply(%x = %mid : !temp) -> (!temp) {
      %0 = stencil.access %x[1] : !temp
      %1 = stencil.access %x[0] : !temp
      %2 = arith.subf %0, %1 : f64
      stencil.return %2 : f64
    }
    stencil.store %w to %B(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

// The value is stored where all of it is kept: no scratch field. stencil.buffer names its operand.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @held
// CHECK-NOT:     temporal.scratch
// CHECK:         temporal.update %[[b:.*]] = @held_cell0(%A[0]) in <[0], [9]>
// CHECK-NEXT:    temporal.update %{{.*}} = @held_cell1(%[[b]][1]) in <[0], [8]>
func.func @held(%n: index, %A: !field, %B: !field, %C: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    %kept = stencil.buffer %v : !temp -> !temp
    stencil.store %kept to %B(<[0], [9]>) : !temp to !field
    %w = stencil.apply(%x = %kept : !temp) -> (!temp) {
      %0 = stencil.access %x[1] : !temp
      stencil.return %0 : f64
    }
    stencil.store %w to %C(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

// Two regions joined: an update for each, over its part of the box. A part without a cell makes none.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @combines
// CHECK:         temporal.update %[[b:.*]] = @combines_cell0(%A[1]) in <[0], [4]>
// CHECK-NEXT:    temporal.update %[[b]] = @combines_cell1(%A[-1]) in <[4], [8]>
// CHECK-NEXT:    temporal.update %{{.*}} = @combines_cell2(%A[-1]) in <[5], [8]>
// CHECK-NEXT:  }
func.func @combines(%n: index, %A: !field, %B: !field, %C: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %lo = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[1] : !temp
      stencil.return %0 : f64
    }
    %hi = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[-1] : !temp
      stencil.return %0 : f64
    }
    %w = stencil.combine 0 at 4 lower = (%lo : !temp) upper = (%hi : !temp) : !temp
    stencil.store %w to %B(<[0], [8]>) : !temp to !field
    stencil.store %w to %C(<[5], [8]>) : !temp to !field
  }
  return
}

// -----

// A load is a snapshot: what is stored in between is not read. The sum is made before the first store.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @snapshot
// CHECK:         %[[w:.*]] = temporal.scratch : !stencil.field<[0,4]xf64>
// CHECK:         temporal.update %[[s:.*]] = @snapshot_cell0(%[[a:.*]][0]) in <[0], [4]>
// CHECK-NEXT:    temporal.update %[[a]] = @snapshot_cell1(%B[0]) in <[0], [8]>
// CHECK-NEXT:    temporal.update %{{.*}} = @snapshot_cell2(%[[s]][0]) in <[0], [4]>
func.func @snapshot(%n: index, %A: !field, %B: !field, %C: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %b = stencil.load %B : !field -> !temp
    %w = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.addf %0, %0 : f64
      stencil.return %1 : f64
    }
    stencil.store %b to %A(<[0], [8]>) : !temp to !field
    stencil.store %w to %C(<[0], [4]>) : !temp to !field
  }
  return
}

// -----

// The field is stored to between the load and the apply: its cells are copied where it is loaded.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @copied
// CHECK:         temporal.update %[[s:.*]] = @copied_cell0(%[[a:.*]][0]) in <[1], [5]>
// CHECK-NEXT:    temporal.update %[[a]] = @copied_cell1(%B[0]) in <[0], [8]>
// CHECK-NEXT:    temporal.update %{{.*}} = @copied_cell2(%[[s]][1]) in <[0], [4]>
func.func @copied(%n: index, %A: !field, %B: !field, %C: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %b = stencil.load %B : !field -> !temp
    stencil.store %b to %A(<[0], [8]>) : !temp to !field
    %w = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[1] : !temp
      stencil.return %0 : f64
    }
    stencil.store %w to %C(<[0], [4]>) : !temp to !field
  }
  return
}

// -----

// Stored to disjoint boxes: no cell that is read has changed, and nothing is copied.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @disjoint
// CHECK-NOT:     temporal.scratch
// CHECK:         temporal.update %[[a:.*]] = @disjoint_cell0(%B[0]) in <[0], [4]>
// CHECK-NEXT:    temporal.update %{{.*}} = @disjoint_cell1(%[[a]][0]) in <[4], [8]>
func.func @disjoint(%n: index, %A: !field, %B: !field, %C: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %b = stencil.load %B : !field -> !temp
    stencil.store %b to %A(<[0], [4]>) : !temp to !field
    stencil.store %u to %C(<[4], [8]>) : !temp to !field
  }
  return
}

// -----

// In place, beside the cell: all old values are read before the first new one is there.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:       stencil.apply in @in_place: the apply reads its target field beside the cell: old values are read, as a stencil.load is a snapshot; write a recurrence along an axis as temporal.sweep
// CHECK-LABEL: func.func @in_place
// CHECK:         temporal.update %[[s:.*]] = @in_place_cell0(%[[a:.*]][-1]) in <[1], [8]>
// CHECK-NEXT:    temporal.update %[[a]] = @in_place_cell1(%[[s]][0]) in <[1], [8]>
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

// A field of fewer axes is spread along the others, once, before the loop.

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>

// CHECK-LABEL: func.func @lower_rank
// CHECK:         %[[k:.*]] = temporal.broadcast %K axes [1] : !stencil.field<[0,8]xf64> to !stencil.field<[0,6]x[0,8]xf64>
// CHECK-NEXT:    temporal.loop
// CHECK-NEXT:      temporal.update %{{.*}} = @lower_rank_cell0(%[[k]][0, 1]) in <[0, 0], [6, 7]>
func.func @lower_rank(%n: index, %A: !field, %K: !stencil.field<[0,8]xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %k = stencil.load %K : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %k : !stencil.temp<?xf64>) -> (!temp) {
      %0 = stencil.access %x[_, 1] : !stencil.temp<?xf64>
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0, 0], [6, 7]>) : !temp to !field
  }
  return
}

// -----

// A result that no store needs is left out.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK:       stencil.apply in @forgets: no store needs the results; the operation is left out
// CHECK-LABEL: func.func @forgets
// CHECK:         temporal.update %{{.*}} = @forgets_cell0() in <[0], [8]>
// CHECK-NEXT:  }
func.func @forgets(%n: index, %A: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %w = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    %v = stencil.apply() -> (!temp) {
      %0 = arith.constant 1.0 : f64
      stencil.return %0 : f64
    }
    stencil.store %v to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

// The boundary of a load continues the field for the reads of the loaded value.

// CHECK-LABEL: func.func @continued
// CHECK:         temporal.update %b = @continued_cell0(%a[-1]) in <[0], [8]> beyond [#temporal.boundary<periodic>]
func.func @continued(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>) {
    %u = stencil.load %a attributes {boundary = #temporal.boundary<periodic>} : !stencil.field<[0,8]xf64> -> !stencil.temp<?xf64>
    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %l = stencil.access %x[-1] : !stencil.temp<?xf64>
      stencil.return %l : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !stencil.temp<?xf64> to !stencil.field<[0,8]xf64>
    scf.yield %b, %a : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  }
  func.return
}
