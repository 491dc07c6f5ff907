// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s

// Blocks of a tile of the device synchronise at barriers of the grid. Exchanged words have no number, a cell of
// any size takes a word, and a barrier of the grid stands in place of the block's barrier in each step.

!field = !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// 2 message buffers for each of 3 blocks, of 2 slots for a row of 2 cells of a word, for 32 lanes, and two words for
// the counter; before those of all 16 tiles stand two more.
// CHECK-LABEL: sym_name = "streamed"
// CHECK:         function_type = (memref<76296xf64, 1 : i64>, memref<76296xf64, 1 : i64>, memref<12322xi64, 1 : i64>, i32) -> ()
// CHECK-NEXT:    ^bb0(%src: {{.*}}, %dst: {{.*}}, %[[words:[0-9]+]]: memref
// CHECK-DAG:     %[[one:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[tile:.*]] = arith.constant 770 : i32
// CHECK-DAG:     %[[messages:.*]] = arith.constant 768 : i32
// CHECK-DAG:     %[[header:.*]] = arith.constant 2 : i32
// A block computes several tiles in turn, and the count of steps goes on from tile to tile.
// CHECK:         scf.for {{.*}} iter_args(%[[said:.*]] = %{{.*}}) -> (i32)
// CHECK:           %[[held:.*]] = arith.muli %{{.*}}, %[[tile]] : i32
// CHECK-NEXT:      %[[first:.*]] = arith.addi %[[held]], %[[header]] : i32
// The word in which blocks count arrivals lies behind the tile's message buffers.
// CHECK:           %[[counter:.*]] = arith.addi %[[first]], %[[messages]] : i32
// CHECK:           %[[buffer:.*]] = simt.shared at 0 : memref<1024xf64, 3 : i64>
// CHECK-NOT:       simt.expect
// CHECK:           scf.for %[[step:[0-9]+]] =
// CHECK-NEXT:        simt.mark step 0 stage -1 row 0
// CHECK-NEXT:        %[[passed:.*]] = arith.addi %[[step]], %[[said]] : i32
// CHECK-NEXT:        %[[number:.*]] = arith.addi %[[passed]], %[[one]] : i32
// CHECK-NEXT:        simt.tile_barrier %[[words]][%[[counter]]] number %[[number]] blocks 3
// CHECK-NEXT:        scf.if %[[above:.*]] {
// CHECK-NEXT:          %[[a:.*]], %[[b:.*]] = simt.take %[[words]][%{{.*}} + 64, 96] : f64, f64
// CHECK-NEXT:          simt.store %[[a]], %[[b]] to %[[buffer]][%[[own:.*]] + 448]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.if %[[below:.*]] {
// CHECK-NEXT:          simt.take %[[words]][%{{.*}} + 64, 96] : f64, f64
// CHECK-NEXT:          simt.store
// CHECK-NEXT:        }
// CHECK-NOT:         {{simt.take|simt.post|simt.tile_barrier|gpu.barrier|simt.arrive}}
// CHECK:             simt.mark step 0 stage 4 row 0
// CHECK-NEXT:        scf.if %[[above]] {
// CHECK-NEXT:          simt.post %{{.*}}, %{{.*}} to %[[words]][%{{.*}} + 0, 32]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.if %[[below]] {
// CHECK-NEXT:          simt.post %{{.*}}, %{{.*}} to %[[words]][%{{.*}} + 0, 32]
// CHECK-NEXT:        }
// CHECK-NEXT:        simt.mark step 1 stage -1 row 0
// CHECK:             simt.tile_barrier %[[words]][%[[counter]]]
// CHECK:             simt.take %[[words]][%{{.*}} + 0, 32] : f64, f64
// CHECK:             simt.take %[[words]][%{{.*}} + 0, 32] : f64, f64
// CHECK-NOT:         {{simt.tile_barrier|gpu.barrier}}
// CHECK:             simt.post %{{.*}}, %{{.*}} to %[[words]][%{{.*}} + 64, 96]
// CHECK:             simt.post %{{.*}}, %{{.*}} to %[[words]][%{{.*}} + 64, 96]
// CHECK:             scf.yield
// The variants are chosen block by block: both come to the same barriers.
// CHECK:           } else {
// CHECK-COUNT-2:     simt.tile_barrier
// CHECK-NOT:         simt.tile_barrier
// CHECK:         block 64, shared_bytes {{[0-9]+}}, occupancy 1, blocks_per_tile 3, message_words 770>
tile.kernel @streamed(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]> layout #tile.layout<device, [2 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync grid> : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[0, 0, 0], %e0[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}
