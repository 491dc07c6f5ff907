// RUN: xdsl-opt %s -p 'device-tiling{tile=warp cells=2 lanes=32}' | filecheck %s
// RUN: xdsl-opt %s -p 'device-tiling{tile=warp cells=2 lanes=32},split-sums{form=rows}' 2>&1 | filecheck %s --check-prefix=SPLIT

// Each level of a kernel takes the points of its step: the lists once, and a row of the table for each step.

// CHECK:      tile.kernel @heat_d2(%src: !stencil.field<[0,66]x[0,66]xf64>, %dst: !stencil.field<[0,66]x[0,66]xf64>,
// CHECK-SAME:     roles [#tile.role<source 0>,
// CHECK-SAME:     #tile.role<capture 0>, #tile.role<capture 1>, #tile.role<capture 2>, #tile.role<series 0>, #tile.role<series 1>]
// CHECK:        tile.apply @five
// CHECK-SAME:     points(%rows, %l, %w, %f) uses [#temporal.points<inject 0 columns 2 of <[0, 0], [66, 66]>>]
// CHECK:        tile.apply @five
// CHECK-SAME:     points(%rows_1, %l, %w, %f) uses [#temporal.points<inject 0 columns 2 of <[0, 0], [66, 66]>>]

// A value is added to a whole sum.

// SPLIT: tile.kernel in @heat_d2: points are added to whole sums; the sums stay whole
func.func private @five(%a: f64, %b: f64, %c: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  %t = arith.addf %s, %c : f64
  func.return %t : f64
}
func.func @heat(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[0,66]x[0,66]xf64>, %B: !stencil.field<[0,66]x[0,66]xf64>,
    %l: !stencil.field<[0,697]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] {
    temporal.update %b = @five(%a[-1, 0], %a[0, 0], %a[1, 0]) in <[1, 1], [65, 65]> points(%rows, %l, %w, %f)
      uses [#temporal.points<inject 0 columns 2 of <[0, 0], [66, 66]>>]
  } : !stencil.field<[0,66]x[0,66]xf64>, !stencil.field<[0,66]x[0,66]xf64>
  func.return
}
