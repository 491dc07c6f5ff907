// RUN: xdsl-opt %s -p choose-schedule --split-input-file --verify-diagnostics > %t.once
// RUN: filecheck %s --input-file %t.once
// RUN: xdsl-opt %s -p choose-schedule --split-input-file --verify-diagnostics > %t.again
// RUN: diff %t.once %t.again
// RUN: xdsl-opt %s -p 'choose-schedule{depth=3}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=DEPTH
// RUN: xdsl-opt %s -p 'choose-schedule{arch=sm_80}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'choose-schedule{arch=sm_20}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ARCH

// Every time loop gets depths and a schedule, a pure function of the program, the options and the
// target. One and two axes are held by warps, three by a block; what is already decided stays.

// ARCH: the architecture sm_20 is not known; use sm_90 or sm_80

func.func private @sum(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @line(
// CHECK:         temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [{{([0-9]+, )*}}1]
// CHECK-SAME:      tile = "warp", cells = array<i64: {{[0-9]+}}>, lanes = array<i64: 32>, warps = array<i64: 1>
// CHECK-SAME:      storage = "registers"
// CHECK-NOT:     kernels
// CHECK-NEXT:    temporal.update
// DEPTH-LABEL: func.func @line(
// DEPTH:         depths [3, 2, 1]
func.func @line(%n: index, %A: !stencil.field<[-1,4097]xf64>, %B: !stencil.field<[-1,4097]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1], %a[1]) in <[0], [4096]>
  } : !stencil.field<[-1,4097]xf64>, !stencil.field<[-1,4097]xf64>
  func.return
}

// CHECK-LABEL: func.func @plane(
// CHECK:         depths [{{([0-9]+, )+}}2, 1]
// CHECK-SAME:      tile = "warp", cells = array<i64: {{[0-9]+}}>, lanes = array<i64: 32>, warps = array<i64: 1>
// DEPTH-LABEL: func.func @plane(
// DEPTH:         depths [3, 2, 1]
func.func @plane(%n: index, %A: !stencil.field<[-1,4097]x[-1,4097]xf64>, %B: !stencil.field<[-1,4097]x[-1,4097]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0], %a[1, 0]) in <[0, 0], [4096, 4096]>
  } : !stencil.field<[-1,4097]x[-1,4097]xf64>, !stencil.field<[-1,4097]x[-1,4097]xf64>
  func.return
}

// CHECK-LABEL: func.func @space(
// CHECK:         tile = "block", cells = array<i64: {{[0-9]+, [0-9]+}}>, lanes = array<i64: 1, 32>, warps = array<i64: {{[0-9]+}}, 1>, pack = 1 : i64
// DEPTH-LABEL: func.func @space(
// DEPTH:         depths [3, 2, 1]
func.func @space(%n: index, %A: !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>, %B: !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0, 0], %a[0, 1, 0]) in <[0, 0, 0], [256, 256, 256]>
  } : !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>, !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>
  func.return
}

// Depths that the program states are kept, and so is a schedule; a loop that does nothing gets none.
// CHECK-LABEL: func.func @decided(
// CHECK:         temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [5, 1] schedule {tile = "warp"
// CHECK:         temporal.loop %n (%c = %A, %d = %B) rotate [1, 0] depths [2, 1] schedule {note = "mine"} {
// CHECK:         temporal.loop %n (%e = %A) rotate [0] {
// DEPTH-LABEL: func.func @decided(
// DEPTH:         depths [5, 1]
func.func @decided(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [5, 1] {
    temporal.update %b = @sum(%a[-1], %a[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  temporal.loop %n (%c = %A, %d = %B) rotate [1, 0] depths [2, 1] schedule {note = "mine"} {
    temporal.update %d = @sum(%c[-1], %c[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  temporal.loop %n (%e = %A) rotate [0] {
  } : !stencil.field<[-1,65]xf64>
  func.return
}

// -----

// Eleven rows to a neighbour: no layout of three axes has as many in a thread.
// CHECK: temporal.loop in @far: no schedule fits the registers and shared memory of one step; give device-tiling a layout with fewer cells
// DEPTH: temporal.loop in @far: no layout is known for it
func.func @far(%n: index, %A: !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>, %B: !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[0, 11, 0]) in <[0, 0, 0], [8, 8, 8]>
  } : !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>, !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>
  func.return
}
