// RUN: xdsl-opt %s -p 'device-tiling{reads=memory}' --split-input-file --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'device-tiling{reads=memory cuts=1}' --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=CUT
// RUN: xdsl-opt %s -p 'device-tiling{reads=memory cuts=2}' --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=TWO
// RUN: xdsl-opt %s -p 'device-tiling{reads=memory stream-axis=0}' --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=STREAM
// RUN: xdsl-opt %s -p 'device-tiling{reads=tile cuts=1}' --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=TILE
// RUN: xdsl-opt %s -p 'device-tiling{reads=memory},multi-queue-buffering,peel-boundaries' --split-input-file --verify-diagnostics 2>/dev/null | filecheck %s --check-prefix=PLACED

// Kernels that read every tap from memory keep nothing, so that no reach is too far: a load for each offset, which
// its readers tap at their own cell. A step runs in as few kernels as may be.

// The second update looks at what the first one wrote at the own cell only. The third looks beside it.

!field = !stencil.field<[-40,104]xf64>

// CHECK:       temporal.loop in @far: depths [4, 2] are left out: kernels that read memory advance a single step
// CHECK-LABEL: tile.kernel @far_step_0(%src: {{.*}}, %dst: {{.*}}, %dst_1: {{.*}})
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<target 2>]
// CHECK-SAME:    steps 1 bounds <[0], [64]> layout #tile.layout<warp, [1 cells x 32 lanes], pack 8> occupancy 2
// CHECK-NEXT:    %[[low:.*]] = tile.load %src at [-40] : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[high:.*]] = tile.load %src at [40] : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[b:.*]] = tile.apply @sum(%[[low]][0], %[[high]][0]) : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[c:.*]] = tile.apply @sum(%[[b]][0], %[[low]][0]) : !tile.queue<f64, lag 0>
// CHECK-NEXT:    tile.store %[[b]] to %dst
// CHECK-NEXT:    tile.store %[[c]] to %dst_1
// CHECK-NEXT:  }
// CHECK-LABEL: tile.kernel @far_step_1(%src: {{.*}}, %dst: {{.*}})
// CHECK-SAME:    roles [#tile.role<source 2>, #tile.role<target 2>]
// CHECK:       depths [1] kernels [@far_step_0, @far_step_1]

// PLACED-LABEL: tile.kernel @far_step_0(
// PLACED:         tile.load %src at [-40] home #tile.memory : !tile.queue<f64, lag 0>

// CUT:         temporal.loop in @far: update 2 cannot share a kernel with the update before: a thread would read cells written by other threads, or a field is written in two boxes; give device-tiling cuts with 2
// TWO:         kernels [@far_step_0, @far_step_1]
// STREAM:      temporal.loop in @far: kernels with reads=memory keep no planes to stream, and their blocks wait for no others; leave out stream-axis and tile=cluster or tile=device, or reads=memory
// TILE:        temporal.loop in @far: cuts=[1] was asked for, and only kernels that read memory run a step in parts; leave it out, or use reads=memory without tile and stream-axis
func.func private @sum(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @far(%n: index, %A: !field, %B: !field, %C: !field) {
  temporal.loop %n (%a = %A, %b = %B, %c = %C) rotate [1, 0, 2] depths [4, 2, 1] {
    temporal.update %b = @sum(%a[-40], %a[40]) in <[0], [64]>
    temporal.update %c = @sum(%b[0], %a[-40]) in <[0], [64]>
    temporal.update %c = @sum(%c[0], %c[0]) in <[32], [96]>
  } : !field, !field, !field
  func.return
}

// -----

!field = !stencil.field<[-40,104]xf64>

// CUT:         temporal.loop in @one: a step of 1 updates is cut before updates 1 to 0, got [1]; give device-tiling other cuts
// CHECK-LABEL: tile.kernel @one_step(
// CHECK:         kernels [@one_step]
func.func private @sum(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @one(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-40], %a[40]) in <[0], [64]>
  } : !field, !field
  func.return
}
