// RUN: xdsl-opt %s -p "join-updates" --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'join-updates{fp-reassoc=on}' --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'join-updates{fp-reassoc=flags}' --split-input-file | filecheck %s --check-prefix=FLAGS

// Both updates compute one difference: the joined cell computes it once. The update between them
// computes nothing in common, and stays; the last update does not wait for it. Before
// contraction, updates without permission for another order of terms stay apart.

// FLAGS-NOT: _and_

!f = !stencil.field<[0,64]xf64>
func.func private @more(%l: f64, %c: f64, %r: f64) -> f64 { %s = arith.addf %l, %r : f64 %d = arith.subf %s, %c : f64 %e = arith.addf %c, %d : f64 func.return %e : f64 }
func.func private @less(%c: f64, %l: f64, %r: f64) -> f64 { %s = arith.addf %l, %r : f64 %d = arith.subf %s, %c : f64 %e = arith.subf %c, %d : f64 func.return %e : f64 }
func.func private @half(%a: f64) -> f64 { %h = arith.constant 0.5 : f64 %r = arith.mulf %a, %h : f64 func.return %r : f64 }
func.func @common(%U: !f, %P: !f, %Q: !f, %W: !f, %n: index) {
  temporal.loop %n (%u = %U, %p = %P, %q = %Q, %w = %W) rotate [1, 0, 2, 3] {
    temporal.update %p = @more(%u[-1], %u[0], %u[1]) in <[1], [63]>
    temporal.update %w = @half(%w[0]) in <[1], [63]>
    temporal.update %q = @less(%u[0], %u[-1], %u[1]) in <[1], [63]>
  } : !f, !f, !f, !f
  func.return
}

// CHECK:       func.func private @more_and_less(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
// CHECK-NEXT:    %s = arith.addf %0, %2 : f64
// CHECK-NEXT:    %d = arith.subf %s, %1 : f64
// CHECK-NEXT:    %e = arith.addf %1, %d : f64
// CHECK-NEXT:    %e_1 = arith.subf %1, %d : f64
// CHECK-NEXT:    func.return %e, %e_1 : f64, f64
// CHECK-LABEL: @common
// CHECK:       temporal.update %p, %q = @more_and_less(%u[-1], %u[0], %u[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %w = @half(%w[0]) in <[1], [63]>
// CHECK-NOT:   temporal.update

// -----

// The second update reads the first one's target at the own cell: the value is handed on.

!f = !stencil.field<[0,64]xf64>
func.func private @first(%l: f64, %r: f64, %k: f64) -> f64 { %d = arith.subf %r, %l : f64 %e = arith.mulf %d, %k : f64 func.return %e : f64 }
func.func private @second(%p: f64, %l: f64, %r: f64) -> f64 { %d = arith.subf %r, %l : f64 %e = arith.mulf %d, %p : f64 func.return %e : f64 }
func.func @handed_on(%U: !f, %P: !f, %Q: !f, %n: index, %k: f64) {
  temporal.loop %n (%u = %U, %p = %P, %q = %Q) rotate [2, 1, 0] {
    temporal.update %p = @first(%u[0], %u[1]) scalars(%k) in <[1], [63]>
    temporal.update %q = @second(%p[0], %u[0], %u[1]) in <[1], [63]>
  } : !f, !f, !f
  func.return
}

// CHECK:       func.func private @first_and_second(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
// CHECK-NEXT:    %d = arith.subf %1, %0 : f64
// CHECK-NEXT:    %e = arith.mulf %d, %2 : f64
// CHECK-NEXT:    %e_1 = arith.mulf %d, %e : f64
// CHECK-NEXT:    func.return %e, %e_1 : f64, f64
// CHECK-LABEL: @handed_on
// CHECK:       temporal.update %p, %q = @first_and_second(%u[0], %u[1]) scalars(%k) in <[1], [63]>
// CHECK-NOT:   temporal.update

// -----

// The second update reads the first one's target beside the own cell, and the third writes what the
// first reads beside its own: both stay.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %s = arith.addf %a, %b : f64 %r = arith.mulf %s, %s : f64 func.return %r : f64 }
func.func @apart(%U: !f, %P: !f, %Q: !f, %n: index) {
  temporal.loop %n (%u = %U, %p = %P, %q = %Q) rotate [0, 1, 2] {
    temporal.update %p = @cell(%u[0], %u[1]) in <[1], [63]>
    temporal.update %q = @cell(%p[-1], %p[0]) in <[1], [63]>
    temporal.update %u = @cell(%u[0], %q[0]) in <[1], [63]>
  } : !f, !f, !f
  func.return
}

// CHECK-LABEL: @apart
// CHECK:       temporal.update %p = @cell(%u[0], %u[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %q = @cell(%p[-1], %p[0]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %u = @cell(%u[0], %q[0]) in <[1], [63]>
