// RUN: xdsl-opt %s -p "group-updates" --split-input-file | filecheck %s

// Updates of one box stand beside each other where no update reads or writes a cell of another.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @layers(%U: !f, %V: !f, %M: !f, %W: !f, %K: !f, %L: !f, %n: index) {
  temporal.loop %n (%u = %U, %v = %V, %m = %M, %w = %W, %k = %K, %l = %L) rotate [1, 0, 2, 4, 3, 5] {
    temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
    temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
    temporal.update %v = @cell(%v[0], %m[0]) in <[1], [9]>
    temporal.update %k = @cell(%w[-1], %w[1]) in <[1], [63]>
    temporal.update %l = @cell(%w[0], %w[1]) in <[1], [9]>
    temporal.update %k = @cell(%k[0], %l[0]) in <[1], [9]>
  } : !f, !f, !f, !f, !f, !f
  func.return
}

// CHECK-LABEL: @layers
// CHECK:       temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %k = @cell(%w[-1], %w[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %v = @cell(%v[0], %m[0]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %l = @cell(%w[0], %w[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %k = @cell(%k[0], %l[0]) in <[1], [9]>

// -----

// The second update reads cells of the layer beside its own, and the third writes a cell that the
// second reads: the order stays.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @waiting(%U: !f, %V: !f, %M: !f, %n: index) {
  temporal.loop %n (%u = %U, %v = %V, %m = %M) rotate [1, 0, 2] {
    temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
    temporal.update %v = @cell(%m[-1], %u[1]) in <[1], [63]>
    temporal.update %m = @cell(%u[-1], %u[1]) in <[1], [9]>
  } : !f, !f, !f
  func.return
}

// CHECK-LABEL: @waiting
// CHECK:       temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %v = @cell(%m[-1], %u[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %m = @cell(%u[-1], %u[1]) in <[1], [9]>
