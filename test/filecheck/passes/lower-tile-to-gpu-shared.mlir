// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s

// What passes through shared memory: prefetched planes, edges for neighbours, whole rings of planes.
// Barriers follow from what is read when: one a stream step serves all levels, and none is superfluous.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// A ring of four planes for what is fetched three steps early, and buffers of two slots for each of the
// two levels.
// CHECK-LABEL: sym_name = "exchanges"
// CHECK:         %[[ring:.*]] = simt.shared at 0 : memref<1024xf64, 3 : i64>
// CHECK:         %[[mail0:.*]] = simt.shared at 8192
// CHECK:         %[[mail1:.*]] = simt.shared at {{[0-9]+}}
// CHECK-NOT:     simt.shared
// Three planes are on their way before the first step.
// CHECK:         simt.copy_async
// CHECK-NEXT:    "nvvm.cp.async.commit.group"
// CHECK:         simt.copy_async
// CHECK-NEXT:    "nvvm.cp.async.commit.group"
// CHECK:         simt.copy_async
// CHECK-NEXT:    "nvvm.cp.async.commit.group"
// CHECK-NOT:     simt.copy_async
// CHECK:         simt.unset
// CHECK:         scf.for
// The steady loop: of the first step, the one barrier, the wait for the oldest of three copies, the
// fetch of a plane into the slot that is free now, the edges of both levels.
// CHECK:         scf.for
// CHECK:           "gpu.barrier"() : () -> ()
// CHECK:           "nvvm.cp.async.wait.group"() <{n = 2 : i32}> : () -> ()
// CHECK:           %[[u:.*]] = simt.load %[[ring]]
// CHECK:           simt.copy_async %[[ring]][{{.*}}], %src[{{.*}}] bytes 8
// CHECK-NEXT:      "nvvm.cp.async.commit.group"
// CHECK:           simt.store %[[u]] to %[[mail0]]
// CHECK:           simt.load %[[mail0]]
// CHECK:           simt.store %{{.*}} to %[[mail1]]
// CHECK-NOT:       "gpu.barrier"
// CHECK:           simt.load %[[mail1]]
// CHECK-NOT:       "gpu.barrier"
// CHECK:           simt.store %{{.*}} to %dst
// CHECK:           "gpu.barrier"
// CHECK-NOT:       "gpu.barrier"
// CHECK:           simt.store %{{.*}} to %dst
// CHECK-NEXT:      scf.yield
// CHECK-NOT:     simt.prefetch
// CHECK:       } else {
// The guarded copy: a row that neighbours read as an edge is legalised before they read it, and its halo
// asked for three steps before, though own cells look at no other row.
// CHECK:         scf.for
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK:           simt.store %{{.*}} to %dst[%[[at:.*]] + -8712] mask
// CHECK-NEXT:      simt.prefetch %a[%[[at]] + 13068] mask %[[beside:.*]] : f64
// CHECK-NEXT:      simt.prefetch %b[%[[at]] + 8712] mask %[[beside]] : f64
// CHECK-NEXT:      simt.override %{{.*}} from %a[%[[at]] + 0] mask %[[beside]]
// CHECK-NEXT:      simt.override %{{.*}} from %b[%[[at]] + -4356] mask %[[beside]]
// CHECK-NEXT:      simt.mark step 1
// CHECK:         block 256, shared_bytes {{[1-9][0-9]*}}, occupancy 1>
tile.kernel @exchanges(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [1 cells x 8 warps, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src halo %a ahead 3 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 0]>
  %h1 = tile.load halo %b home #tile.memory : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[1, 0, 0]) else %h1 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[1, 0, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

// One ring holds all levels: a slot is the step plus an offset, modulo its size. The loop is not
// unrolled, nothing is carried, and neighbours read the ring itself.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// CHECK-LABEL: sym_name = "ring"
// CHECK:         %[[seven:.*]] = arith.constant 7 : i32
// CHECK:         %[[ring:.*]] = simt.shared at 0
// CHECK-NOT:     simt.shared
// CHECK:         scf.for
// CHECK:         scf.for %{{[0-9]+}} = %{{[0-9]+}} to %{{[0-9]+}} step %{{[0-9]+}} : i32 {
// CHECK:           "gpu.barrier"
// CHECK:           simt.load %src
// CHECK:           %[[slot:.*]] = arith.andi %{{.*}}, %[[seven]] : i32
// CHECK:           simt.store %{{.*}} to %[[ring]]
// CHECK:           simt.load %[[ring]]
// CHECK:           simt.store %{{.*}} to %[[ring]]
// CHECK-NOT:       {{"gpu.barrier"|simt.shuffle|simt.mark step 1}}
// CHECK:           simt.store %{{.*}} to %dst
// CHECK-NEXT:    }
tile.kernel @ring(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [1 cells x 8 warps, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src halo %a ahead 0 home #tile.shared<slots 8, computed, ring 0 base 7, reader tile> : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b home #tile.memory : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %u0[0, -1, 0], %u0[1, 0, 0]) else %h1 home #tile.shared<slots 8, computed, ring 0 base 3, reader tile> : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %u1[0, -1, 0], %u1[1, 0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

// Shifting slots: offsets are carried and rotated. Threads of a tile of one warp wait
// for their warp only.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// CHECK-LABEL: sym_name = "shifting"
// CHECK-NOT:     "gpu.barrier"
// CHECK:         scf.for
// CHECK:         scf.for {{.*}} iter_args(%[[s0:.*]] = %{{.*}}, %[[s1:.*]] = %{{.*}}, %[[s2:.*]] = %{{.*}}) -> (i32, i32, i32)
// CHECK:           "nvvm.bar.warp.sync"
// CHECK-NOT:       "gpu.barrier"
// CHECK:           scf.yield %[[s2]], %[[s0]], %[[s1]] : i32, i32, i32
// CHECK-NOT:     "gpu.barrier"
tile.kernel @shifting(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0], [64, 64]> layout #tile.layout<warp, [1 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.shared<slots 3, shifting, reader tile> : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[-1, 1], %u0[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !field
}
