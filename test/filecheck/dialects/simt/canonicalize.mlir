// RUN: xdsl-opt %s -p canonicalize | filecheck %s

// A mask that is on is no mask, under one that is off nothing happens, and a constant index is a part of the offset.

// CHECK-LABEL: func.func @loads(
// CHECK-NEXT:    %u, %v = simt.load %a[%i + 2] : f64, f64
// CHECK-NEXT:    %w = simt.load %a[7] mask %m : f64
// CHECK-NEXT:    %x = simt.unset : f32
// CHECK-NEXT:    %y = simt.unset : f32
// CHECK-NEXT:    func.return %u, %v, %w, %x, %y
func.func @loads(%a: memref<64xf64, 1>, %s: memref<64xf32, 3>, %i: i32, %m: i1) -> (f64, f64, f64, f32, f32) {
  %on = arith.constant true
  %off = arith.constant false
  %five = arith.constant 5 : i32
  %u, %v = simt.load %a[%i + 2] mask %on : f64, f64
  %w = simt.load %a[%five + 2] mask %m : f64
  %x, %y = simt.load %s[%i + 2] mask %off : f32, f32
  func.return %u, %v, %w, %x, %y : f64, f64, f64, f32, f32
}

// CHECK-LABEL: func.func @stores(
// CHECK-NEXT:    simt.store %u, %u to %a[%i + 4]
// CHECK-NEXT:    simt.store %u to %a[-1] mask %m
// CHECK-NEXT:    func.return
func.func @stores(%a: memref<64xf64, 1>, %u: f64, %i: i64, %m: i1) {
  %on = arith.constant true
  %off = arith.constant false
  %minus = arith.constant -4 : i64
  simt.store %u, %u to %a[%i + 4] mask %on
  simt.store %u to %a[%minus + 3] mask %m
  simt.store %u to %a[%i + 3] mask %off
  func.return
}

// CHECK-LABEL: func.func @overrides(
// CHECK-NEXT:    %o, %p = simt.load %a[%i + 1] : f64, f64
// CHECK-NEXT:    %r = simt.override %u from %a[3] mask %m
// CHECK-NEXT:    func.return %o, %p, %u, %r
func.func @overrides(%a: memref<64xf64, 1>, %u: f64, %v: f64, %i: i32, %m: i1) -> (f64, f64, f64, f64) {
  %on = arith.constant true
  %off = arith.constant false
  %two = arith.constant 2 : i32
  %o, %p = simt.override %u, %v from %a[%i + 1] mask %on
  %q = simt.override %u from %a[%i + 1] mask %off
  %r = simt.override %u from %a[%two + 1] mask %m
  func.return %o, %p, %q, %r : f64, f64, f64, f64
}

// CHECK-LABEL: func.func @prefetches(
// CHECK-NEXT:    simt.prefetch %a[3] : f64
// CHECK-NEXT:    simt.prefetch %a[%i + 2] mask %m : f64
// CHECK-NEXT:    func.return
func.func @prefetches(%a: memref<64xf64, 1>, %i: i32, %m: i1) {
  %on = arith.constant true
  %off = arith.constant false
  %one = arith.constant 1 : i32
  simt.prefetch %a[%one + 2] mask %on : f64
  simt.prefetch %a[%i + 2] mask %m : f64
  simt.prefetch %a[%i + 2] mask %off : f64
  func.return
}

// A copy under a mask that is off fills the target with zeros.
// CHECK-LABEL: func.func @copies(
// CHECK:         simt.copy_async %ring[10], %a[%i + -2] bytes 16
// CHECK-NEXT:    simt.copy_async %ring[%i + 0], %a[6] bytes 8 mask %m
// CHECK-NEXT:    simt.copy_async %ring[%i + 0], %a[%i + 0] bytes 8 mask %off
// CHECK-NEXT:    func.return
func.func @copies(%ring: memref<64xf64, 3>, %a: memref<64xf64, 1>, %i: i64, %m: i1) {
  %on = arith.constant true
  %off = arith.constant false
  %eight = arith.constant 8 : i64
  simt.copy_async %ring[%eight + 2], %a[%i + -2] bytes 16 mask %on
  simt.copy_async %ring[%i + 0], %a[%eight + -2] bytes 8 mask %m
  simt.copy_async %ring[%i + 0], %a[%i + 0] bytes 8 mask %off
  func.return
}

// CHECK-LABEL: func.func @sends(
// CHECK-NEXT:    simt.send %u, %u to %peer[%i + 2] arrivals %w phase %i
// CHECK-NEXT:    simt.send %u to %peer[5] mask %m arrivals %w phase %i
// CHECK-NEXT:    func.return
func.func @sends(%peer: memref<64xf64, 7>, %w: memref<2xi64, 7>, %u: f64, %i: i32, %m: i1) {
  %on = arith.constant true
  %off = arith.constant false
  %three = arith.constant 3 : i32
  simt.send %u, %u to %peer[%i + 2] mask %on arrivals %w phase %i
  simt.send %u to %peer[%three + 2] mask %m arrivals %w phase %i
  simt.send %u to %peer[%i + 2] mask %off arrivals %w phase %i
  func.return
}

// CHECK-LABEL: func.func @messages(
// CHECK-NEXT:    simt.post %u, %u to %buffer[32, 96] number %n
// CHECK-NEXT:    simt.post %u to %buffer[%n + 0]
// CHECK-NEXT:    %a, %b = simt.take %buffer[160, 224] number %n : f64, f64
// CHECK-NEXT:    func.return %a, %b
func.func @messages(%buffer: memref<512xi64, 1>, %u: f64, %n: i32) -> (f64, f64) {
  %place = arith.constant 32 : i32
  simt.post %u, %u to %buffer[%place + 0, 64] number %n
  simt.post %u to %buffer[%n + 0]
  %a, %b = simt.take %buffer[%place + 128, 192] number %n : f64, f64
  func.return %a, %b : f64, f64
}

// Constants are uniform, and what is uniform stays so; halves that were joined are themselves, and so is a value whose
// halves are joined in order, as its own type.
// CHECK-LABEL: func.func @folded(
// CHECK-NEXT:    %on = arith.constant true
// CHECK-NEXT:    %five = arith.constant 5 : i32
// CHECK-NEXT:    %t = simt.uniform %lo : i32
// CHECK-NEXT:    %p = simt.all %m : i1
// CHECK-NEXT:    %a, %b = simt.split %v : f64
// CHECK-NEXT:    %x = simt.join %b, %a : f64
// CHECK-NEXT:    %y = simt.join %a, %b : i64
// CHECK-NEXT:    func.return %on, %p, %five, %t, %lo, %hi, %v, %x, %y
func.func @folded(%lo: i32, %hi: i32, %v: f64, %m: i1) -> (i1, i1, i32, i32, i32, i32, f64, f64, i64) {
  %on = arith.constant true
  %o = simt.all %on : i1
  %five = arith.constant 5 : i32
  %s = simt.uniform %five : i32
  %t = simt.uniform %lo : i32
  %u = simt.uniform %t : i32
  %p = simt.all %m : i1
  %q = simt.all %p : i1
  %j = simt.join %lo, %hi : f64
  %l, %h = simt.split %j : f64
  %a, %b = simt.split %v : f64
  %w = simt.join %a, %b : f64
  %x = simt.join %b, %a : f64
  %y = simt.join %a, %b : i64
  func.return %o, %q, %s, %u, %l, %h, %w, %x, %y : i1, i1, i32, i32, i32, i32, f64, f64, i64
}
