// RUN: xdsl-opt %s -p convert-temporal-to-llvm | filecheck %s

// Each sweep along an axis becomes a function for some lines. Lines along the last axis lie inside: the loop over places is
// around the loop over the cells of a place. A descending sweep counts places from the last.

!field = !stencil.field<[0,9]x[0,7]xf64>

// CHECK:         temporal.sweep %u
func.func private @add(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
func.func @sums(%u: !field, %v: !field) {
  temporal.sweep %u = @add(%u[-1, 0], %v[0, 0]) along 0 ascending in <[1, 0], [9, 7]>
  temporal.sweep %v = @add(%v[0, 1], %v[0, 0]) along 1 descending in <[0, 0], [9, 6]>
  func.return
}

// CHECK:       llvm.func @sweep0(%0: !llvm.ptr {llvm.noalias}, %1: !llvm.ptr {llvm.noalias}, %{{[0-9]+}}: i64, %[[HIGH:[0-9]+]]: i64)
// CHECK:         llvm.icmp "slt" %[[PLACE:[0-9]+]], %{{[0-9]+}}
// CHECK:         llvm.icmp "slt" %[[LINE:[0-9]+]], %[[HIGH]]
// CHECK:         %[[ROW:[0-9]+]] = llvm.mul %[[PLACE]], %{{[0-9]+}}
// CHECK:         llvm.add %[[ROW]], %[[LINE]]
// CHECK:         llvm.fadd
// CHECK:         llvm.store
// CHECK:       llvm.func @sweep1(%{{[0-9]+}}: !llvm.ptr {llvm.noalias}, %{{[0-9]+}}: i64, %{{[0-9]+}}: i64)
// CHECK-DAG:     %[[LAST:[0-9]+]] = llvm.mlir.constant(5) : i64
// CHECK:         llvm.sub %[[LAST]], %{{[0-9]+}}
// CHECK:         llvm.fadd
