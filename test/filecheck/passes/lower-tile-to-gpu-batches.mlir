// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s

// Blocks of a tile that the device holds, which meet once in two steps; and their planes in shared memory.

!field = !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// The barrier stands in every other step, and is numbered by batches; what was sent two steps ago is taken in each, into
// the slots of four steps.
// CHECK-LABEL: sym_name = "batches"
// CHECK:         %[[buffer:.*]] = simt.shared at 0 : memref<2048xf64, 3 : i64>
// CHECK:         scf.for %[[step:[0-9]+]] =
// CHECK-NEXT:      simt.mark step 0 stage -1 row 0
// CHECK:           %[[batch:.*]] = arith.divui %{{.*}}, %[[two:.*]] : i32
// CHECK-NEXT:      %[[number:.*]] = arith.addi %[[batch]], %{{.*}} : i32
// CHECK-NEXT:      simt.tile_barrier %{{.*}}[%{{.*}}] number %[[number]] blocks 3
// CHECK-NEXT:      scf.if %[[above:.*]] {
// CHECK-NEXT:        simt.take %{{.*}}[%{{.*}} + 128, 160] : f64, f64
// CHECK:           simt.post %{{.*}}, %{{.*}} to %{{.*}}[%{{.*}} + 0, 32]
// CHECK:           simt.mark step 1 stage -1 row 0
// CHECK-NEXT:      scf.if %[[above]] {
// CHECK-NEXT:        simt.take %{{.*}}[%{{.*}} + 192, 224] : f64, f64
// CHECK-NOT:       simt.tile_barrier
// CHECK:           simt.mark step 2 stage -1 row 0
// CHECK:           simt.tile_barrier
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        simt.take %{{.*}}[%{{.*}} + 0, 32] : f64, f64
// CHECK-NOT:       simt.tile_barrier
// CHECK:           scf.yield
tile.kernel @batches(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]> layout #tile.layout<device, [2 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what edges delay 2 home #tile.exchange_buffer<slots 4, fixed, every 2, space global, sync grid> : !tile.queue<f64, lag 2, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[1, 0, 0], %e0[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 2>
  tile.store %u1 to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

!field = !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// Rows that were taken lie around the block's own in the ring, where the warp at the edge reads them, and lanes read
// what other lanes have put there; rows of other warps are read from the ring, too. What is sent was in registers still.
// CHECK-LABEL: sym_name = "rings"
// CHECK:         %[[ring:.*]] = simt.shared at 0 : memref<1632xf64, 3 : i64>
// CHECK:         scf.for
// CHECK:           simt.tile_barrier
// CHECK:           %[[a:.*]], %[[b:.*]] = simt.take
// CHECK-NEXT:      %[[old:.*]] = arith.addi
// CHECK-NEXT:      simt.store %[[a]], %[[b]] to %[[ring]][%[[old]] + -68]
// CHECK:           simt.take
// CHECK:           simt.store %{{.*}}, %{{.*}} to %[[ring]][%{{.*}} + 136]
// CHECK:           "nvvm.bar.warp.sync"
// CHECK:           %[[c:.*]], %[[d:.*]] = simt.load %src
// CHECK:           simt.store %[[c]], %[[d]] to %[[ring]][%{{.*}} + 0]
// CHECK:           simt.load %[[ring]][%{{.*}} + -68] : f64, f64
// CHECK:           simt.load %[[ring]][%{{.*}} + 2] : f64, f64
// CHECK:           simt.post %[[c]], %[[d]] to
// CHECK-NOT:       gpu.barrier
// CHECK:           scf.yield
tile.kernel @rings(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]> layout #tile.layout<device, [2 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.shared<slots 4, computed, ring 0 base 0, reader tile> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what edges delay 1 home #tile.exchange_buffer<slots 2, computed, every 1, space global, sync grid> : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[0, 0, 1], %e0[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}
