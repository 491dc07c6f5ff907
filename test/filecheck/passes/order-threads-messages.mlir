// RUN: xdsl-opt %s -p order-threads | filecheck %s

// Where blocks send each other messages, takes keep their place behind the wait and ahead of the edge rows
// that read them, posts theirs ahead of the arrival. Barriers of the blocks hold everything in its place.

// CHECK-NOT:   simt.mark
// CHECK-LABEL: func.func @messages
// CHECK:         scf.for
func.func @messages(%n: i32, %dst: memref<4096xf64, 1>, %buffer: memref<64xf64, 3>, %words: memref<512xi64, 1>,
                    %w: memref<1xi64, 3>, %k: f64, %beside: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unset = simt.unset : f64
  %r0, %r1 = scf.for %i = %zero to %n step %one iter_args(%u0 = %unset, %u1 = %unset) -> (f64, f64) : i32 {
    // CHECK-NEXT:  %next = arith.addi %i, %one : i32
    // CHECK-NEXT:  %edge_sum = arith.mulf %u0, %k : f64
    // CHECK-NEXT:  simt.wait %w phase %i
    // CHECK-NEXT:  scf.if %beside {
    // CHECK-NEXT:    %came = simt.take %words[%i + 0] number %i : f64
    // CHECK-NEXT:    simt.store %came to %buffer[%i + 0]
    // CHECK-NEXT:  }
    // CHECK-NEXT:  %above = simt.load %buffer[%i + 0] : f64
    // CHECK-NEXT:  %edge = arith.addf %edge_sum, %above : f64
    // CHECK-NEXT:  simt.store %edge to %buffer[%i + 1]
    // CHECK-NEXT:  scf.if %beside {
    // CHECK-NEXT:    simt.post %edge to %words[%i + 64] number %next
    // CHECK-NEXT:  }
    // CHECK-NEXT:  simt.arrive %w phase %i
    // CHECK-NEXT:  simt.store %edge to %dst[%i + 0]
    // CHECK-NEXT:  %inner_sum = arith.mulf %u1, %k : f64
    // CHECK-NEXT:  %inner = arith.addf %inner_sum, %edge : f64
    // CHECK-NEXT:  simt.store %inner to %dst[%i + 1]
    // CHECK-NEXT:  scf.yield %edge, %inner
    simt.mark step 0 stage -1 row 0
    simt.wait %w phase %i : memref<1xi64, 3>
    scf.if %beside {
      %came = simt.take %words[%i + 0] number %i : f64
      simt.store %came to %buffer[%i + 0]
    }
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
    %next = arith.addi %i, %one : i32
    scf.if %beside {
      simt.post %edge to %words[%i + 64] number %next
    }
    simt.arrive %w phase %i : memref<1xi64, 3>
    scf.yield %edge, %inner : f64, f64
  }
  func.return
}

// Nobody arrives: what is early comes first, and the rest stands as it stood.
// CHECK-LABEL: func.func @barriers
// CHECK:         scf.for
func.func @barriers(%n: i32, %dst: memref<4096xf64, 1>, %words: memref<512xi64, 1>, %k: f64, %beside: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unset = simt.unset : f64
  %r0 = scf.for %i = %zero to %n step %one iter_args(%u0 = %unset) -> (f64) : i32 {
    // CHECK-NEXT:  %sum = arith.mulf %u0, %k : f64
    // CHECK-NEXT:  %next = arith.addi %i, %one : i32
    // CHECK-NEXT:  simt.tile_barrier %words[] number %next blocks 2
    // CHECK-NEXT:  %came = simt.take %words[%i + 2] : f64
    // CHECK-NEXT:  %edge = arith.addf %sum, %came : f64
    // CHECK-NEXT:  simt.store %edge to %dst[%i + 0]
    // CHECK-NEXT:  scf.if %beside {
    // CHECK-NEXT:    simt.post %edge to %words[%i + 64]
    // CHECK-NEXT:  }
    // CHECK-NEXT:  scf.yield %edge
    simt.mark step 0 stage -1 row 0
    %next = arith.addi %i, %one : i32
    simt.tile_barrier %words[] number %next blocks 2
    %came = simt.take %words[%i + 2] : f64
    simt.mark step 0 stage 1 row 0
    %sum = arith.mulf %u0, %k : f64
    %edge = arith.addf %sum, %came : f64
    simt.mark step 0 stage 2 row 0 inner
    simt.store %edge to %dst[%i + 0]
    simt.mark step 0 stage 3 row 0
    scf.if %beside {
      simt.post %edge to %words[%i + 64]
    }
    scf.yield %edge : f64
  }
  func.return
}
