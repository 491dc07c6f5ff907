// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=computed},register-streaming{what=edges}' | filecheck %s
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=shifting},register-streaming{what=edges}' | filecheck %s --check-prefix=SHIFTING
// RUN: xdsl-opt %s -p 'multi-queue-buffering{addressing=computed},register-streaming{what=edges}' | filecheck %s

// An exchange is addressed as the planes were that it takes the place of.

// CHECK:    tile.exchange {{.*}} home #tile.exchange_buffer<slots {{2|4}}, computed,
// SHIFTING: tile.exchange {{.*}} home #tile.exchange_buffer<slots {{[0-9]+}}, shifting,
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @edges(%src: !stencil.field<[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 64]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 : !tile.queue<f64, lag 0, edges [1]>
  %v = tile.apply @cell(%e[0, -1], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,65]xf64>
}
