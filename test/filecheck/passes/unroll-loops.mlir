// RUN: xdsl-opt %s -p unroll-loops --split-input-file | filecheck %s

// Each iteration has its number as a constant, and the values of the iteration before.

!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @newton
// CHECK:         %v = stencil.access %x[0]
// CHECK-NOT:     scf.for
// CHECK:         arith.constant 0 : index
// CHECK:         %[[first:.*]] = arith.divf %v, %v : f64
// CHECK:         arith.constant 1 : index
// CHECK:         %[[second:.*]] = arith.divf %v, %[[first]] : f64
// CHECK:         stencil.return %[[second]] : f64
func.func @newton(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %r = stencil.apply(%x = %u : !temp) -> (!temp) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %v = stencil.access %x[0] : !temp
    %s = scf.for %l = %c0 to %c2 step %c1 iter_args(%y = %v) -> (f64) {
      %d = arith.divf %v, %y : f64
      scf.yield %d : f64
    }
    stencil.return %s : f64
  }
  stencil.store %r to %B(<[0], [12]>) : !temp to !field
  func.return
}

// -----

// The bounds of an inner loop are numbers of the outer loop: 0 + 0 + 1 iterations.

!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @triangle
// CHECK-NOT:     scf.for
// CHECK-COUNT-1: arith.mulf
// CHECK-NOT:     arith.mulf
// CHECK:         stencil.store
func.func @triangle(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %r = stencil.apply(%x = %u : !temp) -> (!temp) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %v = stencil.access %x[0] : !temp
    %s = scf.for %l = %c0 to %c2 step %c1 iter_args(%y = %v) -> (f64) {
      %t = scf.for %k = %c0 to %l step %c1 iter_args(%z = %y) -> (f64) {
        %d = arith.mulf %v, %z : f64
        scf.yield %d : f64
      }
      scf.yield %t : f64
    }
    stencil.return %s : f64
  }
  stencil.store %r to %B(<[0], [12]>) : !temp to !field
  func.return
}

// -----

// The end of the loop is computed from the cell's place, and the time loop is outside the apply: both stay.

!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @kept
// CHECK:         scf.for %t
// CHECK:           scf.for %l = %k0 to %end step %k1
func.func @kept(%A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %c2 step %c1 {
    %u = stencil.load %A : !field -> !temp
    %r = stencil.apply(%x = %u : !temp) -> (!temp) {
      %i = stencil.index 0 <[0]>
      %k0 = arith.constant 0 : index
      %k1 = arith.constant 1 : index
      %v = stencil.access %x[0] : !temp
      %end = arith.muli %i, %i : index
      %s = scf.for %l = %k0 to %end step %k1 iter_args(%y = %v) -> (f64) {
        %d = arith.mulf %v, %y : f64
        scf.yield %d : f64
      }
      stencil.return %s : f64
    }
    stencil.store %r to %B(<[0], [12]>) : !temp to !field
  }
  func.return
}

// -----

// A sum over the rest of a column: each of three cells selects the iterations from its own place on.

!field = !stencil.field<[0,3]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @column
// CHECK-NOT:     scf.for
// CHECK-COUNT-3: stencil.dyn_access %x[%{{.*}}] in <[-3]> : <[5]>
// CHECK:         %[[n:.*]] = arith.addf
// CHECK:         %[[at:.*]] = arith.cmpi sge, %{{.*}}, %k : index
// CHECK:         %[[sum:.*]] = arith.select %[[at]], %[[n]], %{{.*}} : f64
// CHECK:         stencil.return %[[sum]] : f64
func.func @column(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %r = stencil.apply(%x = %u : !temp) -> (!temp) {
    %k = stencil.index 0 <[0]>
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %z = arith.constant 0.0 : f64
    %s = scf.for %l = %k to %c3 step %c1 iter_args(%y = %z) -> (f64) {
      %e = stencil.dyn_access %x[%l] in <[0]> : <[2]> : !temp
      %n = arith.addf %y, %e : f64
      scf.yield %n : f64
    }
    stencil.return %s : f64
  }
  stencil.store %r to %B(<[0], [3]>) : !temp to !field
  func.return
}
