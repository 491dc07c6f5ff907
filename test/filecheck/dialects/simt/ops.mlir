// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: xdsl-opt %s -p dce | filecheck %s --check-prefix=DCE

// Every operation of the simt dialect prints, and parses back, in its own and in generic form, on
// buffers as the gpu level has them and on pointers as the nvvm level has them.

// CHECK-LABEL: func.func @accesses
func.func @accesses(%a: memref<64xf64, 1>, %s: memref<64xf32, 3>, %p: !llvm.ptr<1>, %i: i32, %m: i1) {
  // CHECK-NEXT: %u, %v = simt.load %a[%i + -2] mask %m : f64, f64
  %u, %v = simt.load %a[%i + -2] mask %m : f64, f64
  // CHECK-NEXT: %w = simt.load %p[3] : f64
  // GENERIC:      %w = "simt.load"(%p) <{offset = 3 : i64, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!llvm.ptr<1>) -> f64
  %w = simt.load %p[3] : f64
  // CHECK-NEXT: %x0, %x1, %x2, %x3 = simt.load %s[%i + 0] : f32, f32, f32, f32
  %x0, %x1, %x2, %x3 = simt.load %s[%i + 0] : f32, f32, f32, f32
  // CHECK-NEXT: simt.store %u, %v to %a[%i + 4] mask %m
  simt.store %u, %v to %a[%i + 4] mask %m
  // CHECK-NEXT: simt.store %x0 to %s[0]
  simt.store %x0 to %s[0]
  // CHECK-NEXT: %o = simt.override %u from %a[%i + 1] mask %m
  // GENERIC:      %o = "simt.override"(%u, %a, %i, %m) <{offset = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1>}>
  %o = simt.override %u from %a[%i + 1] mask %m
  // CHECK-NEXT: %o0, %o1 = simt.override %u, %v from %p[0] mask %m
  %o0, %o1 = simt.override %u, %v from %p[0] mask %m
  // CHECK-NEXT: simt.prefetch %a[%i + 2] mask %m : f64
  // GENERIC:      "simt.prefetch"(%a, %i, %m) <{offset = 2 : i64, cell = f64, operandSegmentSizes = array<i32: 1, 1, 1>}> : (memref<64xf64, 1 : i64>, i32, i1) -> ()
  simt.prefetch %a[%i + 2] mask %m : f64
  // CHECK-NEXT: simt.prefetch %p[-1] : f32
  // GENERIC-NEXT: "simt.prefetch"(%p) <{offset = -1 : i64, cell = f32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!llvm.ptr<1>) -> ()
  simt.prefetch %p[-1] : f32
  func.return
}

// CHECK-LABEL: func.func @copies
func.func @copies(%ring: memref<64xf64, 3>, %a: memref<64xf64, 1>, %r: !llvm.ptr<3>, %p: !llvm.ptr<1>, %i: i64, %m: i1) {
  // CHECK-NEXT: simt.copy_async %ring[%i + 2], %a[%i + -2] bytes 16 mask %m
  simt.copy_async %ring[%i + 2], %a[%i + -2] bytes 16 mask %m
  // CHECK-NEXT: simt.copy_async %ring[0], %a[%i + 1] bytes 8
  simt.copy_async %ring[0], %a[%i + 1] bytes 8
  // CHECK-NEXT: simt.copy_async %r[0], %p[0] bytes 4
  simt.copy_async %r[0], %p[0] bytes 4
  func.return
}

// CHECK-LABEL: func.func @threads
func.func @threads(%v: f64, %f: f32, %warp: i32, %c: i1) {
  // CHECK-NEXT: %l = simt.shuffle %v delta -1 : f64
  %l = simt.shuffle %v delta -1 : f64
  // CHECK-NEXT: %r = simt.shuffle %f delta 31 : f32
  %r = simt.shuffle %f delta 31 : f32
  // CHECK-NEXT: %pick = simt.pick %v lane %warp : f64
  %pick = simt.pick %v lane %warp : f64
  // CHECK-NEXT: %u = simt.uniform %warp : i32
  %u = simt.uniform %warp : i32
  // CHECK-NEXT: %all = simt.all %c : i1
  %all = simt.all %c : i1
  // CHECK-NEXT: %ring = simt.shared at 0 : memref<512xf64, 3 : i64>
  %ring = simt.shared at 0 : memref<512xf64, 3 : i64>
  // CHECK-NEXT: %buffer = simt.shared at 4096 : !llvm.ptr<3>
  %buffer = simt.shared at 4096 : !llvm.ptr<3>
  // CHECK-NEXT: %n = simt.unset : f64
  %n = simt.unset : f64
  // CHECK-NEXT: simt.mark step 1 stage 3 row 0
  simt.mark step 1 stage 3 row 0
  // CHECK-NEXT: %lo, %hi = simt.split %v : f64
  %lo, %hi = simt.split %v : f64
  // CHECK-NEXT: %j = simt.join %lo, %hi : f64
  %j = simt.join %lo, %hi : f64
  // CHECK-NEXT: %q = simt.reciprocal %v : f64
  %q = simt.reciprocal %v : f64
  // CHECK-NEXT: %s = simt.reciprocal_root %f : f32
  %s = simt.reciprocal_root %f : f32
  // CHECK-NEXT: %t = simt.fma_up %f, %s, %f : f32
  %t = simt.fma_up %f, %s, %f : f32
  func.return
}

// What is not used may be erased, unless it orders, copies or writes.
// DCE-LABEL: func.func @accesses
// DCE-NOT:   simt.load %p
// DCE:       simt.store
// DCE:       simt.store
// DCE-NOT:   simt.override
// DCE-LABEL: func.func @copies
// DCE-COUNT-3: simt.copy_async
// DCE-LABEL: func.func @threads
// DCE-NOT:   simt.{{shuffle|uniform|shared|unset|split|join|all|reciprocal|fma_up}}
// DCE:       simt.mark
// DCE-NOT:   simt.{{shuffle|uniform|shared|unset|split|join|all|reciprocal|fma_up}}
// DCE-LABEL: func.func @two_halves
// DCE:       simt.expect
// DCE:       simt.cluster_barrier
// DCE:       simt.wait
// DCE:       simt.send
// DCE:       simt.arrive
// DCE-LABEL: func.func @messages
// DCE-COUNT-2: simt.take
// DCE:       simt.post
// DCE:       simt.tile_barrier
// DCE:       simt.launches_ended
// DCE:       simt.end_launch

// CHECK-LABEL: func.func @two_halves
func.func @two_halves(%v: f64, %i: i32, %m: i1, %phase: i32, %bytes: i32, %rank: i32) {
  // CHECK: simt.mark step 1 stage 2 row 3 inner
  simt.mark step 1 stage 2 row 3 inner
  // CHECK: %w = simt.shared at 0 : memref<2xi64, 3 : i64>
  %w = simt.shared at 0 : memref<2xi64, 3>
  // CHECK-NEXT: %buffer = simt.shared at 128 : memref<64xf64, 3 : i64>
  %buffer = simt.shared at 128 : memref<64xf64, 3>
  // CHECK-NEXT: simt.expect %w warps 8
  simt.expect %w warps 8
  // CHECK-NEXT: simt.cluster_barrier
  simt.cluster_barrier
  // CHECK-NEXT: simt.wait %w phase %phase : memref<2xi64, 3 : i64>
  simt.wait %w phase %phase : memref<2xi64, 3>
  // CHECK-NEXT: %peer = simt.peer %buffer block %rank : memref<64xf64, 3 : i64> -> memref<64xf64, 7 : i64>
  %peer = simt.peer %buffer block %rank : memref<64xf64, 3> -> memref<64xf64, 7>
  // CHECK-NEXT: %there = simt.peer %w block %rank : memref<2xi64, 3 : i64> -> memref<2xi64, 7 : i64>
  %there = simt.peer %w block %rank : memref<2xi64, 3> -> memref<2xi64, 7>
  // CHECK-NEXT: simt.send %v, %v to %peer[%i + 2] mask %m arrivals %there phase %phase
  simt.send %v, %v to %peer[%i + 2] mask %m arrivals %there phase %phase
  // CHECK-NEXT: simt.send %v to %peer[0] arrivals %there phase %phase
  simt.send %v to %peer[0] arrivals %there phase %phase
  // CHECK-NEXT: simt.arrive %w phase %phase bytes %bytes : memref<2xi64, 3 : i64>
  simt.arrive %w phase %phase bytes %bytes : memref<2xi64, 3>
  // CHECK-NEXT: simt.arrive %w phase %phase : memref<2xi64, 3 : i64>
  simt.arrive %w phase %phase : memref<2xi64, 3>
  func.return
}

// CHECK-LABEL: func.func @messages
func.func @messages(%buffer: memref<512xi64, 1>, %p: !llvm.ptr<1>, %i: i32, %n: i32, %f: f32) {
  // CHECK-NEXT: %a, %b = simt.take %buffer[%i + 0, 64] number %n : f64, f64
  // GENERIC:      %a, %b = "simt.take"(%buffer, %i, %n) <{offsets = array<i64: 0, 64>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (memref<512xi64, 1 : i64>, i32, i32) -> (f64, f64)
  %a, %b = simt.take %buffer[%i + 0, 64] number %n : f64, f64
  // CHECK-NEXT: %c, %d, %e = simt.take %p[64, 0, -32] number %n : f32, f32, f32
  %c, %d, %e = simt.take %p[64, 0, -32] number %n : f32, f32, f32
  // CHECK-NEXT: simt.post %a, %b to %buffer[%i + 0, 64] number %n
  // GENERIC:      "simt.post"(%a, %b, %buffer, %i, %n) <{offsets = array<i64: 0, 64>, operandSegmentSizes = array<i32: 2, 1, 1, 1>}> : (f64, f64, memref<512xi64, 1 : i64>, i32, i32) -> ()
  simt.post %a, %b to %buffer[%i + 0, 64] number %n
  // CHECK-NEXT: simt.post %f to %p[32] number %n
  simt.post %f to %p[32] number %n
  // CHECK-NEXT: simt.tile_barrier %buffer[%i] number %n blocks 13
  // GENERIC:      "simt.tile_barrier"(%buffer, %i, %n) <{blocks = 13 : i64}> : (memref<512xi64, 1 : i64>, i32, i32) -> ()
  simt.tile_barrier %buffer[%i] number %n blocks 13
  // CHECK-NEXT: simt.tile_barrier %p[] number %n blocks 2
  simt.tile_barrier %p[] number %n blocks 2
  // CHECK-NEXT: %l = simt.launches_ended %buffer : i32
  // GENERIC:      %l = "simt.launches_ended"(%buffer) : (memref<512xi64, 1 : i64>) -> i32
  %l = simt.launches_ended %buffer : i32
  // CHECK-NEXT: simt.end_launch %p number %l
  // GENERIC:      "simt.end_launch"(%p, %l) : (!llvm.ptr<1>, i32) -> ()
  simt.end_launch %p number %l
  func.return
}
