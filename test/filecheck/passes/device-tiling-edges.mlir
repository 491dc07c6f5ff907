// RUN: xdsl-opt %s -p 'temporal-fusion{depths=2},device-tiling{cells=2}' --verify-diagnostics --split-input-file 2>&1 | filecheck %s

// A kernel continues fields by the boundary of the updates: no cell of a halo is read, at any level.

!field = !stencil.field<[0,64]x[0,64]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.subf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: tile.kernel @ring_d2(
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 2 stream 0
// CHECK-SAME:    bounds <[0, 0], [64, 64]> beyond #temporal.boundary<periodic, periodic, mirror, value 1.0>
// CHECK-NEXT:    %[[u0:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, -1], %[[u0]][-1, 1]) : !tile.queue<f64, lag -1>
// CHECK-NEXT:    %[[u2:.*]] = tile.apply @cell(%[[u1]][-1, -1], %[[u1]][-1, 1]) : !tile.queue<f64, lag -2>
// CHECK-NEXT:    tile.store %[[u2]] to %dst
func.func @ring(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1, -1], %a[-1, 1]) in <[0, 0], [64, 64]>
      beyond [#temporal.boundary<periodic, periodic, mirror, value 1.0>]
  } : !field, !field
  func.return
}

// -----

// Behind a mirror a cell taps to the other side: taps to one side alone are left to updates.

!field = !stencil.field<[0,64]x[0,64]xf64>

func.func private @cell(%l: f64) -> f64 {
  func.return %l : f64
}

// CHECK: temporal.update in @one_side{{.*}}: it reads fields beyond their cells, and no update reads images of the cells yet; run split-edges{everywhere=true} before
func.func @one_side(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[0, -1]) in <[0, 0], [64, 64]> beyond [#temporal.boundary<mirror>]
  } : !field, !field
  func.return
}
