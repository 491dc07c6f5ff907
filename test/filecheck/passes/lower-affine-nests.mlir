// RUN: xdsl-opt %s -p lower-affine-nests --split-input-file 2>&1 | filecheck %s

// Bounds by operands, steps, carried numbers, and maps of indices.

// CHECK-LABEL: func.func @lowered
// CHECK:         scf.for %i = %{{.*}} to %n step %{{.*}} iter_args(%s = %zero) -> (f64) {
// CHECK:           %[[one:.*]] = arith.constant -1 : index
// CHECK:           %[[at:.*]] = arith.addi %i, %[[one]] : index
// CHECK:           %v = memref.load %A[%[[at]]] : memref<10xf64>
// CHECK:           memref.store %v, %B[%i] : memref<10xf64>
// CHECK:           scf.yield %v : f64
// CHECK:         %[[sum:.*]] = arith.addi %n, %{{.*}} : index
// CHECK:         memref.store %r, %A[%[[sum]]]
#next = affine_map<(d0) -> (d0 + 1)>
func.func @lowered(%A: memref<10xf64>, %B: memref<10xf64>, %n: index) {
  %zero = arith.constant 0.0 : f64
  %r = affine.for %i = 1 to %n step 2 iter_args(%s = %zero) -> (f64) {
    %v = affine.load %A[%i - 1] : memref<10xf64>
    affine.store %v, %B[%i] : memref<10xf64>
    affine.yield %v : f64
  }
  %k = affine.apply #next (%n)
  memref.store %r, %A[%k] : memref<10xf64>
  return
}

// -----

// A loop to the least of two numbers stays.

// CHECK:         affine.for in @least: the loop is left unchanged: a bound is the least or the greatest of several numbers; give the loop one number for each bound
#least = affine_map<() -> (17, 18)>
func.func @least(%A: memref<18xf64>) {
  affine.for %i = 1 to min #least() {
    %v = affine.load %A[%i] : memref<18xf64>
    affine.store %v, %A[%i] : memref<18xf64>
  }
  return
}
