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

// An exponent that is no constant is one of a power of floats; a power of an integer takes all bits of the exponent.

// CHECK-LABEL: func.func private @unknown(
// CHECK-NEXT:    %[[n:.*]] = arith.sitofp %n : i32 to f64
// CHECK-NEXT:    math.powf %x, %[[n]] : f64
// CHECK-COUNT-32: arith.shrui %n, %{{.*}} : i32
// CHECK-NOT:     arith.shrui
// CHECK:         %[[above:.*]] = arith.addi %i, %{{.*}} : i32
// CHECK:         arith.cmpi sge, %n, %{{.*}} : i32
// CHECK-NOT:     math.ipowi
func.func private @unknown(%x: f64, %i: i32, %n: i32) -> (f64, i32) {
  %p = math.fpowi %x, %n : f64, i32
  %q = math.ipowi %i, %n : i32
  func.return %p, %q : f64, i32
}

func.func @powers(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>, %I: !stencil.field<[0,8]xi32>, %J: !stencil.field<[0,8]xi32>, %n: index) {
  temporal.loop %n (%b = %B, %j = %J) rotate [0, 1] {
    temporal.update %b, %j = @unknown(%A[0], %I[0], %I[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xi32>
  func.return
}

// A power on the host becomes a product, too.

// CHECK-LABEL: func.func @on_the_host(
// CHECK-NEXT:    %[[SQUARE:.*]] = arith.mulf %x, %x : f64
// CHECK-NEXT:    memref.store %[[SQUARE]], %m[] : memref<f64>
func.func @on_the_host(%x: f64, %m: memref<f64>) {
  %two = arith.constant 2 : i64
  %p = math.fpowi %x, %two : f64, i64
  memref.store %p, %m[] : memref<f64>
  func.return
}
