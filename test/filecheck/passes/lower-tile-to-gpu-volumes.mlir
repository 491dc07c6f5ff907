// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s

// A tile of a volume stays in the registers of its threads, here two layers of two rows, with a cell a lane.
// Four blocks lie along the first axis, and four warps along the second axis: every warp is at two edges.

!field = !stencil.field<[-1,9]x[-1,9]x[-1,33]xf32>

func.func private @cell(%0: f32, %1: f32, %2: f32) -> f32 {
  %3 = arith.addf %0, %1 : f32
  %4 = arith.addf %3, %2 : f32
  func.return %4 : f32
}

// A layer at an edge has two rows of 4 x 32 threads, with a cell each. Each of 4 blocks has 2 message buffers, for two tiles in
// turn. Two words stand in front of the message buffers of all 8 tiles.
// CHECK-LABEL: sym_name = "volume"
// CHECK:         function_type = (memref<3400xf32, 1 : i64>, memref<3400xf32, 1 : i64>, memref<32770xi64, 1 : i64>, i32) -> ()
// CHECK:         %[[plane:.*]] = simt.shared at 0 : memref<1280xf32, 3 : i64>
// CHECK:         %[[a:.*]] = simt.load %src[%[[cell:.*]] + 0]
// CHECK:         %[[b:.*]] = simt.load %src[%[[cell]] + 34]
// CHECK:         %[[c:.*]] = simt.load %src[%[[cell]] + 340]
// CHECK:         %[[d:.*]] = simt.load %src[%[[cell]] + 374]
// All own cells are published: a row is 32 cells, a layer 10 rows with those around it.
// CHECK:         simt.store %[[a]] to %[[plane]][%[[own:.*]] + 0]
// CHECK-NEXT:    simt.store %[[b]] to %[[plane]][%[[own]] + 32]
// CHECK-NEXT:    simt.store %[[c]] to %[[plane]][%[[own]] + 320]
// CHECK-NEXT:    simt.store %[[d]] to %[[plane]][%[[own]] + 352]
// The first layer goes to the block before, the last to the one after. No barrier: what follows waits anyway.
// CHECK:         scf.if %[[above:.*]] {
// CHECK-NEXT:      simt.post %[[a]], %[[b]] to %{{.*}}[%{{.*}} + 0, 128] number
// CHECK:         scf.if %[[below:.*]] {
// CHECK-NEXT:      simt.post %[[c]], %[[d]] to %{{.*}}[%{{.*}} + 0, 128] number
// CHECK-NOT:     gpu.barrier
// CHECK:         scf.if %[[above]] {
// CHECK-NEXT:      %[[e:.*]], %[[f:.*]] = simt.take %{{.*}}[%{{.*}} + 0, 128] number
// CHECK-NEXT:      simt.store %[[e]] to %[[plane]][%[[own]] + -320]
// CHECK-NEXT:      simt.store %[[f]] to %[[plane]][%[[own]] + -288]
// CHECK:         scf.if %[[below]] {
// CHECK-NEXT:      %[[g:.*]], %[[h:.*]] = simt.take
// CHECK-NEXT:      simt.store %[[g]] to %[[plane]][%[[own]] + 640]
// CHECK-NEXT:      simt.store %[[h]] to %[[plane]][%[[own]] + 672]
// A warp reads at its corner cells that another warp has received.
// CHECK-NEXT:    }
// CHECK-NEXT:    "gpu.barrier"
// A thread reads its own layers from registers, and received layers from shared memory.
// CHECK:         %[[before:.*]] = simt.load %[[plane]][%[[own]] + -320]
// CHECK:         arith.addf %[[before]], %[[d]] : f32
// CHECK:         simt.load %[[plane]][%[[own]] + -288]
// CHECK-NEXT:    simt.load %[[plane]][%[[own]] + 384]
// CHECK-NOT:     {{gpu.barrier|simt.take}}
// CHECK:         shared_bytes 5120, occupancy 1, blocks_per_tile 4, message_words 4096>
tile.kernel @volume(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 bounds <[0, 0, 0], [8, 8, 32]>
    layout #tile.layout<device, [2 cells x 4 blocks, 2 cells x 4 warps, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [0, 1, 2], planes 1>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space global, sync flags> : !tile.queue<f32, lag 0, edges [1, 1, 0]>
  %u1 = tile.apply @cell(%e0[-1, 0, 0], %e0[1, 1, 0], %u0[0, 0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %u1 to %dst : !tile.queue<f32, lag 0>, !field
}

// -----

// Planes of later levels lie where those of earlier ones were, once a barrier stands between: two slots serve three.

!field = !stencil.field<[-3,11]x[-3,11]x[-3,35]xf64>

func.func private @cell(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// CHECK-LABEL: sym_name = "levels"
// CHECK:         %[[ring:.*]] = simt.shared at 0 : memref<18432xf64, 3 : i64>
// CHECK-NOT:     simt.shared
// CHECK:         simt.store %{{.*}} to %[[ring]][%[[own:.*]] + 0]
// CHECK:         "gpu.barrier"
// CHECK:         simt.load %[[ring]][%[[own]] + -768]
// CHECK:         simt.store %{{.*}} to %[[ring]][%[[own]] + 9216]
// CHECK:         "gpu.barrier"
// CHECK:         simt.load %[[ring]][%[[own]] + 8448]
// CHECK:         simt.store %{{.*}} to %[[ring]][%[[own]] + 0]
// CHECK:         "gpu.barrier"
// CHECK:         simt.load %[[ring]][%[[own]] + -768]
tile.kernel @levels(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 3 bounds <[0, 0, 0], [8, 8, 32]>
    layout #tile.layout<block, [2 cells x 5 warps, 2 cells x 5 warps, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [0, 1, 2], planes 1>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1, 1, 0]>
  %u1 = tile.apply @cell(%e0[-1, 0, 0], %e0[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e1 = tile.exchange %u1 what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 1, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1, 1, 0]>
  %u2 = tile.apply @cell(%e1[-1, 0, 0], %e1[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e2 = tile.exchange %u2 what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1, 1, 0]>
  %u3 = tile.apply @cell(%e2[-1, 0, 0], %e2[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u3 to %dst : !tile.queue<f64, lag 0>, !field
}
