// RUN: xdsl-opt %s -p lower-tile-to-gpu | filecheck %s

// Blocks of a tile along two axes: 2 x 2 blocks of two warps, with 4 rows of 32 cells. One row of 32 lanes, a column of 4 cells
// and a corner of a cell go to the blocks beside.

!field = !stencil.field<[-1,9]x[-1,65]xf32>

func.func private @cell(%0: f32, %1: f32, %2: f32) -> f32 {
  %3 = arith.addf %0, %1 : f32
  %4 = arith.addf %3, %2 : f32
  func.return %4 : f32
}

// Two buffers of 64 words a block, for the rows of two tiles, and 2 x 128 words behind for the columns and corners: 32 lanes have a
// word each.
// CHECK-LABEL: sym_name = "square"
// CHECK:         function_type = (memref<660xf32, 1 : i64>, memref<660xf32, 1 : i64>, memref<6146xi64, 1 : i64>, i32) -> ()
// CHECK:         %[[lane:.*]] = arith.andi %{{.*}}, %{{.*}} : i32
// CHECK:         %[[plane:.*]] = simt.shared at 0 : memref<240xf32, 3 : i64>
// CHECK:         simt.store %[[a:.*]] to %[[plane]][%[[own:.*]] + 0]
// CHECK-NEXT:    simt.store %[[b:.*]] to %[[plane]][%[[own]] + 40]
// Rows go to the blocks two ranks before and after, from registers.
// CHECK:         scf.if %[[above:.*]] {
// CHECK-NEXT:      simt.post %[[a]] to %{{.*}}[%{{.*}} + 0] number
// CHECK:         scf.if %[[below:.*]] {
// CHECK-NEXT:      simt.post %[[b]] to %{{.*}}[%{{.*}} + 0] number
// Columns and corners are gathered once the plane is complete. The first lane has the corner; lanes without a cell read it, too.
// CHECK:         "gpu.barrier"
// CHECK:         arith.minsi %[[lane]]
// CHECK:         scf.if %[[corner:.*]] {
// CHECK-NEXT:      %[[c:.*]] = simt.load %[[plane]][%[[first:.*]] + 44] : f32
// CHECK-NEXT:      simt.post %[[c]] to %{{.*}}[%{{.*}} + 96] number
// A lane has a row of a column: the distance between two rows is 40 cells.
// CHECK:         %[[row:.*]] = arith.minsi %[[lane]]
// CHECK:         scf.if %[[left:.*]] {
// CHECK-NEXT:      %[[d:.*]] = simt.load %[[plane]][%[[rows:.*]] + 44] : f32
// CHECK-NEXT:      simt.post %[[d]] to %{{.*}}[%{{.*}} + 64] number
// CHECK:         scf.if %[[right:.*]] {
// CHECK-NEXT:      %[[e:.*]] = simt.load %[[plane]][%[[rows]] + 75] : f32
// CHECK-NEXT:      simt.post %[[e]] to %{{.*}}[%{{.*}} + 32] number
// CHECK:         scf.if %[[opposite:.*]] {
// CHECK-NEXT:      %[[f:.*]] = simt.load %[[plane]][%[[first]] + 195] : f32
// CHECK-NEXT:      simt.post %[[f]] to %{{.*}}[%{{.*}} + 0] number
// The warp that posts in a direction takes from the direction, and writes around the plane: four lanes have a cell of a column.
// CHECK:         scf.if %[[above]] {
// CHECK-NEXT:      %[[g:.*]] = simt.take %{{.*}}[%{{.*}} + 0] number %{{.*}} : f32
// CHECK-NEXT:      simt.store %[[g]] to %[[plane]][%[[own]] + -40]
// CHECK:         scf.if %[[corner]] {
// CHECK-NEXT:      %[[h:.*]] = simt.take %{{.*}}[%{{.*}} + 0] number %{{.*}} : f32
// CHECK-NEXT:      simt.store %[[h]] to %[[plane]][%[[first]] + 3] mask
// CHECK:         %[[four:.*]] = arith.cmpi slt, %[[lane]]
// CHECK:         scf.if %[[left]] {
// CHECK-NEXT:      %[[i:.*]] = simt.take %{{.*}}[%{{.*}} + 32] number %{{.*}} : f32
// CHECK-NEXT:      simt.store %[[i]] to %[[plane]][%[[rows]] + 43] mask %[[four]]
// CHECK:         scf.if %[[right]] {
// CHECK-NEXT:      %[[j:.*]] = simt.take %{{.*}}[%{{.*}} + 64] number %{{.*}} : f32
// CHECK-NEXT:      simt.store %[[j]] to %[[plane]][%[[rows]] + 76] mask %[[four]]
// CHECK:         "gpu.barrier"
// CHECK:         simt.load %[[plane]][%[[own]] + -40]
// CHECK:         simt.load %[[plane]][%[[own]] + 41]
// CHECK-NOT:     {{gpu.barrier|simt.take}}
// CHECK:         shared_bytes 1024, occupancy 1, blocks_per_tile 4, message_words 1536>
tile.kernel @square(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 bounds <[0, 0], [8, 64]>
    layout #tile.layout<device, [2 cells x 2 warps x 2 blocks, 1 cells x 32 lanes x 2 blocks]>
    variants [#tile.variant<axes [0, 1], planes 1>] {
  %u0 = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space global, sync flags> : !tile.queue<f32, lag 0, edges [1, 1]>
  %u1 = tile.apply @cell(%e0[-1, 0], %e0[1, 1], %u0[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %u1 to %dst : !tile.queue<f32, lag 0>, !field
}
