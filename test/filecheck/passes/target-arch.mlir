// RUN: xdsl-opt %s -p target-arch | filecheck %s
// RUN: xdsl-opt %s -p 'target-arch{arch=sm_80}' | filecheck %s --check-prefix=OLDER
// RUN: xdsl-opt %s -p 'target-arch{arch=sm_80},lower-tile-to-gpu' --verify-diagnostics | filecheck %s --check-prefix=LOWERED
// RUN: xdsl-opt %s -p 'target-arch{arch=sm_20}' --verify-diagnostics | filecheck %s --check-prefix=UNKNOWN
// RUN: xdsl-opt %s -p 'target-arch{arch="h200+speed=3"}' --verify-diagnostics | filecheck %s --check-prefix=FACT
// RUN: xdsl-opt %s -p 'target-arch{arch="sm_80+copy=1.4"}' | filecheck %s --check-prefix=OLDER

// The module names the GPU of its kernels. The lowering refuses kernels that do not fit.

// CHECK:       builtin.module attributes {timetile.arch = "sm_90"} {
// OLDER:       builtin.module attributes {timetile.arch = "sm_80"} {
// UNKNOWN:     the architecture sm_20 is not known; use sm_90 or sm_80 or sm_120 or sm_100 or sm_89 or sm_86, or a part: h200, h100-sxm
// FACT:        'speed=3' is no fact of a GPU; write a name of multiprocessors, clock, memory, copy, l2, shared, block, = and a number above 0, as in h100-sxm+copy=3.1
// LOWERED:     tile.kernel in @large: the kernel takes {{[0-9]+}} bytes of shared memory a block, and sm_80 has 166912; give device-tiling a smaller pack, or multi-queue-buffering a smaller ahead
tile.kernel @large(%src: !stencil.field<[0,8]x[0,4096]xf64>, %dst: !stencil.field<[0,8]x[0,4096]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 22>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src ahead 7 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,4096]xf64>
}
