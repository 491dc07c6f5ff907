// RUN: xdsl-opt %s -p expand-boundaries --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p choose-schedule --split-input-file --verify-diagnostics | filecheck %s --check-prefix=LATE

// Cells outside a box that are not kept are written behind the update, layer by layer, through scratch fields.
// Layers along the second axis hold the corners. A side that is kept has none, and a number needs no scratch field.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func private @cell_moved(%0: f64) -> f64 {
// CHECK-NEXT:    func.return %0 : f64
// CHECK-LABEL: func.func private @cell_value() -> f64 {
// CHECK-NEXT:    %[[v:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-NEXT:    func.return %[[v]] : f64
// CHECK-LABEL: func.func @corners
// CHECK:         %[[A:.*]] = temporal.scratch : !stencil.field<[-1,0]x[0,4]xf64>
// CHECK-NEXT:    %[[B:.*]] = temporal.scratch : !stencil.field<[-2,-1]x[0,4]xf64>
// CHECK-NEXT:    %[[C:.*]] = temporal.scratch : !stencil.field<[-2,8]x[-1,0]xf64>
// CHECK-NEXT:    temporal.loop %n (%a = %A, %b = %B, %[[s:.*]] = %[[A]], %[[t:.*]] = %[[B]], %[[u:.*]] = %[[C]]) rotate [1, 0, 2, 3, 4] {
// CHECK-NEXT:      temporal.update %b = @cell(%a[-1, -1], %a[1, 1]) in <[0, 0], [8, 4]>
// CHECK-NEXT:      temporal.update %[[s]] = @cell_moved(%b[1, 0]) in <[-1, 0], [0, 4]>
// CHECK-NEXT:      temporal.update %b = @cell_moved(%[[s]][0, 0]) in <[-1, 0], [0, 4]>
// CHECK-NEXT:      temporal.update %[[t]] = @cell_moved(%b[3, 0]) in <[-2, 0], [-1, 4]>
// CHECK-NEXT:      temporal.update %b = @cell_moved(%[[t]][0, 0]) in <[-2, 0], [-1, 4]>
// CHECK-NEXT:      temporal.update %[[u]] = @cell_moved(%b[0, 2]) in <[-2, -1], [8, 0]>
// CHECK-NEXT:      temporal.update %b = @cell_moved(%[[u]][0, 0]) in <[-2, -1], [8, 0]>
// CHECK-NEXT:      temporal.update %b = @cell_value() in <[-2, 4], [8, 5]>
// CHECK-NEXT:    }
// LATE: temporal.update in @corners{{.*}}: the cells outside the box are #temporal.boundary<mirror, keep, reflect, value 0.5>, and no updates write the outside cells yet; run expand-boundaries before
func.func @corners(%n: index, %A: !stencil.field<[-2,9]x[-1,5]xf64>, %B: !stencil.field<[-2,9]x[-1,5]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1, -1], %a[1, 1]) in <[0, 0], [8, 4]>
      outside #temporal.boundary<mirror, keep, reflect, value 0.5>
  } : !stencil.field<[-2,9]x[-1,5]xf64>, !stencil.field<[-2,9]x[-1,5]xf64>
  func.return
}

// -----

// All layers of a periodic axis lie at one distance. `keep` is nothing but the absence of an attribute.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @ring
// CHECK:         temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [8]>
// CHECK-NEXT:    temporal.update %[[s:.*]] = @cell_moved(%b[8]) in <[-2], [0]>
// CHECK-NEXT:    temporal.update %b = @cell_moved(%[[s]][0]) in <[-2], [0]>
// CHECK-NEXT:    temporal.update %[[t:.*]] = @cell_moved(%b[-8]) in <[8], [10]>
// CHECK-NEXT:    temporal.update %b = @cell_moved(%[[t]][0]) in <[8], [10]>
func.func @ring(%n: index, %A: !stencil.field<[-2,10]xf64>, %B: !stencil.field<[-2,10]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [8]> outside #temporal.boundary<periodic>
  } : !stencil.field<[-2,10]xf64>, !stencil.field<[-2,10]xf64>
  func.return
}

// CHECK-LABEL: func.func @kept
// CHECK:         temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [8]>
// CHECK-NEXT:  }
func.func @kept(%n: index, %A: !stencil.field<[-2,10]xf64>, %B: !stencil.field<[-2,10]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [8]> outside #temporal.boundary<keep>
  } : !stencil.field<[-2,10]xf64>, !stencil.field<[-2,10]xf64>
  func.return
}

// -----

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

func.func @late(%n: index, %A: !stencil.field<[-2,10]xf64>, %B: !stencil.field<[-2,10]xf64>) {
  // CHECK: temporal.loop in @late{{.*}}: schedule and kernels belong to a step without boundaries; run expand-boundaries before choose-schedule
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] schedule #tile.schedule<guards all> {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [8]> outside #temporal.boundary<periodic>
  } : !stencil.field<[-2,10]xf64>, !stencil.field<[-2,10]xf64>
  func.return
}
