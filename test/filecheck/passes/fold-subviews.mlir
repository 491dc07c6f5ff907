// RUN: xdsl-opt %s -p fold-subviews --split-input-file | filecheck %s

// Offsets are added, an axis left out has its offset, and a stride is a factor.

// CHECK-LABEL: func.func @parts(%A: memref<4x10x12xf64>, %k: index, %i: index)
// CHECK-NEXT:    %[[two:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[far:.*]] = arith.muli %i, %[[two]] : index
// CHECK-NEXT:    %[[at:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[col:.*]] = arith.addi %[[far]], %[[at]] : index
// CHECK-NEXT:    %v = memref.load %A[%k, %i, %[[col]]] : memref<4x10x12xf64>
func.func @parts(%A: memref<4x10x12xf64>, %k: index, %i: index) {
  %a = memref.subview %A[%k, 0, 1] [1, 10, 5] [1, 1, 2] : memref<4x10x12xf64> to memref<10x5xf64, strided<[12, 2], offset: ?>>
  %v = memref.load %a[%i, %i] : memref<10x5xf64, strided<[12, 2], offset: ?>>
  %one = arith.constant 1 : index
  memref.store %v, %A[%k, %one, %one] : memref<4x10x12xf64>
  return
}

// -----

// A part of a part, through a cast.

// CHECK-LABEL: func.func @nested(%A: memref<10x12xf64>, %i: index, %v: f64)
// CHECK:         %[[row:.*]] = arith.constant 3 : index
// CHECK:         %[[far:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK:         memref.store %v, %A[%[[row]], %{{.*}}] : memref<10x12xf64>
// CHECK-NEXT:    func.return
func.func @nested(%A: memref<10x12xf64>, %i: index, %v: f64) {
  %a = memref.subview %A[3, 2] [1, 8] [1, 1] : memref<10x12xf64> to memref<8xf64, strided<[1], offset: 38>>
  %b = "memref.cast"(%a) : (memref<8xf64, strided<[1], offset: 38>>) -> memref<8xf64, strided<[1], offset: ?>>
  %c = memref.subview %b[1] [4] [1] : memref<8xf64, strided<[1], offset: ?>> to memref<4xf64, strided<[1], offset: ?>>
  memref.store %v, %c[%i] : memref<4xf64, strided<[1], offset: ?>>
  return
}

// -----

// A part that a loop carries stays.

// CHECK-LABEL: func.func @carried
// CHECK:         memref.subview
func.func @carried(%A: memref<2x8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.subview %A[0, 0] [1, 8] [1, 1] : memref<2x8xf64> to memref<8xf64, strided<[1]>>
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%b = %a) -> (memref<8xf64, strided<[1]>>) {
    %v = memref.load %b[%c0] : memref<8xf64, strided<[1]>>
    memref.store %v, %b[%c1] : memref<8xf64, strided<[1]>>
    scf.yield %b : memref<8xf64, strided<[1]>>
  }
  return
}
