// RUN: xdsl-opt %s -p 'multi-queue-buffering,register-streaming{delay=2 what=plane sync=mbarrier}' --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'multi-queue-buffering{period=3},register-streaming' | filecheck %s --check-prefix=PERIOD
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=0},register-streaming{delay=5 period=7}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=LONG
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=0},register-streaming{delay=0 sync=mbarrier}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=HALVES

// Options without effect are said to be ignored, and what would make a loop too long is left out.

// CHECK:     tile.kernel in @warp: delay=2 is ignored: the warps exchange nothing; leave out the option, or give device-tiling tile=block
// CHECK:     tile.kernel in @warp: what=plane is ignored: the warps exchange nothing; leave out the option, or give device-tiling tile=block
// CHECK:     tile.kernel in @warp: sync=mbarrier is ignored: the warps exchange nothing; leave out the option, or give device-tiling tile=block
// CHECK-NOT: ignored

// A period that planes were placed with stays.
// PERIOD-LABEL: tile.kernel @warp
// PERIOD:         tile.load %src ahead 3 home #tile.registers<depth 1, period 3>
// PERIOD-LABEL: tile.kernel @block
// PERIOD:         tile.load %src ahead 3 home #tile.registers<depth 2, period 3>

// LONG:       tile.kernel in @block: a loop with slots at fixed places would be unrolled 42 times, until all slots are back at the first place, with 5 operations of a thread in each step: slots are shifted; use addressing=computed for rings of a power of two
// LONG-LABEL: tile.kernel @block
// LONG:         tile.load %src ahead 0 home #tile.registers<depth 6, period 7>
// LONG:         tile.exchange {{.*}} delay 5 home #tile.exchange_buffer<slots 6, shifting

// HALVES: tile.kernel in @block: sync=mbarrier is left out: warps read exchanged cells in the publishing step; use sync=barrier, or a streamed tile, with delay=1 or more
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @warp(%src: !stencil.field<[-1,9]x[0,8]xf64>, %dst: !stencil.field<[-1,9]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[0,8]xf64>
}
func.func private @three(%a: f64, %b: f64, %c: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @block(%src: !stencil.field<[-1,9]x[-1,9]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 : !tile.queue<f64, lag 0, edges [1]>
  %v = tile.apply @three(%u[-1, 0], %u[1, 0], %e[0, 1]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]xf64>
}
