// RUN: xdsl-opt %s -p split-edges --verify-diagnostics 2>&1 | filecheck %s

// A loop that kernels of several steps do not continue is told, with the boundary to change.

func.func private @cell(%l: f64) -> f64 {
  func.return %l : f64
}
// CHECK: temporal.update in @one_side: along axis 0 one side is kept and the other is not: the edges are updates of their own, and the time loop runs a step at a time; give both sides of each axis one boundary for all fields, or keep both sides
func.func @one_side(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[1]) in <[0], [8]> beyond [#temporal.boundary<keep, reflect>]
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}
