// RUN: xdsl-opt %s -p common-halos 2>&1 | filecheck %s --check-prefixes=LEFT,CHECK
// RUN: xdsl-opt %s -p common-halos,common-halos | filecheck %s
// RUN: xdsl-opt %s -p 'common-halos{everywhere=true}' | filecheck %s --check-prefix=EVERYWHERE
// RUN: xdsl-opt %s -p 'common-halos,temporal-fusion{depths=3},device-tiling{tile=warp cells=4 lanes=32 warps=1 pack=4},multi-queue-buffering,register-streaming,carry-halos,peel-boundaries' | filecheck %s --check-prefixes=KERNEL,RIM
// RUN: xdsl-opt %s -p 'common-halos,temporal-fusion{depths=3},device-tiling{tile=warp cells=4 lanes=32 warps=1 pack=4},multi-queue-buffering,register-streaming,carry-halos,peel-boundaries{guards=all}' | filecheck %s --check-prefixes=KERNEL,ALL
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=3},device-tiling{tile=warp cells=4 lanes=32 warps=1 pack=4},multi-queue-buffering,register-streaming,carry-halos,peel-boundaries' | filecheck %s --check-prefix=APART
// RUN: xdsl-opt %s -p 'common-halos,temporal-fusion{depths=4},device-tiling,plan-launches{steps=9}' | filecheck %s --check-prefix=PLAN

// The caller promises equal cells outside the bounds for buffers that take turns.

!field = !stencil.field<[-1,4097]x[-1,4097]xf64>

// LEFT:        temporal.loop in @shrinking: common halos are promised for the start of the call, and an earlier loop may write cells around the bounds: every buffer's own halo is read; move the loop to a function of its own, with the promise
// LEFT:        temporal.loop in @in_turns: common halos are promised for the start of the call, and an earlier loop may write cells around the bounds: every buffer's own halo is read; move the loop to a function of its own, with the promise
// CHECK-LABEL: func.func @heat(
// CHECK:         temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] common_halos {

// Every level takes its cells outside the bounds from the level below, which still keeps the plane; no halo is
// read from memory. Tiles inside the bounds have a copy without guards, unless all are to run alike.
// KERNEL-LABEL: tile.kernel @heat_d3(
// RIM-SAME:       variants [#tile.variant<axes [1], planes {{[0-9]+}}>, #tile.variant<axes [], planes {{[0-9]+}}, joined {{[0-9]+}}>] occupancy
// ALL-SAME:       variants [#tile.variant<axes [1], planes {{[0-9]+}}>] occupancy
// KERNEL-NOT:     halo
// KERNEL:         %[[u0:.*]] = tile.load %src ahead
// KERNEL-NEXT:    %[[u1:.*]] = tile.apply @star(%[[u0]][{{.*}}) else %[[u0]] home
// KERNEL-NEXT:    %[[u2:.*]] = tile.apply @star(%[[u1]][{{.*}}) else %[[u1]] home
// KERNEL-NEXT:    %[[u3:.*]] = tile.apply @star(%[[u2]][{{.*}}) home
// KERNEL-NEXT:    tile.store %[[u3]] to %dst

// Without the promise the first level's are the other buffer's.
// APART-LABEL: tile.kernel @heat_d3(
// APART:         %[[u0:.*]] = tile.load %src ahead
// APART-NEXT:    %[[h1:.*]] = tile.load halo %{{.*}} home
// APART-NEXT:    %[[u1:.*]] = tile.apply @star(%[[u0]][{{.*}}) else %[[h1]] home
// APART-NEXT:    %[[u2:.*]] = tile.apply @star(%[[u1]][{{.*}}) else %[[u0]] home

// Data may be in any of them: an even depth needs no copy of the first one.
// PLAN-LABEL: func.func @heat(
// PLAN-NOT:     tile.scratch
// PLAN-NOT:     tile.copy
// PLAN:         tile.launch @heat_d4(%A, %B, %A, %B) :
// PLAN-NEXT:    tile.launch @heat_d4(%B, %A, %A, %B) :
// PLAN-NEXT:    tile.launch @heat_step(%A, %B, %A, %B) :
func.func private @star(%0: f64, %1: f64, %2: f64, %3: f64) -> f64 {
  %a = arith.addf %0, %1 : f64
  %b = arith.addf %a, %2 : f64
  %c = arith.addf %b, %3 : f64
  func.return %c : f64
}

func.func @heat(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4096]>
  } : !field, !field
  func.return
}

// The promise is of the buffers that the function is called with: the first loop writes cells of the second's that lie
// outside its bounds. A loop that writes inside them, or other buffers, keeps the promise.
// CHECK-LABEL: func.func @shrinking(
// CHECK:         rotate [1, 0] common_halos {
// CHECK:         rotate [1, 0] {
// EVERYWHERE-LABEL: func.func @shrinking(
// EVERYWHERE:    rotate [1, 0] common_halos {
// EVERYWHERE:    rotate [1, 0] common_halos {
func.func @shrinking(%n: index, %A: !field, %B: !field) {
  %last, %before = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4096]>
  } : !field, !field
  temporal.loop %n (%a = %last, %b = %before) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4095]>
  } : !field, !field
  func.return
}

// CHECK-LABEL: func.func @growing(
// CHECK:         rotate [1, 0] common_halos {
// CHECK:         rotate [1, 0] common_halos {
func.func @growing(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4095]>
  } : !field, !field
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4096]>
  } : !field, !field
  func.return
}

// CHECK-LABEL: func.func @others(
// CHECK:         rotate [1, 0] common_halos {
// CHECK:         rotate [1, 0] common_halos {
func.func @others(%n: index, %A: !field, %B: !field, %C: !field, %D: !field) {
  temporal.loop %n (%a = %C, %b = %D) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4096]>
  } : !field, !field
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4095]>
  } : !field, !field
  func.return
}

// In a loop around both the second runs before the first, too.
// CHECK-LABEL: func.func @in_turns(
// CHECK:         rotate [1, 0] {
// CHECK:         rotate [1, 0] common_halos {
func.func @in_turns(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
      temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4095]>
    } : !field, !field
    temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
      temporal.update %b = @star(%a[-1, 0], %a[0, -1], %a[0, 1], %a[1, 0]) in <[0, 0], [4096, 4096]>
    } : !field, !field
  }
  func.return
}
