// RUN: xdsl-opt %s -p convert-temporal-to-llvm | filecheck %s

// A loop of the host on cells becomes a function. The function compares each index with the extent; for an index outside,
// the function notes the access, the axis and the index, and returns. A time loop calls the functions of its sweeps.

!row = !stencil.field<[-1,9]xf64>

func.func private @mean(%0: f64, %1: f64) -> f64 {
  %s = arith.addf %0, %1 : f64
  func.return %s : f64
}

func.func @listed(%u: memref<64xf64>, %places: memref<8xindex>, %n: index, %s: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    %i = memref.load %places[%k] : memref<8xindex>
    %a = memref.load %u[%i] : memref<64xf64>
    %b = arith.addf %a, %s : f64
    memref.store %b, %u[%i] : memref<64xf64>
  }
  func.return
}

func.func @shot(%A: !row, %B: !row, %wave: memref<40xf64>, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %r:2 = scf.for %t = %zero to %steps step %one iter_args(%a = %A, %b = %B) -> (!row, !row) {
    %c = temporal.loop %one (%to = %b) rotate [0] sweep {
      temporal.update %to = @mean(%a[-1], %a[1]) in <[0], [8]>
    } : !row
    %m = builtin.unrealized_conversion_cast %b : !row to memref<10xf64>
    %w = memref.load %wave[%t] : memref<40xf64>
    memref.store %w, %m[%three] : memref<10xf64>
    scf.yield %b, %a : !row, !row
  } {timetile.time_loop}
  func.return
}

// A loop with a divisor that may have no result on some processors is left to the interpreter, as are memrefs of
// unknown extents.
func.func @left(%u: memref<64xindex>, %v: memref<?xindex>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %k = %zero to %n step %one {
    %q = arith.divsi %n, %k : index
    memref.store %q, %u[%k] : memref<64xindex>
  }
  scf.for %k = %zero to %n step %one {
    memref.store %k, %v[%k] : memref<?xindex>
  }
  func.return
}

// CHECK:       llvm.func @nest0(%[[LOW:.*]]: i64, %[[HIGH:.*]]: i64, %[[STEP:.*]]: i64, %[[PLACES:.*]]: !llvm.ptr, %[[U:.*]]: !llvm.ptr, %[[S:.*]]: f64, %{{.*}}: !llvm.ptr, %[[STATUS:.*]]: !llvm.ptr) {
// CHECK:         llvm.br ^bb1(%[[LOW]] : i64)
// CHECK-NEXT:  ^bb1(%[[K:.*]]: i64):
// CHECK-NEXT:    %[[ON:.*]] = llvm.icmp "slt" %[[K]], %[[HIGH]] : i64
// CHECK-NEXT:    llvm.cond_br %[[ON]], ^bb2, ^bb9
// CHECK-NEXT:  ^bb2:
// CHECK-NEXT:    %[[IN:.*]] = llvm.icmp "ult" %[[K]], %{{.*}} : i64
// CHECK-NEXT:    llvm.cond_br %[[IN]], ^bb3, ^bb4
// CHECK:         llvm.getelementptr %[[PLACES]][
// CHECK:       ^bb4:
// CHECK:         llvm.getelementptr %[[STATUS]][
// CHECK:         llvm.return
// CHECK:       ^bb5:
// CHECK:         %[[OLD:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> f64
// CHECK-NEXT:    %[[NEW:.*]] = llvm.fadd %[[OLD]], %[[S]] : f64
// CHECK:         llvm.store %[[NEW]], %{{.*}} {alignment = 1 : i64} : f64, !llvm.ptr
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.add %[[K]], %[[STEP]] : i64
// CHECK-NEXT:    llvm.br ^bb1(%[[NEXT]] : i64)

// CHECK:       llvm.func @nest1(%[[LOW:.*]]: i64, %[[HIGH:.*]]: i64, %[[STEP:.*]]: i64, %[[A:.*]]: !llvm.ptr, %[[B:.*]]: !llvm.ptr,
// CHECK:       ^bb1(%[[T:.*]]: i64, %[[FROM:.*]]: !llvm.ptr, %[[TO:.*]]: !llvm.ptr):
// CHECK:         llvm.call @loop0.steps(%[[TO]], %[[FROM]],
// CHECK:         llvm.br ^bb1(%{{.*}}, %[[TO]], %[[FROM]] : i64, !llvm.ptr, !llvm.ptr)

// CHECK-NOT:   @nest2
