// RUN: xdsl-opt %s -p 'peel-boundaries{guards=all planes=8 columns=alone}' --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'peel-boundaries{planes=8 edge-weight=1.5}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=WEIGHT
// RUN: xdsl-opt %s -p peel-boundaries --verify-diagnostics 2>&1 | filecheck %s --check-prefix=NONE

// Options without effect are said to be ignored.

// CHECK:      tile.kernel in @streamed: guards=all is ignored: no cell is replaced outside the bounds, and all code has guards; leave it out
// CHECK-NEXT: tile.kernel in @streamed: columns is ignored: planes=8 is the height of all chunks; leave out one of the two
// CHECK-NEXT: tile.kernel in @unstreamed: guards=all is ignored: nothing is streamed, and tiles inside the bounds have code of their own; leave it out
// CHECK-NEXT: tile.kernel in @unstreamed: planes=8 is ignored: nothing is streamed, and tiles are not cut into chunks; leave out the option, or give device-tiling a stream-axis
// CHECK-NEXT: tile.kernel in @unstreamed: columns=alone is ignored: nothing is streamed, and tiles are not cut into chunks; leave out the option, or give device-tiling a stream-axis
// CHECK-NOT:  ignored

// WEIGHT: tile.kernel in @streamed: edge-weight is ignored: planes=8 is the height of all chunks; leave out one of the two
// WEIGHT: tile.kernel in @unstreamed: edge-weight=1.5 is ignored: nothing is streamed

// NONE-NOT: ignored
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
// Every cell of the fields is written: no cell is replaced outside the bounds.
tile.kernel @streamed(%src: !stencil.field<[-1,65]x[0,64]xf64>, %dst: !stencil.field<[-1,65]x[0,64]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> occupancy 1 {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,65]x[0,64]xf64>
}
tile.kernel @unstreamed(%src: !stencil.field<[0,64]xf64>, %dst: !stencil.field<[0,64]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> occupancy 1 {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0], %u[0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,64]xf64>
}
