// RUN: xdsl-opt %s -p 'device-tiling{reads=memory}' --verify-diagnostics | filecheck %s

// A step in parts computes cells twice, and a point would add its value twice.

// CHECK: temporal.loop in @heat: kernels with reads=memory compute cells again where points would add again; leave out reads=memory
func.func private @five(%a: f64, %b: f64, %c: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  %t = arith.addf %s, %c : f64
  func.return %t : f64
}
func.func @heat(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[0,66]x[0,66]xf64>, %B: !stencil.field<[0,66]x[0,66]xf64>,
    %l: !stencil.field<[0,697]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @five(%a[-1, 0], %a[0, 0], %a[1, 0]) in <[1, 1], [65, 65]> points(%rows, %l, %w, %f)
      uses [#temporal.points<inject 0 columns 2 of <[0, 0], [66, 66]>>]
  } : !stencil.field<[0,66]x[0,66]xf64>, !stencil.field<[0,66]x[0,66]xf64>
  func.return
}
