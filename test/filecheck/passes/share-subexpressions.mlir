// RUN: xdsl-opt %s -p share-subexpressions | filecheck %s
// RUN: xdsl-opt %s -p contract-cells,share-subexpressions | filecheck %s --check-prefix=FUSED

// What a cell computes twice is computed once; other functions are left alone.

!field = !stencil.field<[0,8]xf64>

// CHECK-LABEL: func.func private @cell(%x: f64, %y: f64) -> f64 {
// CHECK-NEXT:    %d = arith.subf %x, %y : f64
// CHECK-NEXT:    %p = arith.mulf %d, %d : f64
// CHECK-NEXT:    %s = arith.addf %p, %x : f64
// CHECK-NEXT:    %t = arith.addf %p, %y : f64
// CHECK-NEXT:    %r = arith.mulf %s, %t : f64
// CHECK-NEXT:    func.return %r : f64
// After contraction both sums have fused their products.
// FUSED-LABEL: func.func private @cell(%x: f64, %y: f64) -> f64 {
// FUSED-NEXT:    %d = arith.subf %x, %y : f64
// FUSED-NEXT:    %s = math.fma %d, %d, %x : f64
// FUSED-NEXT:    %t = math.fma %d, %d, %y : f64
// FUSED-NEXT:    %r = arith.mulf %s, %t : f64
func.func private @cell(%x: f64, %y: f64) -> f64 {
  %d = arith.subf %x, %y : f64
  %e = arith.subf %x, %y : f64
  %p = arith.mulf %d, %e : f64
  %q = arith.mulf %d, %e : f64
  %s = arith.addf %p, %x : f64
  %t = arith.addf %q, %y : f64
  %r = arith.mulf %s, %t : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @other(
// CHECK-NEXT:    arith.subf
// CHECK-NEXT:    arith.subf
func.func private @other(%x: f64, %y: f64) -> (f64, f64) {
  %d = arith.subf %x, %y : f64
  %e = arith.subf %x, %y : f64
  func.return %d, %e : f64, f64
}

func.func @program(%A: !field, %B: !field, %n: index) {
  %a, %b = temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %v = @cell(%u[0], %u[1]) in <[0], [7]>
  } : !field, !field
  func.return
}
