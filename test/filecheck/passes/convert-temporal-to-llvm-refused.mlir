// RUN: xdsl-opt %s -p convert-temporal-to-llvm --split-input-file --verify-diagnostics | filecheck %s

// What a CPU cannot execute is refused by the operation, and where it stands.

!field = !stencil.field<[-1,9]xf64>

// CHECK: math.fpowi in @power{{.*}}: the operation cannot be executed on a CPU; use operations of arith and math on numbers
func.func private @power(%0: f64) -> f64 {
  %i = arith.fptosi %0 : f64 to i32
  %r = math.fpowi %0, %i : f64, i32
  func.return %r : f64
}

func.func @run(%A: !field, %B: !field, %n: index) {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @power(%a[0]) in <[0], [8]>
  } : !field, !field
  func.return
}

// -----

!field = !stencil.field<[-1,9]xf64>

// CHECK: temporal.update in @run{{.*}}: the cell function @nowhere is not in the module
func.func @run(%A: !field, %B: !field, %n: index) {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @nowhere(%a[0]) in <[0], [8]>
  } : !field, !field
  func.return
}
