// RUN: xdsl-opt %s -p raise-nests --split-input-file | filecheck %s

// Two memrefs take turns: the loop carries fields. An end is computed from a memref's extent.

// CHECK-LABEL: func.func @swapped
// CHECK:         %[[B:.*]] = stencil.external_load %B : memref<10xf64> -> !stencil.field<[0,10]xf64>
// CHECK:         %[[A:.*]] = stencil.external_load %A : memref<10xf64> -> !stencil.field<[0,10]xf64>
// CHECK:         scf.for %t = %c0 to %n step %c1 iter_args(%a = %[[A]], %b = %[[B]])
// CHECK:           %[[u:.*]] = stencil.load %a
// CHECK:           %[[v:.*]] = stencil.apply(%[[x:.*]] = %[[u]] : !stencil.temp<?xf64>)
// CHECK:             %l = stencil.access %[[x]][-1]
// CHECK:             stencil.return %s
// CHECK:           stencil.store %[[v]] to %b(<[1], [9]>)
// CHECK:           scf.yield %b, %a
func.func @swapped(%A: memref<10xf64>, %B: memref<10xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %A, %c0 : memref<10xf64>
  %e = arith.subi %d, %c1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B)
      -> (memref<10xf64>, memref<10xf64>) {
    scf.for %i = %c1 to %e step %c1 {
      %w = arith.subi %i, %c1 : index
      %l = memref.load %a[%w] : memref<10xf64>
      %s = arith.addf %l, %l : f64
      memref.store %s, %b[%i] : memref<10xf64>
    }
    scf.yield %b, %a : memref<10xf64>, memref<10xf64>
  }
  return
}

// -----

// The number of a loop is a coordinate, back from the stored place; a number of all cells is read
// before the apply; a profile has one axis; a store at a constant index is one row of cells.

// CHECK-LABEL: func.func @row
// CHECK:         %k = memref.load %K[%c0]
// CHECK:         stencil.apply
// CHECK:           stencil.index 1 <[0, -1]>
// CHECK:         stencil.store %{{.*}}(<[3, 1], [4, 10]>)
// CHECK:           stencil.access %{{.*}}[0, _]
func.func @row(%A: memref<10x12xf64>, %P: memref<10xf64>, %K: memref<1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c0 to %c9 step %c1 {
    %k = memref.load %K[%c0] : memref<1xf64>
    %at = arith.index_cast %j : index to i32
    %x = arith.sitofp %at : i32 to f64
    %e = arith.addi %j, %c1 : index
    %p = arith.mulf %x, %k : f64
    memref.store %p, %A[%c3, %e] : memref<10x12xf64>
  }
  scf.for %i = %c0 to %c9 step %c1 {
    scf.for %j = %c0 to %c9 step %c1 {
      %p = memref.load %P[%i] : memref<10xf64>
      memref.store %p, %A[%i, %j] : memref<10x12xf64>
    }
  }
  return
}
