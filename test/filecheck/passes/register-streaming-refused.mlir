// RUN: xdsl-opt %s -p 'register-streaming{sync=barrier}' --verify-diagnostics | filecheck %s

// The blocks of a tile that the device holds do not share what the warps of a block wait at.

// CHECK: tile.kernel in @apart: the blocks of the tile cannot meet at a block's barrier; give register-streaming sync=flags or sync=grid
tile.kernel @apart(%src: !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>, %dst: !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
