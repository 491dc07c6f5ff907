// RUN: not xdsl-opt %s -p 'cut-domain{rank=1 parts=2}' 2>&1 | filecheck %s --check-prefix=CROSSED

// Lines of sweeps are whole on a rank.

// CROSSED: a sweep along axis 0 goes through whole lines, and the parts (2, 1) cut them; cut another axis, as parts=(1, 2) does, or leave parts out
func.func private @cell(%before: f64) -> f64 {
  func.return %before : f64
}
func.func @lines(%c: !stencil.field<[0,8]x[0,64]xf64>) {
  temporal.sweep %c = @cell(%c[-1, 0]) along 0 ascending in <[1, 0], [8, 64]>
  func.return
}
