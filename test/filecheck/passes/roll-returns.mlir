// RUN: xdsl-opt %s -p stencil-unroll{unroll-factor=2,2},roll-returns --split-input-file 2>&1 | filecheck %s

// The cells of an apply unrolled by stencil-unroll become one cell again, also with several results. Different
// cells are selected by their place.

!temp = !stencil.temp<?x?xf64>

// CHECK-LABEL: func.func @unrolled
// CHECK:         %[[l:.*]] = stencil.access %x[-1, 0]
// CHECK:         %[[i:.*]] = stencil.index 1 <[0, 0]>
// CHECK:         %[[s:.*]] = arith.addf
// CHECK:         stencil.return %[[s]], %[[l]] : f64, f64
// CHECK-NEXT:   }
func.func @unrolled(%u: !temp) -> (!temp, !temp) {
  %v, %w = stencil.apply(%x = %u : !temp) -> (!temp, !temp) {
    %l = stencil.access %x[-1, 0] : !temp
    %i = stencil.index 1 <[0, 0]>
    %j = arith.index_cast %i : index to i64
    %f = arith.sitofp %j : i64 to f64
    %s = arith.addf %l, %f : f64
    stencil.return %s, %l : f64, f64
  }
  return %v, %w : !temp, !temp
}

// -----

// Each cell selects its value by the place from the begin of the store; the second value moves back by one.

!temp = !stencil.temp<?x?xf64>
!field = !stencil.field<[0,8]x[0,8]xf64>

// CHECK-LABEL: func.func @alternates
// CHECK:         %[[first:.*]] = stencil.access %x[0, 0]
// CHECK:         %[[j:.*]] = stencil.index 1 <[0, -2]>
// CHECK:         %[[rest:.*]] = arith.remui %[[j]]
// CHECK:         %[[is:.*]] = arith.cmpi eq, %[[rest]]
// CHECK:         %[[second:.*]] = stencil.access %x[0, 1]
// CHECK:         %[[v:.*]] = arith.select %[[is]], %[[second]], %[[first]] : f64
// CHECK-NEXT:    stencil.return %[[v]] : f64
func.func @alternates(%u: !temp, %A: !field) {
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0, 0] : !temp
    %1 = stencil.access %x[0, 2] : !temp
    stencil.return %0, %1 unroll <[1, 2]> : f64, f64
  }
  stencil.store %v to %A(<[0, 2], [8, 6]>) : !temp to !field
  return
}

// -----

!temp = !stencil.temp<?x?xf64>

// CHECK:       stencil.return in @nowhere: the returned cells are not one cell, moved, and the stores do not begin at one place; the apply stays unrolled
// CHECK-LABEL: func.func @nowhere
// CHECK:         stencil.return %{{.*}}, %{{.*}} unroll <[1, 2]> : f64, f64
func.func @nowhere(%u: !temp) -> !temp {
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0, 0] : !temp
    %1 = stencil.access %x[0, 2] : !temp
    stencil.return %0, %1 unroll <[1, 2]> : f64, f64
  }
  return %v : !temp
}
