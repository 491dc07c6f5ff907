// RUN: xdsl-opt %s -p order-threads | filecheck %s

// Where warps arrive and wait, the rows that other warps have to do with come first: what is early of
// them, the wait, what is late, the sending, the arrival. The inner rows follow, each whole.

// CHECK-NOT:   simt.mark
// CHECK-LABEL: func.func @one_step
// CHECK:         scf.for
func.func @one_step(%n: i32, %dst: memref<4096xf64, 1>, %buffer: memref<64xf64, 3>,
                    %w: memref<1xi64, 3>, %k: f64) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unset = simt.unset : f64
  %r0, %r1 = scf.for %i = %zero to %n step %one iter_args(%u0 = %unset, %u1 = %unset) -> (f64, f64) : i32 {
    // CHECK-NEXT:  %edge_sum = arith.mulf %u0, %k : f64
    // CHECK-NEXT:  simt.wait %w phase %i
    // CHECK-NEXT:  %above = simt.load %buffer[%i + 0] : f64
    // CHECK-NEXT:  %edge = arith.addf %edge_sum, %above : f64
    // CHECK-NEXT:  simt.store %edge to %buffer[%i + 1]
    // CHECK-NEXT:  simt.arrive %w phase %i
    // CHECK-NEXT:  simt.store %edge to %dst[%i + 0]
    // CHECK-NEXT:  %inner_sum = arith.mulf %u1, %k : f64
    // CHECK-NEXT:  %inner = arith.addf %inner_sum, %edge : f64
    // CHECK-NEXT:  simt.store %inner to %dst[%i + 1]
    // CHECK-NEXT:  scf.yield %edge, %inner
    simt.mark step 0 stage -1 row 0
    simt.wait %w phase %i : memref<1xi64, 3>
    simt.mark step 0 stage 1 row 0
    %edge_sum = arith.mulf %u0, %k : f64
    %above = simt.load %buffer[%i + 0] : f64
    %edge = arith.addf %edge_sum, %above : f64
    simt.mark step 0 stage 1 row 1 inner
    %inner_sum = arith.mulf %u1, %k : f64
    %inner = arith.addf %inner_sum, %edge : f64
    simt.mark step 0 stage 2 row 0
    simt.store %edge to %buffer[%i + 1]
    simt.mark step 0 stage 3 row 0 inner
    simt.store %edge to %dst[%i + 0]
    simt.mark step 0 stage 3 row 1 inner
    simt.store %inner to %dst[%i + 1]
    simt.mark step 0 stage 4 row 0
    simt.arrive %w phase %i : memref<1xi64, 3>
    scf.yield %edge, %inner : f64, f64
  }
  func.return
}
