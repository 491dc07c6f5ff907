// RUN: not xdsl-opt %s -p cut-domain 2>&1 | filecheck %s

// A loop is cut with its function.

// CHECK: the loop stands in no function; write the loop in a func.func
func.func private @same(%l: f64) -> f64 {
  func.return %l : f64
}
%n = arith.constant 3 : index
%A = temporal.scratch : !stencil.field<[0,8]xf64>
%B = temporal.scratch : !stencil.field<[0,8]xf64>
temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  temporal.update %b = @same(%a[0]) in <[0], [8]>
} : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
