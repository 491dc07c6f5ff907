// RUN: xdsl-opt %s -p split-edges --split-input-file --verify-diagnostics | filecheck %s --check-prefix=KEPT
// RUN: xdsl-opt %s -p 'split-edges{everywhere=true}' --split-input-file --verify-diagnostics | filecheck %s

// A cell with a tap beyond a field is a box of its own. Each tap of a box reads the image of its cell; a constant enters
// the cell function.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.subf %l, %r : f64
  func.return %s : f64
}

// By default a loop stays if its kernels continue the fields.

// KEPT:        temporal.update %b = @cell(%a[-1], %a[2]) in <[0], [8]> beyond [#temporal.boundary<mirror, value 0.5>]
// KEPT:        temporal.update %b = @cell(%a[2, 0], %c[0, 0]) in <[0, 0], [1, 1]>
// KEPT:        run split-edges before choose-schedule

// CHECK-LABEL: func.func private @cell_edge(%0: f64) -> f64 {
// CHECK-NEXT:    %1 = arith.constant 5.000000e-01 : f64
// CHECK-NEXT:    %s = arith.subf %0, %1 : f64
// CHECK-LABEL: func.func @mirrored
// CHECK:         temporal.update %b = @cell(%a[0], %a[2]) in <[0], [1]>
// CHECK-NEXT:    temporal.update %b = @cell(%a[-1], %a[2]) in <[1], [6]>
// CHECK-NEXT:    temporal.update %b = @cell_edge(%a[-1]) in <[6], [7]>
// CHECK-NEXT:    temporal.update %b = @cell_edge(%a[-1]) in <[7], [8]>
// CHECK-NEXT:  }
func.func @mirrored(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[2]) in <[0], [8]> beyond [#temporal.boundary<mirror, value 0.5>]
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

// A field that is read inside has no part in the cut, and a corner takes the last axis first.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.subf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @corner
// CHECK:         temporal.update %b = @cell(%a[2, 0], %c[0, 0]) in <[0, 0], [1, 1]>
// CHECK-NEXT:    temporal.update %b = @cell(%a[2, -1], %c[0, 0]) in <[0, 1], [1, 3]>
// CHECK-NEXT:    temporal.update %b = @cell(%a[-1, 0], %c[0, 0]) in <[1, 0], [3, 1]>
// CHECK-NEXT:    temporal.update %b = @cell(%a[-1, -1], %c[0, 0]) in <[1, 1], [3, 3]>
// CHECK-NEXT:  }
func.func @corner(%n: index, %A: !stencil.field<[0,3]x[0,3]xf64>, %B: !stencil.field<[0,3]x[0,3]xf64>, %c: !stencil.field<[0,3]x[0,3]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1, -1], %c[0, 0]) in <[0, 0], [3, 3]>
      beyond [#temporal.boundary<periodic, periodic, mirror, keep>, #temporal.boundary<keep>]
  } : !stencil.field<[0,3]x[0,3]xf64>, !stencil.field<[0,3]x[0,3]xf64>
  func.return
}

// -----

// A schedule was chosen for other updates.

func.func private @cell(%l: f64) -> f64 {
  func.return %l : f64
}
// CHECK: temporal.loop in @too_late{{.*}}: schedule and kernels belong to a step that reads inside its fields; run split-edges before choose-schedule
func.func @too_late(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] schedule #tile.schedule<occupancy 1> {
    temporal.update %b = @cell(%a[-1]) in <[0], [8]> beyond [#temporal.boundary<reflect>]
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}
