// RUN: xdsl-opt %s -p device-tiling | filecheck %s
// RUN: xdsl-opt %s -p 'device-tiling,multi-queue-buffering,peel-boundaries,lower-tile-to-gpu' | filecheck %s --check-prefix=THREAD

// A part of a step: the half step of %e reads the new %h at the own cell and at the cell before, and computes the
// latter again, from cells of %h and %e moved by the distance. The boxes differ, and the store of the smaller box
// names the box.

!field = !stencil.field<[0,66]x[0,70]xf64>

// CHECK-LABEL: tile.kernel @leap_step(
// CHECK-SAME:    bounds <[0, 0], [66, 69]> layout #tile.layout<block, [1 cells x 4 warps, 2 cells x 32 lanes]>
// CHECK-DAG:     %[[h0:.*]] = tile.load %[[H:.*]] at [0, 0] :
// CHECK-DAG:     %[[h1:.*]] = tile.load %[[H]] at [0, -1] :
// CHECK-DAG:     %[[e2:.*]] = tile.load %[[E:.*]] at [0, 1] :
// CHECK-DAG:     %[[e1:.*]] = tile.load %[[E]] at [0, 0] :
// CHECK-DAG:     %[[e0:.*]] = tile.load %[[E]] at [0, -1] :
// CHECK-DAG:     %[[own:.*]] = tile.apply @half(%[[h0]][0, 0], %[[e2]][0, 0], %[[e1]][0, 0]) :
// CHECK-DAG:     %[[before:.*]] = tile.apply @half(%[[h1]][0, 0], %[[e1]][0, 0], %[[e0]][0, 0]) :
// CHECK:         %[[new:.*]] = tile.apply @half(%[[e1]][0, 0], %[[own]][0, 0], %[[before]][0, 0]) :
// CHECK-NEXT:    tile.store %[[new]] to %{{.*}} in <[1, 1], [65, 69]> :
// CHECK-NEXT:    tile.store %[[own]] to %{{.*}} : !tile.queue
// CHECK:         kernels [@leap_step]

// Tiles inside the rim read aligned vectors without a mask, and cells beside the thread's own with one along the
// row. Tiles on the rim run a cell after the other.
// THREAD-LABEL: "gpu.module"() <{sym_name = "leap_step"}>
// THREAD:         scf.if
// THREAD:           simt.load %{{.*}}[%{{.*}} + {{.*}}] mask %{{.*}} : f64, f64
// THREAD:           simt.store %{{.*}}, %{{.*}} to %{{.*}} mask
// THREAD:         } else {
// THREAD:           scf.for
// THREAD-NOT:         : f64, f64
// THREAD:             simt.store %{{.*}} to
func.func private @half(%own: f64, %high: f64, %low: f64) -> f64 {
  %d = arith.subf %high, %low : f64
  %s = arith.addf %own, %d : f64
  func.return %s : f64
}
func.func @leap(%n: index, %E: !field, %EN: !field, %H: !field, %HN: !field) {
  temporal.loop %n (%e = %E, %en = %EN, %h = %H, %hn = %HN) rotate [1, 0, 3, 2] depths [1]
      schedule #tile.schedule<tile block, cells [1, 2], lanes [1, 32], warps [4, 1], pack 1, resident, reads_memory> {
    temporal.update %hn = @half(%h[0, 0], %e[0, 1], %e[0, 0]) in <[0, 0], [66, 69]>
    temporal.update %en = @half(%e[0, 0], %hn[0, 0], %hn[0, -1]) in <[1, 1], [65, 69]>
  } : !field, !field, !field, !field
  func.return
}

// Rows end between threads, and all taps of written cells lie in the field: a thread beyond the ends skips the code
// inside the rim, and no access there has a mask.

// THREAD-LABEL: "gpu.module"() <{sym_name = "even_step"}>
// THREAD:         scf.if
// THREAD:           %[[away:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// THREAD-NEXT:      %[[in_row:.*]] = arith.cmpi ult, %[[away]],
// THREAD-NEXT:      scf.if %[[in_row]] {
// THREAD-NOT:         mask
// THREAD:             simt.store %{{.*}}, %{{.*}} to %{{.*}}
// THREAD:           } else {
// THREAD:             simt.store %{{.*}} to %{{.*}} mask
func.func @even(%n: index, %E: !field, %EN: !field) {
  temporal.loop %n (%e = %E, %en = %EN) rotate [1, 0] depths [1]
      schedule #tile.schedule<tile block, cells [1, 2], lanes [1, 32], warps [4, 1], pack 1, resident, reads_memory> {
    temporal.update %en = @half(%e[0, -2], %e[0, 2], %e[0, 0]) in <[0, 2], [66, 68]>
  } : !field, !field
  func.return
}

// A part stores a result of the loop's scratch that no update of the part reads. Each kernel has its own number of
// blocks of a multiprocessor; without, all have one number.

// CHECK-LABEL: tile.kernel @unread_step_0(
// CHECK:         occupancy 1
// CHECK-LABEL: tile.kernel @unread_step_1(
// CHECK-SAME:    occupancy 3
// CHECK:         %[[mean:.*]] = tile.apply @half(
// CHECK-NEXT:    tile.store %[[mean]] to %{{.*}} :
func.func @unread(%n: index, %E: !field, %EN: !field) {
  %S = temporal.scratch : !field
  temporal.loop %n (%e = %E, %en = %EN, %s = %S) rotate [1, 0, 2] depths [1]
      schedule #tile.schedule<tile block, cells [1, 2], lanes [1, 32], warps [4, 1], pack 1, resident, reads_memory, cuts [1], occupancies [1, 3]> {
    temporal.update %en = @half(%e[0, 0], %e[0, 1], %e[0, 0]) in <[0, 0], [66, 69]>
    temporal.update %s = @half(%e[0, 0], %e[0, 1], %e[0, 0]) in <[1, 1], [65, 69]>
  } : !field, !field, !field
  func.return
}
