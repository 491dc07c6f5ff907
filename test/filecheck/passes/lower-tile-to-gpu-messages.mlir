// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s

// Blocks of a tile of the device exchange messages in global memory; a step has fixed places for taking and
// sending. Warps read messages at the place of edges published by a neighbouring warp.

!field = !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// The kernel has two more arguments: the words of all tiles of a launch, and an integer by which a block finds its
// words. Each of 3 blocks has 2 message buffers with 2 slots, for a row of 2 cells of 2 words and 32 lanes.
// CHECK-LABEL: sym_name = "messages"
// CHECK:         function_type = (memref<76296xf64, 1 : i64>, memref<76296xf64, 1 : i64>, memref<{{[0-9]+}}xi64, 1 : i64>, i32) -> ()
// CHECK-NEXT:    ^bb0(%src: {{.*}}, %dst: {{.*}}, %[[words:[0-9]+]]: memref
// CHECK:         %[[buffer:.*]] = simt.shared at 0 : memref<1024xf64, 3 : i64>
// CHECK:         %[[arrivals:.*]] = simt.shared at 8192 : memref<1xi64, 3 : i64>
// CHECK:         simt.expect %[[arrivals]] warps 2
// CHECK:         "gpu.barrier"
// CHECK-NOT:     {{simt.tile_barrier|simt.cluster_barrier|"gpu.barrier"}}
// CHECK:         scf.for {{.*}} iter_args
// After the wait, the warp at each edge of a block takes the message, and puts the cells beside its own edge.
// CHECK-NEXT:      simt.mark step 0 stage -1 row 0
// CHECK:           simt.wait %[[arrivals]] phase %{{.*}} : memref<1xi64, 3 : i64>
// CHECK:           scf.if %[[before:.*]] {
// CHECK-NEXT:        %[[a:.*]], %[[b:.*]] = simt.take %[[words]][%[[first:.*]] + 128, 192] number %[[said:.*]] : f64, f64
// CHECK-NEXT:        simt.store %[[a]], %[[b]] to %[[buffer]][%[[own:.*]] + 448]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.if %[[after:.*]] {
// CHECK-NEXT:        %[[c:.*]], %[[d:.*]] = simt.take %[[words]][%[[second:.*]] + 128, 192] number %[[said]] : f64, f64
// CHECK-NEXT:        simt.store %[[c]], %[[d]] to %[[buffer]][%[[own]] + 640]
// CHECK-NEXT:      }
// CHECK-NOT:       {{simt.take|simt.post|scf.if}}
// Both edges: the first row of the first warp, the second one of the last.
// CHECK:           %[[e:.*]], %[[f:.*]] = simt.load %src[%[[at:.*]] + 0]
// CHECK:           %[[g:.*]], %[[h:.*]] = simt.load %src[%[[at]] + 66]
// CHECK:           simt.load %[[buffer]][%[[own]] + 448]
// CHECK:           simt.load %[[buffer]][%[[own]] + 640]
// CHECK:           simt.store %[[e]], %[[f]] to %[[buffer]][%[[own]] + 0]
// CHECK:           simt.store %[[g]], %[[h]] to %[[buffer]][%[[own]] + 64]
// Ahead of the arrival, both are sent; message and slot are those of the step.
// CHECK:           scf.if %[[before]] {
// CHECK-NEXT:        simt.post %[[e]], %[[f]] to %[[words]][%{{.*}} + 0, 64] number %[[number:.*]]
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.if %[[after]] {
// CHECK-NEXT:        simt.post %[[g]], %[[h]] to %[[words]][%{{.*}} + 0, 64] number %[[number]]
// CHECK-NEXT:      }
// CHECK-NEXT:      simt.arrive %[[arrivals]] phase %{{.*}} : memref<1xi64, 3 : i64>
// CHECK-NEXT:      simt.mark step 1 stage -1 row 0
// CHECK:           simt.wait %[[arrivals]]
// CHECK:           simt.take %[[words]][%[[first]] + 0, 64] number %[[next:.*]] : f64, f64
// CHECK:           simt.take %[[words]][%[[second]] + 0, 64] number %[[next]] : f64, f64
// CHECK:           simt.post %{{.*}}, %{{.*}} to %[[words]][%{{.*}} + 128, 192]
// CHECK:           simt.post %{{.*}}, %{{.*}} to %[[words]][%{{.*}} + 128, 192]
// CHECK-NEXT:      }
// CHECK-NEXT:      simt.arrive
// CHECK-NEXT:      scf.yield
// The variants are chosen block by block: both say the same.
// CHECK:         } else {
// CHECK-COUNT-4:   simt.take
// CHECK-NOT:       simt.take
// CHECK:         block 64, shared_bytes {{[0-9]+}}, occupancy 1, blocks_per_tile 3, message_words 1536>
tile.kernel @messages(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]> layout #tile.layout<device, [2 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[0, 0, 0], %e0[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// The edges of all levels of a type go in one message. A cell of 4 bytes takes a word. A message read two
// steps later has the number of two steps before. The first steps take message 0, which nobody sends.

!field = !stencil.field<[-1,33]x[-2,34]x[-1,65]xf32>

func.func private @cell(%0: f32, %1: f32, %2: f32) -> f32 {
  %3 = arith.addf %0, %1 : f32
  %4 = arith.addf %3, %2 : f32
  func.return %4 : f32
}

// CHECK-LABEL: sym_name = "levels"
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           simt.wait %{{.*}} phase %[[before:.*]] : memref<1xi64, 3 : i64>
// CHECK-DAG:       %[[number:.*]] = arith.maxsi %[[before]], %{{.*}} : i32
// CHECK:           scf.if %{{.*}} {
// CHECK-NEXT:        %[[a:.*]], %[[b:.*]] = simt.take %{{.*}}[%{{.*}} + 64, 192] number %[[number]] : f32, f32
// CHECK-NEXT:        simt.store %[[a]] to %[[mail0:.*]][
// CHECK-NEXT:        simt.store %[[b]] to %[[mail1:.*]][
// CHECK-NEXT:      }
// CHECK-NEXT:      {{.*}}arith.maxsi
// CHECK-NEXT:      scf.if %{{.*}} {
// CHECK-NEXT:        simt.take %{{.*}}[%{{.*}} + 64, 192]
// CHECK:           simt.post %{{.*}}, %{{.*}} to %{{.*}}[%{{.*}} + 0, 128]
// CHECK:         blocks_per_tile 2, message_words 1024>
tile.kernel @levels(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [32, 32, 64]> layout #tile.layout<device, [2 cells x 2 warps x 2 blocks, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 2, period 1> : !tile.queue<f32, lag 0>
  %e0 = tile.exchange %u0 what edges delay 2 home #tile.exchange_buffer<slots 4, fixed, every 1, space global, sync flags> : !tile.queue<f32, lag 2, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[0, 0, 0], %e0[0, 1, 0]) home #tile.registers<depth 2, period 1> : !tile.queue<f32, lag 2>
  %e1 = tile.exchange %u1 what edges delay 2 home #tile.exchange_buffer<slots 4, fixed, every 1, space global, sync flags> : !tile.queue<f32, lag 4, edges [1, 0]>
  %u2 = tile.apply @cell(%e1[0, -1, 0], %u1[0, 0, 0], %e1[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 4>
  tile.store %u2 to %dst : !tile.queue<f32, lag 4>, !field
}

// -----

// Where the loop is not unrolled by the slots, the slot follows from the message's number.

!field = !stencil.field<[-1,33]x[-1,33]x[-1,65]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// CHECK-LABEL: sym_name = "computed"
// CHECK:         scf.for %[[step:[0-9]+]] = {{.*}} -> (f64, f64, f64, f64) : i32 {
// CHECK:           simt.wait
// CHECK:           %[[slot:.*]] = arith.remui %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:      %[[words:.*]] = arith.muli %[[slot]], %{{.*}} : i32
// CHECK:           scf.if
// CHECK-NEXT:        %[[at:.*]] = arith.addi %{{.*}}, %[[words]] : i32
// CHECK-NEXT:        simt.take %{{.*}}[%[[at]] + 0, 64] number
// CHECK:           %[[newer:.*]] = arith.remui %{{.*}}, %{{.*}} : i32
// CHECK:           scf.if
// CHECK-NEXT:        %[[to:.*]] = arith.addi
// CHECK-NEXT:        simt.post %{{.*}}, %{{.*}} to %{{.*}}[%[[to]] + 0, 64] number
// CHECK:         message_words 2048>
tile.kernel @computed(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [32, 32, 64]> layout #tile.layout<device, [2 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 1, period 1> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what edges delay 1 home #tile.exchange_buffer<slots 4, computed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[0, 0, 0], %e0[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}
