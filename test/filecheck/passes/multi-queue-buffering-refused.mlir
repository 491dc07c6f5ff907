// RUN: xdsl-opt %s -p 'multi-queue-buffering{every=2}' --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'multi-queue-buffering,register-streaming{sync=flags every=2}' --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared},register-streaming{sync=grid every=0}' --verify-diagnostics | filecheck %s --check-prefix=NONE
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared every=2}' --verify-diagnostics | filecheck %s

// Blocks synchronise as the kernel's schedule says, wherever planes are stored.
// An option for steps between two barriers is refused if each step has a synchronisation.

!field = !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>

// CHECK: tile.kernel in @flags: every=2 was asked for, and only the warps of a streamed block, and blocks of a streamed tile that meet at barriers, synchronise once in several steps; leave it out, or use device-tiling tile=device and {{storage=shared|sync=grid}}
// NONE:  register-streaming: every is at least 1, got 0
tile.kernel @flags(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    schedule #tile.schedule<tile device, cells [4, 2], lanes [1, 32], warps [2, 1], blocks [2, 1], sync flags> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

func.func @run(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] kernels [@flags] {
    temporal.update %b = @cell(%a[0, 0, 0], %a[0, 1, 0]) in <[0, 0, 0], [32, 32, 64]>
  } : !field, !field
  func.return
}
