// RUN: xdsl-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Refusals by the verifiers of the simt dialect. Each sentence stands above its operation, with the
// found and the expected value.

func.func @mixed_cells(%p: !llvm.ptr<1>) {
  // CHECK: an access is of one or more cells of one type
  %a, %b = simt.load %p[0] : f64, f32
  func.return
}

// -----

func.func @no_cells(%p: !llvm.ptr<1>) {
  // CHECK: an access is of one or more cells of one type
  "simt.load"(%p) <{offset = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0>}> : (!llvm.ptr<1>) -> ()
  func.return
}

// -----

func.func @bytes(%p: !llvm.ptr<1>) {
  // CHECK: an access is of one or more cells of one type
  %a = simt.load %p[0] : i4
  func.return
}

// -----

func.func @three_cells(%p: !llvm.ptr<1>) {
  // CHECK: a thread accesses 1, 2 or 4 cells of 16 bytes at most, got 3
  %a, %b, %c = simt.load %p[0] : f32, f32, f32
  func.return
}

// -----

func.func @too_wide(%p: !llvm.ptr<1>, %v: f64) {
  // CHECK: a thread accesses 1, 2 or 4 cells of 16 bytes at most, got 4
  simt.store %v, %v, %v, %v to %p[0]
  func.return
}

// -----

func.func @buffer_type(%a: memref<8xf64, 1>, %v: f32) {
  // CHECK: cells of f32 in a buffer of f64
  simt.store %v to %a[0]
  func.return
}

// -----

func.func @prefetched_type(%a: memref<8xf64, 1>) {
  // CHECK: sym_name = "prefetched_type"
  // CHECK: Operation does not verify: cells of f32 in a buffer of f64
  simt.prefetch %a[0] : f32
  func.return
}

// -----

func.func @prefetched_bytes(%p: !llvm.ptr<1>) {
  // CHECK: sym_name = "prefetched_bytes"
  // CHECK: Operation does not verify: an access is of one or more cells of one type
  simt.prefetch %p[0] : i4
  func.return
}

// -----

func.func @prefetched_from_shared(%s: memref<8xf32, 3>) {
  // CHECK: sym_name = "prefetched_from_shared"
  // CHECK: Operation does not verify: a prefetch reads global memory
  simt.prefetch %s[0] : f32
  func.return
}

// -----

func.func @no_mask(%p: !llvm.ptr<1>, %v: f64) {
  // CHECK: an override has a mask
  %o = "simt.override"(%v, %p) <{offset = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (f64, !llvm.ptr<1>) -> f64
  func.return
}

// -----

func.func @no_mask_parsed(%p: !llvm.ptr<1>, %v: f64) {
  // CHECK: an override has a mask
  %o = simt.override %v from %p[0]
  func.return
}

// -----

func.func @copy_size(%s: !llvm.ptr<3>, %p: !llvm.ptr<1>) {
  // CHECK: an asynchronous copy moves 4, 8 or 16 bytes, got 12
  simt.copy_async %s[0], %p[0] bytes 12
  func.return
}

// -----

func.func @copy_back(%s: !llvm.ptr<3>, %p: !llvm.ptr<1>) {
  // CHECK: an asynchronous copy goes from global to shared memory
  simt.copy_async %p[0], %s[0] bytes 16
  func.return
}

// -----

func.func @copy_to_nowhere(%s: memref<8xf64>, %p: !llvm.ptr<1>) {
  // CHECK: memref<8xf64> names no address space
  simt.copy_async %s[0], %p[0] bytes 16
  func.return
}

// -----

func.func @shuffle_of_bytes(%v: i8) {
  // CHECK: a shuffle moves 4 or 8 bytes, got i8
  %r = simt.shuffle %v delta 1 : i8
  func.return
}

// -----

func.func @shuffle_changes_type(%v: i64) {
  // CHECK: a shuffle moves 4 or 8 bytes, got i64
  %r = "simt.shuffle"(%v) <{delta = 1 : i64}> : (i64) -> f64
  func.return
}

// -----

func.func @pick_of_bytes(%v: i8, %l: i32) {
  // CHECK: a lane gives 4 or 8 bytes, got i8
  %r = simt.pick %v lane %l : i8
  func.return
}

// -----

func.func @shuffle_to_itself(%v: f64) {
  // CHECK: a shuffle reaches 1 to 31 lanes, got 0
  %r = simt.shuffle %v delta 0 : f64
  func.return
}

// -----

func.func @shuffle_too_far(%v: f64) {
  // CHECK: a shuffle reaches 1 to 31 lanes, got -32
  %r = simt.shuffle %v delta -32 : f64
  func.return
}

// -----

func.func @shared_elsewhere() {
  // CHECK: shared memory lives in address space 3
  %s = simt.shared at 0 : memref<8xf64, 1 : i64>
  func.return
}

// -----

func.func @shared_unaligned() {
  // CHECK: a slice starts at a multiple of 16 bytes, got 8
  %s = simt.shared at 8 : memref<8xf64, 3 : i64>
  func.return
}

// -----

func.func @undefined_index(%p: !llvm.ptr<1>) {
  // CHECK: %i is not defined above
  %a = simt.load %p[%i + 0] : f64
  func.return
}

// -----

func.func @arrivals_in_global_memory(%w: memref<1xi64, 1>, %p: i32) {
  // CHECK: arrivals are counted in 64-bit words of shared memory
  simt.wait %w phase %p : memref<1xi64, 1>
  func.return
}

// -----

func.func @narrow_arrivals(%w: memref<1xi32, 3>, %p: i32) {
  // CHECK: arrivals are counted in 64-bit words of shared memory
  simt.arrive %w phase %p : memref<1xi32, 3>
  func.return
}

// -----

func.func @three_words(%w: memref<3xi64, 3>) {
  // CHECK: arrivals are counted in one word, or in two words by turns
  simt.expect %w warps 4
  func.return
}

// -----

func.func @peer_of_global_memory(%a: memref<8xf64, 1>, %r: i32) {
  // CHECK: a block's buffer, space 3, has a peer in the cluster, space 7
  %p = simt.peer %a block %r : memref<8xf64, 1> -> memref<8xf64, 7>
  func.return
}

// -----

func.func @send_to_own_block(%v: f64, %a: memref<8xf64, 3>, %w: memref<2xi64, 7>, %p: i32) {
  // CHECK: cells are sent to a peer, and counted there: space 7
  simt.send %v to %a[0] arrivals %w phase %p
  func.return
}

// -----

func.func @message_of_two_types(%buffer: memref<8xi64, 1>, %n: i32) {
  // CHECK: a message is of one or more cells of one type
  %a, %b = simt.take %buffer[0, 2] number %n : f64, f32
  func.return
}

// -----

func.func @empty_message(%buffer: memref<8xi64, 1>, %n: i32) {
  // CHECK: a message is of one or more cells of one type
  "simt.take"(%buffer, %n) <{offsets = array<i64>, operandSegmentSizes = array<i32: 1, 0, 1>}> : (memref<8xi64, 1>, i32) -> ()
  func.return
}

// -----

func.func @message_of_half_floats(%v: f16, %buffer: memref<8xi64, 1>, %n: i32) {
  // CHECK: a message is of one or more cells of one type
  simt.post %v to %buffer[0] number %n
  func.return
}

// -----

func.func @cells_without_a_place(%v: f64, %buffer: memref<8xi64, 1>, %n: i32) {
  // CHECK: 2 cells at 1 places
  simt.post %v, %v to %buffer[0] number %n
  func.return
}

// -----

func.func @message_inside_a_block(%v: f64, %buffer: memref<8xi64, 3>, %n: i32) {
  // CHECK: messages between blocks go through global memory
  simt.post %v to %buffer[0] number %n
  func.return
}

// -----

func.func @message_in_a_field(%buffer: memref<8xf64, 1>, %n: i32) {
  // CHECK: messages are kept in 64-bit words
  %a = simt.take %buffer[0] number %n : f64
  func.return
}

// -----

func.func @tile_barrier_inside_a_block(%w: memref<1xi64, 3>, %n: i32) {
  // CHECK: blocks count each other in 64-bit words of global memory
  simt.tile_barrier %w[] number %n blocks 2
  func.return
}

// -----

func.func @launches_counted_inside_a_block(%w: memref<1xi64, 3>) {
  // CHECK: launches are counted in 64-bit words of global memory
  %n = simt.launches_ended %w : i32
  func.return
}

// -----

func.func @launches_ended_in_narrow_words(%w: memref<1xi32, 1>, %n: i32) {
  // CHECK: launches are counted in 64-bit words of global memory
  simt.end_launch %w number %n
  func.return
}

// -----

func.func @tile_barrier_in_narrow_words(%w: memref<1xi32, 1>, %n: i32) {
  // CHECK: blocks count each other in 64-bit words of global memory
  simt.tile_barrier %w[] number %n blocks 2
  func.return
}
