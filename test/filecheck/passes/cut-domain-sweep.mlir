// RUN: xdsl-opt %s -p 'cut-domain{rank=1 parts=1,2}' | filecheck %s

// A rank computes its own lines along the axis, and reads a ghost of another field beside them.

// CHECK: func.func @sweep0(%c: !stencil.field<[0,8]x[31,64]xf64>, %u: !stencil.field<[0,8]x[31,64]xf64>, %r: f64) {
// CHECK-NEXT: temporal.sweep %c = @cell(%c[-1, 0], %u[0, -1]) scalars(%r) along 0 ascending in <[1, 32], [8, 63]>
// CHECK-NEXT: func.return
func.func private @cell(%before: f64, %left: f64, %r: f64) -> f64 {
  %s = arith.addf %before, %left : f64
  func.return %s : f64
}
func.func @lines(%n: index, %u: !stencil.field<[0,8]x[0,64]xf64>, %c: !stencil.field<[0,8]x[0,64]xf64>, %r: f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %t = %zero to %n step %one {
    temporal.sweep %c = @cell(%c[-1, 0], %u[0, -1]) scalars(%r) along 0 ascending in <[1, 1], [8, 63]>
  }
  func.return
}
