// RUN: xdsl-opt %s -p "split-regions" --split-input-file | filecheck %s

// The inside begins behind the layer. The layer of %v belongs to the sub-step of %v, and so does the
// layer of %k, whose results it reads.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @layer(%U: !f, %V: !f, %M: !f, %K: !f, %n: index) {
  temporal.loop %n (%u = %U, %v = %V, %m = %M, %k = %K) rotate [1, 0, 3, 2] {
    temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
    temporal.update %k = @cell(%m[0], %u[1]) in <[1], [9]>
    temporal.update %v = @cell(%v[0], %k[0]) in <[1], [9]>
  } : !f, !f, !f, !f
  func.return
}

// CHECK-LABEL: @layer
// CHECK:       temporal.update %v = @cell(%u[-1], %u[1]) in <[9], [63]>
// CHECK-NEXT:  temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %k = @cell(%m[0], %u[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %v = @cell(%v[0], %k[0]) in <[1], [9]>
// CHECK-NOT:   temporal.update

// -----

// Two sub-steps: the inside of %w begins a cell behind the inside of %v, as %w reads %v before the
// cell. Both insides come first, and the layer of %w covers a part of its region.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @sub_steps(%U: !f, %V: !f, %W: !f, %X: !f, %n: index) {
  temporal.loop %n (%u = %U, %v = %V, %w = %W, %x = %X) rotate [1, 0, 3, 2] {
    temporal.update %v = @cell(%u[0], %x[1]) in <[1], [63]>
    temporal.update %v = @cell(%v[0], %u[0]) in <[1], [9]>
    temporal.update %w = @cell(%v[-1], %v[0]) in <[2], [63]>
    temporal.update %w = @cell(%w[0], %x[0]) in <[2], [9]>
  } : !f, !f, !f, !f
  func.return
}

// CHECK-LABEL: @sub_steps
// CHECK:       temporal.update %v = @cell(%u[0], %x[1]) in <[9], [63]>
// CHECK-NEXT:  temporal.update %w = @cell(%v[-1], %v[0]) in <[10], [63]>
// CHECK-NEXT:  temporal.update %v = @cell(%u[0], %x[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %v = @cell(%v[0], %u[0]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %w = @cell(%v[-1], %v[0]) in <[2], [10]>
// CHECK-NEXT:  temporal.update %w = @cell(%w[0], %x[0]) in <[2], [9]>
// CHECK-NOT:   temporal.update

// -----

// If no cells are inside the layers, the step stays unchanged.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @narrow(%U: !f, %V: !f, %n: index) {
  temporal.loop %n (%u = %U, %v = %V) rotate [1, 0] {
    temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [33]>
    temporal.update %v = @cell(%v[0], %u[0]) in <[1], [17]>
    temporal.update %v = @cell(%v[0], %u[0]) in <[17], [33]>
    temporal.update %v = @cell(%u[-1], %u[1]) in <[33], [63]>
  } : !f, !f
  func.return
}

// CHECK-LABEL: @narrow
// CHECK:       temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [33]>
// CHECK-NEXT:  temporal.update %v = @cell(%v[0], %u[0]) in <[1], [17]>
// CHECK-NEXT:  temporal.update %v = @cell(%v[0], %u[0]) in <[17], [33]>
// CHECK-NEXT:  temporal.update %v = @cell(%u[-1], %u[1]) in <[33], [63]>
