// RUN: xdsl-opt %s -p multi-queue-buffering --verify-diagnostics 2>&1 | filecheck %s

// A step that is long by itself takes long to compile, and says so.

// CHECK: tile.kernel in @long: a thread makes 16000 taps and operations in a step, and compiling them takes long; give device-tiling fewer cells, or a smaller depth
// CHECK: tile.load %src ahead 3 home #tile.registers<depth 1, period 1>
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @long(%src: !stencil.field<[-1,9]x[0,9000]xf64>, %dst: !stencil.field<[-1,9]x[0,9000]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 9000]>
    layout #tile.layout<warp, [4000 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[0,9000]xf64>
}
