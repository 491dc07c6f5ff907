// RUN: xdsl-opt %s -p split-nests | filecheck %s

// Rows at both ends, copied in one loop: a nest for each.

// CHECK-LABEL: func.func @rows
// CHECK:         scf.for %j
// CHECK-NEXT:      %x = memref.load %u[%c8, %j]
// CHECK-NEXT:      memref.store %x, %u[%c0, %j]
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.for %j
// CHECK-NEXT:      %y = memref.load %u[%c1, %j_1]
// CHECK-NEXT:      memref.store %y, %u[%c9, %j_1]
// CHECK-NEXT:    }
func.func @rows(%u: memref<10x12xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c1 to %c9 step %c1 {
    %x = memref.load %u[%c8, %j] : memref<10x12xf64>
    memref.store %x, %u[%c0, %j] : memref<10x12xf64>
    %y = memref.load %u[%c1, %j] : memref<10x12xf64>
    memref.store %y, %u[%c9, %j] : memref<10x12xf64>
  }
  func.return
}

// The second store reads what the first one wrote, in turns of the loop before.

// CHECK-LABEL: func.func @chained
// CHECK:         memref.store %x, %u[%c0, %j]
// CHECK-NEXT:    %k = arith.subi %j, %c1
// CHECK-NEXT:    %y = memref.load %u[%c0, %k]
// CHECK-NEXT:    memref.store %y, %u[%c9, %j]
func.func @chained(%u: memref<10x12xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c1 to %c9 step %c1 {
    %x = memref.load %u[%c8, %j] : memref<10x12xf64>
    memref.store %x, %u[%c0, %j] : memref<10x12xf64>
    %k = arith.subi %j, %c1 : index
    %y = memref.load %u[%c0, %k] : memref<10x12xf64>
    memref.store %y, %u[%c9, %j] : memref<10x12xf64>
  }
  func.return
}

// Stores to two memrefs share a nest.

// CHECK-LABEL: func.func @two
// CHECK:         memref.store %x, %u[%c0, %j]
// CHECK-NEXT:    memref.store %x, %v[%c0, %j]
func.func @two(%u: memref<10x12xf64>, %v: memref<10x12xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c1 to %c9 step %c1 {
    %x = memref.load %u[%c8, %j] : memref<10x12xf64>
    memref.store %x, %u[%c0, %j] : memref<10x12xf64>
    memref.store %x, %v[%c0, %j] : memref<10x12xf64>
  }
  func.return
}
