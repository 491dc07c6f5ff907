// RUN: xdsl-opt %s -p multi-queue-buffering --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p register-streaming --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p peel-boundaries --verify-diagnostics | filecheck %s

// Passes that ask for the threads of a tile refuse a kernel whose tiles have none yet.

// CHECK: tile.kernel in @untiled: the kernel has no layout; run device-tiling first
tile.kernel @untiled(%src: !stencil.field<[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,65]xf64>
}
