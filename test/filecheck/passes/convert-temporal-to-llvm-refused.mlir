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

// -----

// A processor ends the process at a division by 0: cells pass through expand-cells before.

!field = !stencil.field<[-1,9]xi32>

// CHECK: arith.divsi in @quotient{{.*}}: its divisor may be 0 or -1, and processors and GPUs differ in the result; run expand-cells before
func.func private @quotient(%0: i32, %1: i32) -> i32 {
  %r = arith.divsi %0, %1 : i32
  func.return %r : i32
}

func.func @run(%A: !field, %B: !field, %n: index) {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @quotient(%a[0], %a[1]) in <[0], [8]>
  } : !field, !field
  func.return
}

// -----

// A select that tests another number does not make the divisor safe.

!field = !stencil.field<[-1,9]xi64>

// CHECK: arith.remui in @remainder{{.*}}: its divisor may be 0, and processors and GPUs differ in the result; run expand-cells before
func.func private @remainder(%0: i64, %1: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %rare = arith.cmpi eq, %0, %zero : i64
  %safe = arith.select %rare, %one, %1 : i64
  %r = arith.remui %0, %safe : i64
  func.return %r : i64
}

func.func @run(%A: !field, %B: !field, %n: index) {
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @remainder(%a[0], %a[1]) in <[0], [8]>
  } : !field, !field
  func.return
}
