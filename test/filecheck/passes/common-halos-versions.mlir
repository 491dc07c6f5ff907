// RUN: xdsl-opt %s -p 'common-halos,temporal-fusion{depths=2},device-tiling{tile=block cells=2,1 lanes=1,32 warps=4,1},multi-queue-buffering{ahead=1},register-streaming{what=copies},carry-halos' | filecheck %s
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=2},device-tiling{tile=block cells=2,1 lanes=1,32 warps=4,1},multi-queue-buffering{ahead=1},register-streaming{what=copies},carry-halos' | filecheck %s --check-prefix=APART
// RUN: xdsl-opt %s -p 'common-halos,temporal-fusion{depths=2},device-tiling{tile=block cells=2,1 lanes=1,32 warps=4,1},plan-launches{steps=9}' | filecheck %s --check-prefix=PLAN

// Two versions are alive in a wave. With common halos both are read with the halo around, and the first level's cells
// outside the bounds are in registers. The coefficient's ring has a slot for each of its planes: the oldest one read,
// the step's own, and one on its way.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @wave_d2(
// CHECK:         %[[u0:.*]] = tile.load %src ahead 1 home
// CHECK:         tile.load %src_1 ahead 1 home
// CHECK:         tile.load %C ahead 1 home #tile.copies<slots 3>
// CHECK-NOT:     tile.load
// CHECK:         tile.apply @cell({{.*}}) else %[[u0]] home

// APART-LABEL: tile.kernel @wave_d2(
// APART:         tile.load %src halo %{{.*}} ahead 1 home
// APART:         tile.load %src_1 halo %{{.*}} ahead 1 home
// APART:         %[[h1:.*]] = tile.load halo %{{.*}} home #tile.memory
// APART:         tile.apply @cell({{.*}}) else %[[h1]] home

// A scratch buffer begins as a copy.
// PLAN-LABEL: func.func @wave(
// PLAN:         %[[s:.*]] = tile.scratch
// PLAN:         tile.copy %{{.*}} to %[[s]]
// PLAN:         tile.launch @wave_d2(

func.func private @cell(%u: f64, %old: f64, %c: f64, %left: f64, %right: f64) -> f64 {
  %sum = arith.addf %left, %right : f64
  %moved = arith.mulf %c, %sum : f64
  %twice = arith.addf %moved, %u : f64
  %new = arith.subf %twice, %old : f64
  func.return %new : f64
}

func.func @wave(%n: index, %A: !field, %B: !field, %D: !field, %C: !field) {
  temporal.loop %n (%now = %A, %new = %B, %old = %D) rotate [1, 2, 0] {
    temporal.update %new = @cell(%now[0, 0, 0], %old[0, 0, 0], %C[0, 0, 0], %now[0, -1, 0], %now[1, 0, 0]) in <[0, 0, 0], [64, 64, 64]>
  } : !field, !field, !field
  func.return
}
