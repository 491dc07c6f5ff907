// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s --check-prefix=GUARDS

// A placed kernel becomes the code of one thread, in two copies: the interior's has no test for the
// in-plane bounds, and neither has the steady part of its loop one for the bounds along the stream.

!field = !stencil.field<[-2,130]x[-2,1026]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// Fields are flat buffers in global memory. A tile is a warp, and four of them share a block.
// CHECK:       "gpu.module"() <{sym_name = "plane"}> ({
// CHECK-NEXT:    "gpu.func"() <{function_type = (memref<135696xf64, 1 : i64>, memref<135696xf64, 1 : i64>, memref<135696xf64, 1 : i64>) -> (), kernel}> ({
// CHECK-COUNT-1: "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
// CHECK:         simt.uniform

// Planes age by renaming: what an unrolled turn yields are the planes that it loaded, the newest first.
// Cells of two planes are carried; the neighbour's cell of the newest one comes from the next lane.
// CHECK:         simt.unset
// CHECK:         scf.for
// CHECK:         scf.for %[[i:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[b0:.*]] = %{{.*}}, %[[b1:.*]] = %{{.*}}, %[[a0:.*]] = %{{.*}}, %[[a1:.*]] = %{{.*}}) -> (f64, f64, f64, f64)
// CHECK-NEXT:      simt.phase step 0 stage 0 row 0
// CHECK:           %[[c0:.*]], %[[c1:.*]] = simt.load %src[%[[at:.*]] + 0] : f64, f64
// CHECK-NEXT:      simt.phase step 0 stage 1 row 0
// CHECK-NEXT:      %[[x0:.*]] = arith.addf %[[a0]], %[[c1]] : f64
// CHECK-NEXT:      %[[next:.*]] = simt.shuffle %[[c0]] delta 1 : f64
// CHECK-NEXT:      %[[x1:.*]] = arith.addf %[[a1]], %[[next]] : f64
// CHECK-NEXT:      simt.phase step 0 stage 2 row 0
// The plane that is complete lies one row back: the store's lag.
// CHECK:           simt.store %[[x0]], %[[x1]] to %dst[%[[at]] + -1028] mask
// CHECK-NEXT:      simt.phase step 1 stage 0 row 0
// CHECK-NEXT:      %[[d0:.*]], %[[d1:.*]] = simt.load %src[%[[at]] + 1028] : f64, f64
// CHECK-NEXT:      simt.phase step 1 stage 1 row 0
// CHECK-NEXT:      arith.addf %[[b0]], %[[d1]] : f64
// CHECK:           simt.store {{.*}} to %dst[%[[at]] + 0] mask
// CHECK-NEXT:      scf.yield %[[d0]], %[[d1]], %[[c0]], %[[c1]] : f64, f64, f64, f64
// CHECK:         "gpu.return"
// CHECK-NEXT:  gpu.known_block_size = array<i32: 128, 1, 1>
// CHECK-NEXT:  timetile.grid = 9 : i64, timetile.block = 128 : i64, timetile.shared_bytes = 0 : i64, timetile.occupancy = 2 : i64
// CHECK-SAME:    timetile.roles = [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>], timetile.steps = 1 : i64
// CHECK-NOT:   tile.kernel

// The interior: along the stream the first and last turns load under a mask and take halo planes from
// the program's buffer; the turns between do neither. Nothing is overridden along the row.
// GUARDS:      simt.unset
// GUARDS-NOT:  simt.override
// GUARDS:      scf.for
// GUARDS:        simt.load %src[{{.*}}] mask
// GUARDS:        simt.load %a
// GUARDS-NOT:    simt.override
// GUARDS:      scf.for
// GUARDS-NOT:    {{scf.if|simt.override|simt.load %a|simt.load .* mask}}
// GUARDS:      scf.for
// GUARDS-NOT:    simt.override
// The guarded copy: its steady turns, too, look at the end of the row. A lane whose neighbour's cell is
// outside takes it from the program's buffer.
// GUARDS:      simt.unset
// GUARDS:      scf.for
// GUARDS:      scf.for
// GUARDS:        simt.load %src[{{.*}}] mask
// GUARDS:        %[[next:.*]] = simt.shuffle
// GUARDS-NEXT:   simt.override %[[next]] from %a[{{.*}}] mask
// GUARDS:      scf.for
// GUARDS:      "gpu.return"
tile.kernel @plane(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>]
    steps 1 stream 0 bounds <[0, 0], [128, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] occupancy 2 {
  %u = tile.load %src halo %a ahead 0 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[1, 1]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// Scalars are arguments, coordinates are computed; a tile without a stream axis has no loop.

func.func private @cell(%u: f32, %dt: f32, %x: index) -> f32 {
  %i = arith.index_cast %x : index to i32
  %f = arith.sitofp %i : i32 to f32
  %p = arith.mulf %f, %dt : f32
  %s = arith.addf %u, %p : f32
  func.return %s : f32
}

// CHECK:       "gpu.func"() <{function_type = (memref<64xf32, 1 : i64>, memref<64xf32, 1 : i64>, f32) -> (), kernel}> ({
// CHECK-NEXT:  %src: {{.*}}, %dst: {{.*}}, %dt: f32
// CHECK-NOT:   scf.for
// CHECK:       simt.load %src
// CHECK:       arith.sitofp
// CHECK:       arith.mulf %{{.*}}, %dt : f32
// CHECK:       simt.store
// CHECK:       "gpu.return"
tile.kernel @line(%src: !stencil.field<[0,64]xf32>, %dst: !stencil.field<[0,64]xf32>, %dt: f32)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<scalar 0>] steps 1 bounds <[0], [64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %v = tile.apply @cell(%u[0]) scalars(%dt) indices [0] home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %v to %dst : !tile.queue<f32, lag 0>, !stencil.field<[0,64]xf32>
}
