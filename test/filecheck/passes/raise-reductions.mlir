// RUN: xdsl-opt %s -p raise-reductions --split-input-file | filecheck %s

// The values of cells are stored, and reduced behind the loop.

// CHECK-LABEL: func.func @energy(%A: memref<10xf64>) -> f64
// CHECK-NEXT:    %[[m:.*]] = memref.alloc() : memref<9xf64>
// CHECK:           memref.store %s, %[[m]][%i] : memref<9xf64>
// CHECK:         %[[f:.*]] = stencil.external_load %[[m]] : memref<9xf64> -> !stencil.field<[0,9]xf64>
// CHECK-NEXT:    %[[t:.*]] = temporal.reduce total %[[f]] in <[1], [9]> : !stencil.field<[0,9]xf64> -> f64
// CHECK-NEXT:    %[[r:.*]] = arith.addf %zero, %[[t]] : f64
// CHECK-NEXT:    func.return %[[r]] : f64
func.func @energy(%A: memref<10xf64>) -> f64 {
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f64
  %r = "scf.parallel"(%c1, %c9, %c1, %zero) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    %a = memref.load %A[%i] : memref<10xf64>
    %s = arith.mulf %a, %a : f64
    scf.reduce(%s : f64) {
    ^bb1(%x: f64, %y: f64):
      %t = arith.addf %x, %y : f64
      scf.reduce.return %t : f64
    }
  }) : (index, index, index, f64) -> f64
  return %r : f64
}

// -----

// Products stay, and loops to an end known at run time.

// CHECK-LABEL: func.func @product
// CHECK-NOT:     temporal.reduce
func.func @product(%A: memref<10xf64>, %n: index) -> (f64, f64) {
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %one = arith.constant 1.0 : f64
  %p = "scf.parallel"(%c1, %c9, %c1, %one) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    %a = memref.load %A[%i] : memref<10xf64>
    scf.reduce(%a : f64) {
    ^bb1(%x: f64, %y: f64):
      %t = arith.mulf %x, %y : f64
      scf.reduce.return %t : f64
    }
  }) : (index, index, index, f64) -> f64
  %s = "scf.parallel"(%c1, %n, %c1, %one) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    %a = memref.load %A[%i] : memref<10xf64>
    scf.reduce(%a : f64) {
    ^bb1(%x: f64, %y: f64):
      %t = arith.addf %x, %y : f64
      scf.reduce.return %t : f64
    }
  }) : (index, index, index, f64) -> f64
  return %p, %s : f64, f64
}
