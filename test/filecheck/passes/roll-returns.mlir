// RUN: xdsl-opt %s -p stencil-unroll{unroll-factor=2,2},roll-returns --split-input-file 2>&1 | filecheck %s

// What stencil-unroll made of an apply becomes one cell again, also with several results. Cells that are not
// one cell, moved, stay unrolled, with a remark.

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

!temp = !stencil.temp<?x?xf64>

// CHECK:       stencil.return in @alternates: the cells that it returns are not one cell, moved; it stays unrolled
// CHECK-LABEL: func.func @alternates
// CHECK:         stencil.return %{{.*}}, %{{.*}} unroll <[1, 2]> : f64, f64
func.func @alternates(%u: !temp) -> !temp {
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %0 = stencil.access %x[0, 0] : !temp
    %1 = stencil.access %x[0, 2] : !temp
    stencil.return %0, %1 unroll <[1, 2]> : f64, f64
  }
  return %v : !temp
}
