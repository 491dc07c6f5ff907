// RUN: not xdsl-opt %s -p 'cut-domain{rank=1 parts=2}' 2>&1 | filecheck %s

// Sweeps along all axes leave no axis to cut.

// CHECK: sweeps go along all axes of the domain, and 2 parts would cut lines of a sweep; run the program in one process, on one GPU
func.func private @cell(%before: f64) -> f64 {
  func.return %before : f64
}
func.func @table(%c: !stencil.field<[0,8]x[0,64]xf64>) {
  temporal.sweep %c = @cell(%c[-1, 0]) along 0 ascending in <[1, 0], [8, 64]>
  temporal.sweep %c = @cell(%c[0, -1]) along 1 ascending in <[0, 1], [8, 64]>
  func.return
}
