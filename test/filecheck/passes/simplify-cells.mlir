// RUN: xdsl-opt %s -p simplify-cells --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'simplify-cells{fp-division=fast}' --split-input-file | filecheck %s --check-prefix=FAST

// Quotients by powers of two become products, and what depends on constants alone a constant. Others are
// products only where that is allowed, by the operation or by the option.

!field = !stencil.field<[0,8]xf64>

// CHECK-LABEL: func.func private @quotients(%x: f64, %y: f64) -> f64 {
// CHECK-NEXT:    [[quarter:%[0-9]+]] = arith.constant -2.500000e-01 : f64
// CHECK-NEXT:    %q = arith.mulf %x, [[quarter]] : f64
// CHECK-NEXT:    %three = arith.constant 3.000000e+00 : f64
// CHECK-NEXT:    %r = arith.divf %q, %three : f64
// CHECK-NEXT:    [[fifth:%[0-9]+]] = arith.constant 2.000000e-01 : f64
// CHECK-NEXT:    %s = arith.mulf %r, [[fifth]] fastmath<arcp> : f64
// CHECK-NEXT:    %t = arith.divf %s, %y : f64
// CHECK-NEXT:    func.return %t : f64
// FAST-LABEL:  func.func private @quotients(
// FAST-NOT:      arith.divf %q
// FAST:          [[third:%[0-9]+]] = arith.constant 0.33333333333333331 : f64
// FAST-NEXT:     %r = arith.mulf %q, [[third]] : f64
// FAST:          %t = arith.divf %s, %y fastmath<afn> : f64
func.func private @quotients(%x: f64, %y: f64) -> f64 {
  %minus_four = arith.constant -4.0 : f64
  %q = arith.divf %x, %minus_four : f64
  %three = arith.constant 3.0 : f64
  %r = arith.divf %q, %three : f64
  %five = arith.constant 5.0 : f64
  %s = arith.divf %r, %five fastmath<arcp> : f64
  %t = arith.divf %s, %y : f64
  func.return %t : f64
}

func.func @program(%A: !field, %B: !field, %n: index) {
  %a, %b = temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %v = @quotients(%u[0], %u[1]) in <[0], [7]>
  } : !field, !field
  func.return
}

// -----

// Constants are folded and rounded to their type; what is not finite is left, and so is a reciprocal
// that is none.

!field = !stencil.field<[0,8]xf32>

// CHECK-LABEL: func.func private @constants(%x: f32) -> f32 {
// CHECK-NEXT:    %r = arith.constant -0.0999999046 : f32
// CHECK-NEXT:    %p = arith.mulf %x, %r : f32
// CHECK-NEXT:    %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %d = arith.divf %p, %zero : f32
// CHECK-NEXT:    %minus = arith.constant -1.000000e+00 : f32
// CHECK-NEXT:    %s = math.sqrt %minus : f32
// CHECK-NEXT:    %tiny = arith.constant 9.999950e-41 : f32
// CHECK-NEXT:    %e = arith.divf %d, %tiny : f32
// FAST-LABEL:  func.func private @constants(
// FAST:          arith.divf %p, %zero fastmath<afn> : f32
// FAST:          math.sqrt %minus fastmath<afn> : f32
// FAST:          arith.divf %d, %tiny fastmath<afn> : f32
func.func private @constants(%x: f32) -> f32 {
  %h = arith.constant 0.1 : f32
  %square = arith.mulf %h, %h : f32
  %one = arith.constant 1.0 : f32
  %sum = arith.addf %square, %one : f32
  %difference = arith.subf %sum, %one : f32
  %back = arith.negf %difference : f32
  %r = arith.divf %back, %h : f32
  %p = arith.mulf %x, %r : f32
  %zero = arith.constant 0.0 : f32
  %d = arith.divf %p, %zero : f32
  %minus = arith.constant -1.0 : f32
  %s = math.sqrt %minus : f32
  %tiny = arith.constant 1.0e-40 : f32
  %e = arith.divf %d, %tiny : f32
  %f = arith.addf %e, %s : f32
  func.return %f : f32
}

func.func @program(%A: !field, %B: !field, %n: index) {
  %a, %b = temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %v = @constants(%u[0]) in <[0], [7]>
  } : !field, !field
  func.return
}

// -----

// A quotient by a root becomes a product with a reciprocal root where both may be approximate, and the root goes if
// nothing else needs it. One by a root is the reciprocal root itself.

!field = !stencil.field<[0,8]xf64>

// CHECK-LABEL: func.func private @roots(%x: f64, %y: f64) -> f64 {
// CHECK-NEXT:    [[root:%[0-9]+]] = math.rsqrt %x fastmath<fast> : f64
// CHECK-NEXT:    %q = arith.mulf %y, [[root]] fastmath<afn> : f64
// CHECK-NEXT:    %s = math.sqrt %q fastmath<afn> : f64
// CHECK-NEXT:    %unit = arith.constant 1.000000e+00 : f64
// CHECK-NEXT:    %i = arith.divf %unit, %s : f64
// CHECK-NEXT:    %t = arith.addf %i, %s : f64
// CHECK-NEXT:    %k = math.rsqrt %t : f64
// CHECK-NEXT:    func.return %k : f64
// FAST-LABEL:  func.func private @roots(
// FAST:          %s = math.sqrt %q fastmath<afn> : f64
// FAST-NOT:      divf
// FAST:          %i = math.rsqrt %q fastmath<afn> : f64
// FAST-NEXT:     %t = arith.addf %i, %s : f64
// FAST-NEXT:     %k = math.rsqrt %t fastmath<afn> : f64
func.func private @roots(%x: f64, %y: f64) -> f64 {
  %r = math.sqrt %x fastmath<fast> : f64
  %q = arith.divf %y, %r fastmath<afn> : f64
  %s = math.sqrt %q fastmath<afn> : f64
  %unit = arith.constant 1.0 : f64
  %i = arith.divf %unit, %s : f64
  %t = arith.addf %i, %s : f64
  %k = math.rsqrt %t : f64
  func.return %k : f64
}

func.func @program(%A: !field, %B: !field, %n: index) {
  %a, %b = temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %v = @roots(%u[0], %u[1]) in <[0], [7]>
  } : !field, !field
  func.return
}
