// RUN: xdsl-opt %s -p order-threads | filecheck %s

// Operations without this step's plane come first, from the last stage down. Waits, synchronisation, accesses
// to shared memory and writes keep their order, and so do all operations behind them.

// CHECK-NOT:   simt.mark
// CHECK-LABEL: func.func @two_steps
// CHECK:         scf.for
func.func @two_steps(%n: i32, %field: memref<4096xf64, 1>, %ring: memref<64xf64, 3>, %k: f64) {
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %unset = simt.unset : f64
  %r0, %r1 = scf.for %i = %zero to %n step %two iter_args(%u0 = %unset, %u1 = %unset) -> (f64, f64) : i32 {
    // The partial sum of stage 2, then the partial sum of stage 1 with its load.
    // CHECK-NEXT:  %p2 = arith.mulf %u1, %k : f64
    // CHECK-NEXT:  %h = simt.load %field[%i + 8] : f64
    // CHECK-NEXT:  %p1 = arith.addf %u0, %h : f64
    // Then this step's plane and its readers, in their old order.
    // CHECK-NEXT:  "gpu.barrier"
    // CHECK-NEXT:  "nvvm.cp.async.wait.group"
    // CHECK-NEXT:  %new = simt.load %ring[%i + 0] : f64
    // CHECK-NEXT:  simt.copy_async
    // CHECK-NEXT:  "nvvm.cp.async.commit.group"
    // CHECK-NEXT:  %q1 = arith.addf %p1, %new : f64
    // CHECK-NEXT:  %l1 = simt.shuffle %q1 delta -1 : f64
    // CHECK-NEXT:  %q2 = arith.addf %p2, %l1 : f64
    // CHECK-NEXT:  simt.store %q2
    simt.mark step 0 stage -1 row 0
    "gpu.barrier"() : () -> ()
    simt.mark step 0 stage 0 row 0
    "nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()
    %new = simt.load %ring[%i + 0] : f64
    simt.copy_async %ring[%i + 3], %field[%i + 3] bytes 8
    "nvvm.cp.async.commit.group"() : () -> ()
    simt.mark step 0 stage 1 row 0
    %h = simt.load %field[%i + 8] : f64
    %p1 = arith.addf %u0, %h : f64
    %q1 = arith.addf %p1, %new : f64
    simt.mark step 0 stage 2 row 0
    %l1 = simt.shuffle %q1 delta -1 : f64
    %p2 = arith.mulf %u1, %k : f64
    %q2 = arith.addf %p2, %l1 : f64
    simt.store %q2 to %field[%i + 100]
    // The second step of the unrolled body stays behind the first one, and early within itself.
    // CHECK-NEXT:  %early = arith.mulf %k, %k : f64
    // CHECK-NEXT:  "gpu.barrier"
    // CHECK-NEXT:  %late = simt.load %ring[%i + 1] : f64
    // CHECK-NEXT:  %s = arith.addf %late, %early : f64
    // CHECK-NEXT:  scf.yield %new, %s : f64, f64
    simt.mark step 1 stage -1 row 0
    "gpu.barrier"() : () -> ()
    simt.mark step 1 stage 0 row 0
    %late = simt.load %ring[%i + 1] : f64
    simt.mark step 1 stage 1 row 0
    %early = arith.mulf %k, %k : f64
    %s = arith.addf %late, %early : f64
    scf.yield %new, %s : f64, f64
  }
  func.return
}

// A branch is late if an operation inside is late. Values used by the branch come first.
// CHECK-LABEL: func.func @branch
// CHECK:         scf.for
// CHECK-NEXT:      %sum = arith.addf %k, %k : f64
// CHECK-NEXT:      "gpu.barrier"
// CHECK-NEXT:      %v = scf.if %mask -> (f64) {
// CHECK-NEXT:        simt.load %ring[0]
func.func @branch(%n: i32, %ring: memref<64xf64, 3>, %mask: i1, %k: f64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    simt.mark step 0 stage -1 row 0
    "gpu.barrier"() : () -> ()
    simt.mark step 0 stage 0 row 0
    %sum = arith.addf %k, %k : f64
    %v = scf.if %mask -> (f64) {
      %late = simt.load %ring[0] : f64
      scf.yield %late : f64
    } else {
      scf.yield %sum : f64
    }
    simt.store %v to %ring[1]
    scf.yield
  }
  func.return
}

// Code without marks is nobody's stream loop, and is left alone.
// CHECK-LABEL: func.func @unmarked
// CHECK-NEXT:    %v = simt.load %ring[0] : f64
// CHECK-NEXT:    %w = arith.addf %k, %k : f64
func.func @unmarked(%ring: memref<64xf64, 3>, %k: f64) {
  %v = simt.load %ring[0] : f64
  %w = arith.addf %k, %k : f64
  func.return
}
