// RUN: xdsl-opt %s -p expand-powers | filecheck %s

// A power with a constant exponent becomes products by repeated squaring, a negative one the reciprocal
// of those. No power and no unused exponent is left.

func.func private @cell(%x: f64) -> f64 {
  %five = arith.constant 5 : i32
  %minus = arith.constant -2 : i32
  %p = math.fpowi %x, %five : f64, i32
  %q = math.fpowi %x, %minus : f64, i32
  %r = arith.addf %p, %q : f64
  func.return %r : f64
}

func.func @power(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>, %n: index) {
  %a, %b = temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %v = @cell(%u[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// CHECK:       func.func private @cell(%[[X:.*]]: f64) -> f64 {
// CHECK-NEXT:    %[[S2:.*]] = arith.mulf %[[X]], %[[X]] : f64
// CHECK-NEXT:    %[[S4:.*]] = arith.mulf %[[S2]], %[[S2]] : f64
// CHECK-NEXT:    %[[S5:.*]] = arith.mulf %[[S4]], %[[X]] : f64
// CHECK-NEXT:    %[[T2:.*]] = arith.mulf %[[X]], %[[X]] : f64
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT:    %[[Q:.*]] = arith.divf %[[ONE]], %[[T2]] : f64
// CHECK-NEXT:    %{{.*}} = arith.addf %[[S5]], %[[Q]] : f64
// CHECK-NOT:   math.fpowi
