// RUN: xdsl-opt %s -p split-levels --split-input-file | filecheck %s

// Two levels become two arguments; the loop begins at 1, with level 1 as the step's own.

// CHECK-LABEL: func.func @two(%U0: memref<10xf64>, %U1: memref<10xf64>, %n: index)
// CHECK:         memref.load %U0[%c1]
// CHECK:         scf.for %t = %c1 to %n step %c1 iter_args(%[[a:.*]] = %U1, %[[b:.*]] = %U0)
// CHECK:           memref.load %[[a]][%c1] : memref<10xf64>
// CHECK:           memref.store %{{.*}}, %[[b]][%c1] : memref<10xf64>
// CHECK:           scf.yield %[[b]], %[[a]]
func.func @two(%U: memref<2x10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %first = memref.load %U[%c0, %c1] : memref<2x10xf64>
  scf.for %t = %c1 to %n step %c1 {
    %now = arith.remui %t, %c2 : index
    %next = arith.subi %c1, %now : index
    %v = memref.load %U[%now, %c1] : memref<2x10xf64>
    memref.store %v, %U[%next, %c1] : memref<2x10xf64>
  }
  return
}

// -----

// An allocation of levels becomes allocations, and each is freed.

// CHECK-LABEL: func.func @allocated
// CHECK-COUNT-2: memref.alloc() : memref<10xf64>
// CHECK-COUNT-2: memref.dealloc %{{.*}} : memref<10xf64>
func.func @allocated(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %U = memref.alloc() : memref<2x10xf64>
  scf.for %t = %c0 to %n step %c1 {
    %now = arith.andi %t, %c1 : index
    %v = memref.load %U[%now, %c1] : memref<2x10xf64>
    memref.store %v, %U[%now, %c0] : memref<2x10xf64>
  }
  memref.dealloc %U : memref<2x10xf64>
  return
}

// -----

// A constant level inside the time loop has no fixed name, and a plain index is no level.

// CHECK-LABEL: func.func @constant_inside(%U: memref<2x10xf64>
// CHECK-LABEL: func.func @plain(%U: memref<2x10xf64>
func.func @constant_inside(%U: memref<2x10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    %now = arith.remui %t, %c2 : index
    %v = memref.load %U[%now, %c1] : memref<2x10xf64>
    memref.store %v, %U[%c0, %c1] : memref<2x10xf64>
  }
  return
}
func.func @plain(%U: memref<2x10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %v = memref.load %U[%t, %c1] : memref<2x10xf64>
    memref.store %v, %U[%t, %c0] : memref<2x10xf64>
  }
  return
}

// -----

// Views of levels, carried in turn: the loop carries memrefs without a layout.

// CHECK-LABEL: func.func @views(%U0: memref<8xf64>, %U1: memref<8xf64>, %n: index)
// CHECK:         scf.for %t = %c0 to %n step %c1 iter_args(%a = %U0, %b = %U1) -> (memref<8xf64>, memref<8xf64>)
// CHECK:           memref.load %a[%c0] : memref<8xf64>
// CHECK:           scf.yield %b, %a : memref<8xf64>, memref<8xf64>
func.func @views(%U: memref<2x8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = memref.subview %U[0, 0] [1, 8] [1, 1] : memref<2x8xf64> to memref<8xf64, strided<[1]>>
  %v = memref.subview %U[1, 0] [1, 8] [1, 1] : memref<2x8xf64> to memref<8xf64, strided<[1], offset: 8>>
  %x = "memref.cast"(%u) : (memref<8xf64, strided<[1]>>) -> memref<8xf64, strided<[1], offset: ?>>
  %y = "memref.cast"(%v) : (memref<8xf64, strided<[1], offset: 8>>) -> memref<8xf64, strided<[1], offset: ?>>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (memref<8xf64, strided<[1], offset: ?>>, memref<8xf64, strided<[1], offset: ?>>) {
    %w = memref.load %a[%c0] : memref<8xf64, strided<[1], offset: ?>>
    memref.store %w, %b[%c0] : memref<8xf64, strided<[1], offset: ?>>
    scf.yield %b, %a : memref<8xf64, strided<[1], offset: ?>>, memref<8xf64, strided<[1], offset: ?>>
  }
  return
}

// -----

// A view carried in turn with other memory stays, and so does a view of a part of a level.

// CHECK-LABEL: func.func @mixed(%U: memref<2x8xf64>, %V: memref<8xf64, strided<[1]>>, %n: index)
// CHECK:         memref.subview
// CHECK-LABEL: func.func @part(%U: memref<2x8xf64>
func.func @mixed(%U: memref<2x8xf64>, %V: memref<8xf64, strided<[1]>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = memref.subview %U[0, 0] [1, 8] [1, 1] : memref<2x8xf64> to memref<8xf64, strided<[1]>>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %u, %b = %V) -> (memref<8xf64, strided<[1]>>, memref<8xf64, strided<[1]>>) {
    scf.yield %b, %a : memref<8xf64, strided<[1]>>, memref<8xf64, strided<[1]>>
  }
  return
}
func.func @part(%U: memref<2x8xf64>, %n: index) -> memref<4xf64, strided<[1]>> {
  %u = memref.subview %U[0, 0] [1, 4] [1, 1] : memref<2x8xf64> to memref<4xf64, strided<[1]>>
  return %u : memref<4xf64, strided<[1]>>
}

// -----

// A number of 8 bits begins anew at step 256, where 256 is no multiple of 3; one of 32 bits does not.

// CHECK-LABEL: func.func @narrow(%U: memref<3x10xf64>
// CHECK-LABEL: func.func @wide(%U0: memref<10xf64>, %U1: memref<10xf64>, %U2: memref<10xf64>
func.func @narrow(%U: memref<3x10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %three = arith.constant 3 : i8
  scf.for %t = %c0 to %n step %c1 {
    %short = arith.index_cast %t : index to i8
    %rest = arith.remui %short, %three : i8
    %now = arith.index_cast %rest : i8 to index
    %v = memref.load %U[%now, %c1] : memref<3x10xf64>
    memref.store %v, %U[%now, %c0] : memref<3x10xf64>
  }
  return
}
func.func @wide(%U: memref<3x10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %three = arith.constant 3 : i32
  scf.for %t = %c0 to %n step %c1 {
    %short = arith.index_cast %t : index to i32
    %rest = arith.remui %short, %three : i32
    %now = arith.index_cast %rest : i32 to index
    %v = memref.load %U[%now, %c1] : memref<3x10xf64>
    memref.store %v, %U[%now, %c0] : memref<3x10xf64>
  }
  return
}
