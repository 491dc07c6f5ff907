// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=3 period=2}' --verify-diagnostics 2>&1 | filecheck %s

// A resident tile has no sequence of planes: options about planes have no effect.

// CHECK: tile.kernel in @resident: ahead=3 is ignored: nothing is streamed; leave out the option
// CHECK: tile.kernel in @resident: period=2 is ignored: nothing is streamed; leave out the option
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @resident(%src: !stencil.field<[-1,9]xf64>, %dst: !stencil.field<[-1,9]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1], %u[0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]xf64>
}
