// RUN: xdsl-opt %s -p peel-boundaries --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'peel-boundaries{multiprocessors=2}' --verify-diagnostics | filecheck %s --check-prefix=SMALL
// RUN: xdsl-opt %s -p 'peel-boundaries{arch=sm_80}' --verify-diagnostics | filecheck %s --check-prefix=OLDER

// Blocks that wait for each other must all be resident: a tile of more than the device holds is refused.

// CHECK: tile.kernel in @too_many: the tile has 133 blocks that wait for each other, and sm_90 holds 132 at once; give device-tiling at most 132 blocks
// SMALL: tile.kernel in @too_many: the tile has 133 blocks that wait for each other, and sm_90 with 2 multiprocessors holds 2 at once; give device-tiling at most 2 blocks
// OLDER: tile.kernel in @too_many: the tile has 133 blocks that wait for each other, and sm_80 holds 108 at once; give device-tiling at most 108 blocks
tile.kernel @too_many(%src: !stencil.field<[-1,513]x[-1,513]x[-1,65]xf64>, %dst: !stencil.field<[-1,513]x[-1,513]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [512, 512, 64]>
    layout #tile.layout<device, [4 cells x 133 blocks, 2 cells x 32 lanes]> occupancy 1 {
  %u = tile.load %src home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,513]x[-1,513]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
