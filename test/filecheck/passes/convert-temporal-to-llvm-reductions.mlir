// RUN: xdsl-opt %s -p convert-temporal-to-llvm | filecheck %s

// Each kind and type of a reduction becomes a function for blocks of rows: 32 lanes take the cells of a block in turn, and
// meet in halves. The reductions stay, and two of one kind share a function.

// CHECK:         %a = temporal.reduce total %u
func.func @reduced(%u: !stencil.field<[0,40]x[0,9]xf64>, %v: !stencil.field<[0,40]xf32>) -> (f64, f64, f32) {
  %a = temporal.reduce total %u in <[0, 0], [40, 9]> : !stencil.field<[0,40]x[0,9]xf64> -> f64
  %b = temporal.reduce total %u in <[1, 1], [39, 8]> : !stencil.field<[0,40]x[0,9]xf64> -> f64
  %c = temporal.reduce minimum %v in <[0], [40]> : !stencil.field<[0,40]xf32> -> f32
  func.return %a, %b, %c : f64, f64, f32
}

// CHECK:       llvm.func @reduce.total.f64(%0: !llvm.ptr {llvm.noalias}, %1: !llvm.ptr {llvm.noalias}, %2: !llvm.ptr {llvm.noalias}, %3: i64, %4: i64,
// CHECK-DAG:     %[[NONE:[0-9]+]] = llvm.mlir.constant(-0.000000e+00 : f64) : f64
// CHECK-DAG:     %[[LANES:[0-9]+]] = llvm.mlir.constant(32) : i64
// CHECK-DAG:     %[[CELLS:[0-9]+]] = llvm.mlir.constant(1024) : i64
// CHECK:         llvm.call_intrinsic "llvm.smin.i64"(%{{[0-9]+}}, %[[CELLS]])
// CHECK:         llvm.store %[[NONE]], %{{[0-9]+}}
// CHECK:         %[[CELL:[0-9]+]] = llvm.load
// CHECK:         %[[LANE:[0-9]+]] = llvm.load
// CHECK:         llvm.fadd %[[LANE]], %[[CELL]] : f64
// CHECK:         llvm.return
// CHECK-NEXT:  }
// CHECK-NEXT:  llvm.func @reduce.minimum.f32(
// CHECK:         llvm.fcmp "uno"
// CHECK-NOT:   llvm.func
