// RUN: xdsl-opt %s -p 'cut-domain{rank=1 parts=2}' | filecheck %s

// Lists of points stay whole, and count from the field's first cell: an update leaves out entries outside its box.

// CHECK: func.func @loop0(%n: index, %A: !stencil.field<[31,65]xf64>, %B: !stencil.field<[31,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %rows: memref<?xi64>) {
// CHECK: temporal.update %b = @average(%a[-1], %a[1]) in <[32], [64]> points(%rows, %l, %w, %f) uses [#temporal.points<inject 0 columns 2 of <[-1], [65]>>]
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @heat(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w, %f)
      uses [#temporal.points<inject 0 columns 2 of <[-1], [65]>>]
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}
