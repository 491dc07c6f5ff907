// RUN: xdsl-opt %s -p device-tiling --split-input-file --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'device-tiling{cells=8 pack=2 stream-axis=1}' --split-input-file --verify-diagnostics 2>/dev/null | filecheck %s --check-prefix=OPTIONS
// RUN: xdsl-opt %s -p 'device-tiling{tile=device cells=4,2 lanes=1,32 warps=2,1 blocks=3,1}' --split-input-file --verify-diagnostics 2>/dev/null | filecheck %s --check-prefix=DEVICE
// RUN: xdsl-opt %s -p 'device-tiling{tile=device cells=4,2 lanes=1,32 warps=2,1 blocks=3,1 stream-axis=none}' --split-input-file --verify-diagnostics 2>/dev/null | filecheck %s --check-prefix=STILL

// One kernel per depth beside the loop, and one more for the last steps: the steps are unrolled over
// buffers, each update a stage. Outside its box a stage takes the previous version of its target.

// A kernel of two steps reads the first version from %src, where launches find it with its halo around
// it. The halo of the second version is the other buffer's; nobody looks at the halo of the last one.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @heat_d2(%src: {{.*}}, %dst: {{.*}}, %a: {{.*}}, %b: {{.*}})
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
// CHECK-SAME:    steps 2 stream 0 bounds <[0, 0], [64, 64]> layout #tile.layout<warp, [4 cells x 32 lanes], pack 4>
// CHECK-NOT:     variants
// CHECK-NEXT:    %[[u0:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[h1:.*]] = tile.load halo %b : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0], %[[u0]][1, 1]) else %[[h1]] : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[u2:.*]] = tile.apply @cell(%[[u1]][-1, 0], %[[u1]][1, 1]) : !tile.queue<f64, lag 2>
// CHECK-NEXT:    tile.store %[[u2]] to %dst
// CHECK-NEXT:  }
// CHECK-NEXT:  tile.kernel @heat_step
// CHECK-SAME:    steps 1
// CHECK-NEXT:    %[[v0:.*]] = tile.load %src :
// CHECK-NEXT:    %[[v1:.*]] = tile.apply @cell(%[[v0]][-1, 0], %[[v0]][1, 1]) : !tile.queue
// CHECK-NEXT:    tile.store %[[v1]] to %dst
// CHECK-NEXT:  }
// CHECK-NOT:   {{tile.kernel|tile.exchange|home}}
// CHECK:       temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] kernels [@heat_d2, @heat_step] {

// OPTIONS-LABEL: tile.kernel @heat_d2
// OPTIONS-SAME:    stream 1 bounds <[0, 0], [64, 64]> layout #tile.layout<warp, [8 cells x 32 lanes], pack 2>
// OPTIONS-LABEL: tile.kernel @heat_step
func.func @heat(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] {
    temporal.update %b = @cell(%a[-1, 0], %a[1, 1]) in <[0, 0], [64, 64]>
  } : !field, !field
  func.return
}

// -----

// Second order in time: two versions are read, and two are stored, but the last kernel stores only
// what its step writes. One load of the coefficient field serves both levels.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @wave_d2(%src: {{.*}}, %src_1: {{.*}}, %dst: {{.*}}, %dst_1: {{.*}}, %now: {{.*}}, %next: {{.*}}, %before: {{.*}}, %K: {{.*}}, %dt: f64)
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<source 2>, #tile.role<target 0>, #tile.role<target 2>, #tile.role<halo 0>, #tile.role<halo 1>, #tile.role<halo 2>, #tile.role<capture 0>, #tile.role<scalar 0>]
// CHECK:         %[[u0:.*]] = tile.load %src halo %now : !tile.queue<f64, lag 0>
// CHECK:         %[[um:.*]] = tile.load %src_1 halo %before : !tile.queue<f64, lag 1>
// CHECK:         %[[k1:.*]] = tile.load %K : !tile.queue<f64, lag 1>
// CHECK:         %[[h1:.*]] = tile.load halo %next
// CHECK:         %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0], %[[u0]][1, 0], %[[um]][0, 0], %[[k1]][0, 0]) scalars(%dt) indices [1] else %[[h1]]
// CHECK:         %[[u2:.*]] = tile.apply @cell(%[[u1]][-1, 0], %[[u1]][1, 0], %[[u0]][0, 0], %[[k1]][0, 0]) scalars(%dt) indices [1] : !tile.queue<f64, lag 2>
// CHECK-NEXT:    tile.store %[[u2]] to %dst :
// CHECK-NEXT:    tile.store %[[u1]] to %dst_1 :
// CHECK-NEXT:  }
// CHECK-LABEL: tile.kernel @wave_step
// CHECK-SAME:    #tile.role<target 0>, #tile.role<halo 0>
// CHECK-COUNT-1: tile.store
// CHECK-NOT:     tile.store
// CHECK:       kernels [@wave_d2, @wave_step]
func.func @wave(%n: index, %dt: f64, %A: !field, %B: !field, %C: !field, %K: !stencil.field<[0,64]x[0,64]xf64>) {
  temporal.loop %n (%now = %A, %next = %B, %before = %C) rotate [1, 2, 0] depths [2, 1] {
    temporal.update %next = @cell(%now[-1, 0], %now[1, 0], %before[0, 0], %K[0, 0]) scalars(%dt) indices [1] in <[0, 0], [64, 64]>
  } : !field, !field, !field
  func.return
}

// -----

// Two coupled fields: the second update taps what the first has just made. A step costs one plane of
// lag, the longest path over the stages, and not the sum of the radii.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @coupled_d2
// CHECK:         %[[v1:.*]] = tile.apply @velocity(%{{.*}}[0, 0], %[[s0:.*]][-1, 0], %[[s0]][0, 0]) else %{{.*}} : !tile.queue<f64, lag 0>
// CHECK:         %[[s1:.*]] = tile.apply @stress(%[[s0]][0, 0], %[[v1]][1, 0]) else %{{.*}} : !tile.queue<f64, lag 1>
// CHECK:         %[[v2:.*]] = tile.apply @velocity(%[[v1]][0, 0], %[[s1]][-1, 0], %[[s1]][0, 0]) else %{{.*}} : !tile.queue<f64, lag 1>
// CHECK:         %[[s2:.*]] = tile.apply @stress(%[[s1]][0, 0], %[[v2]][1, 0]) : !tile.queue<f64, lag 2>
// CHECK:         tile.store %[[v2]]
// CHECK:         tile.store %[[s2]]
func.func @coupled(%n: index, %V0: !field, %V1: !field, %S0: !field, %S1: !field) {
  temporal.loop %n (%v0 = %V0, %v1 = %V1, %s0 = %S0, %s1 = %S1) rotate [1, 0, 3, 2] depths [2, 1] {
    temporal.update %v1 = @velocity(%v0[0, 0], %s0[-1, 0], %s0[0, 0]) in <[0, 0], [64, 64]>
    temporal.update %s1 = @stress(%s0[0, 0], %v1[1, 0]) in <[0, 0], [64, 64]>
  } : !field, !field, !field, !field
  func.return
}

// -----

// A box smaller than the cells written by the kernel stays on its stage. The stage's `else` is the queue
// with the target's earlier values.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @boxes_step
// CHECK:         %[[whole:.*]] = tile.apply @inside(%[[u:.*]][-1, 0]) else %{{.*}} : !tile.queue
// CHECK-NEXT:    %[[both:.*]] = tile.apply @rim(%[[u]][0, 1]) else %[[whole]] in <[0, 0], [64, 1]> : !tile.queue
// CHECK-NEXT:    tile.store %[[both]] to %dst
func.func @boxes(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @inside(%a[-1, 0]) in <[0, 0], [64, 64]>
    temporal.update %b = @rim(%a[0, 1]) in <[0, 0], [64, 1]>
  } : !field, !field
  func.return
}

// -----

// One axis is not streamed: the whole tile is one plane, nothing lags. Two loops of one function have
// kernels of different names.

!field = !stencil.field<[-1,65]xf64>

// CHECK-LABEL: tile.kernel @line_0_d2
// CHECK-SAME:    steps 2 bounds <[0], [64]>
// CHECK-NOT:     lag {{[^0]}}
// CHECK-LABEL: tile.kernel @line_0_step
// CHECK-LABEL: tile.kernel @line_1_step
// CHECK:       kernels [@line_0_d2, @line_0_step]
// CHECK:       kernels [@line_1_step]
func.func @line(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]>
  } : !field, !field
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[0], [64]>
  } : !field, !field
  func.return
}

// -----

// A tile of several warps, as the loop's schedule says: taps that cross them read an exchange of the
// whole plane, as wide as the farthest of them. Others, along the stream and the lanes, do not.

!field = !stencil.field<[-2,66]x[-2,66]x[-2,66]xf64>

// CHECK-LABEL: tile.kernel @space_step
// CHECK-SAME:    layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]>
// CHECK:         %[[u:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[e:.*]] = tile.exchange %[[u]] what plane delay 0 : !tile.queue<f64, lag 1, edges [2, 0]>
// CHECK-NEXT:    %[[v:.*]] = tile.apply @cell(%[[u]][-1, 0, 0], %[[e]][0, -2, 0], %[[u]][0, 0, 1], %[[e]][0, 1, 0], %[[u]][1, 0, 0]) : !tile.queue<f64, lag 1>
// CHECK-NEXT:    tile.store %[[v]]

// Several blocks may hold a tile: the taps that cross blocks cross warps, too. Tiles of two axes may stay in
// their threads' registers for all steps, and not be streamed.
// STILL-LABEL: tile.kernel @heat_d2
// STILL-SAME:    steps 2 bounds <[0, 0], [64, 64]> layout #tile.layout<device, [4 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
// STILL:         tile.exchange {{.*}} what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
// DEVICE-LABEL: tile.kernel @space_step
// DEVICE-SAME:   stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<device, [4 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
// DEVICE:        tile.exchange {{.*}} what plane delay 0 : !tile.queue<f64, lag 1, edges [2, 0]>

// OPTIONS: temporal.loop in @space: the layout has 1 in-plane axes and the domain 2; give device-tiling cells, lanes and warps for each
func.func @space(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0]
      schedule #tile.schedule<tile block, cells [4, 2], lanes [1, 32], warps [4, 1]> {
    temporal.update %b = @cell(%a[-1, 0, 0], %a[0, -2, 0], %a[0, 0, 1], %a[0, 1, 0], %a[1, 0, 0]) in <[0, 0, 0], [64, 64, 64]>
  } : !field, !field
  func.return
}

// -----

// Fields written and never read: only the last kernel, which stores the fields, computes their cells.
// One of two results may be unread. A stage without readers is erased.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @outputs_d2
// CHECK:         %[[u1:.*]], %{{.*}} = tile.apply @both(%{{.*}}[-1, 0], %{{.*}}[0, 1]) else
// CHECK-NOT:     @energy
// CHECK:         %[[u2:.*]], %{{.*}} = tile.apply @both(%[[u1]][-1, 0], %[[u1]][0, 1]) :
// CHECK-NOT:     @energy
// CHECK:         tile.store %[[u2]] to %dst
// CHECK-NOT:     tile.store
// CHECK-LABEL: tile.kernel @outputs_step
// CHECK:         %[[u:.*]], %[[flux:.*]] = tile.apply @both(
// CHECK:         %[[energy:.*]] = tile.apply @energy(%[[u]][0, 0]) :
// CHECK:         tile.store %[[u]] to %dst
// CHECK:         tile.store %[[flux]] to
// CHECK:         tile.store %[[energy]] to
func.func @outputs(%n: index, %A: !field, %B: !field, %E: !field, %F: !field) {
  temporal.loop %n (%a = %A, %b = %B, %f = %F, %e = %E) rotate [1, 0, 2, 3] depths [2, 1] {
    temporal.update %b, %f = @both(%a[-1, 0], %a[0, 1]) in <[0, 0], [64, 64]>
    temporal.update %e = @energy(%b[0, 0]) in <[0, 0], [64, 64]>
  } : !field, !field, !field, !field
  func.return
}

// -----

// A depth whose overlap is as wide as the tile is left out.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK:       temporal.loop in @deep: depth 16 is left out: the overlap leaves no cell of the tile
// CHECK-NOT:   tile.kernel @deep_d16
// CHECK:       tile.kernel @deep_d15
// CHECK:       kernels [@deep_d15, @deep_step]
func.func @deep(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [16, 15, 1] schedule #tile.schedule<cells [1]> {
    temporal.update %b = @cell(%a[0, -1], %a[0, 1]) in <[0, 0], [64, 64]>
  } : !field, !field
  func.return
}

// -----

// With single steps only, every launch reads and writes the buffers that the unfused program does: data
// are loaded with the halos that lie around them. (The halo's arguments are passed all the same.)

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @single_step
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
// CHECK-NEXT:    %[[u:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[v:.*]] = tile.apply @cell(%[[u]][-1, 0], %[[u]][1, 1]) : !tile.queue<f64, lag 1>
// CHECK-NEXT:    tile.store %[[v]] to %dst
// CHECK-NEXT:  }
// CHECK-LABEL: func.func @single
// CHECK:         kernels [@single_step]
func.func @single(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [1] {
    temporal.update %b = @cell(%a[-1, 0], %a[1, 1]) in <[0, 0], [64, 64]>
  } : !field, !field
  func.return
}

// -----

// A value made by a step is in no buffer yet: outside its box it has the halo of its target buffer.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @single_coupled_step
// CHECK:         %[[v0:.*]] = tile.load %src : !tile.queue
// CHECK-NEXT:    %[[s0:.*]] = tile.load %src_1 : !tile.queue
// CHECK-NEXT:    %[[h1:.*]] = tile.load halo %v1 : !tile.queue
// CHECK-NEXT:    %[[v1:.*]] = tile.apply @velocity(%[[v0]][0, 0], %[[s0]][-1, 0], %[[s0]][0, 0]) else %[[h1]] :
// CHECK-NEXT:    %[[s1:.*]] = tile.apply @stress(%[[s0]][0, 0], %[[v1]][1, 0]) :
func.func @single_coupled(%n: index, %V0: !field, %V1: !field, %S0: !field, %S1: !field) {
  temporal.loop %n (%v0 = %V0, %v1 = %V1, %s0 = %S0, %s1 = %S1) rotate [1, 0, 3, 2] depths [1] {
    temporal.update %v1 = @velocity(%v0[0, 0], %s0[-1, 0], %s0[0, 0]) in <[0, 0], [64, 64]>
    temporal.update %s1 = @stress(%s0[0, 0], %v1[1, 0]) in <[0, 0], [64, 64]>
  } : !field, !field, !field, !field
  func.return
}

// -----

// A buffer updated in place is written to a scratch buffer and back, and its halo stays where it was. A
// buffer that no step writes has no scratch buffer.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @single_in_place_step
// CHECK:         %[[u:.*]] = tile.load %src halo %a : !tile.queue
// CHECK-NEXT:    %[[k:.*]] = tile.load %src_1 : !tile.queue
// CHECK-NEXT:    tile.apply @cell(%[[u]][0, 0], %[[k]][0, 1])
func.func @single_in_place(%n: index, %A: !field, %K: !field) {
  temporal.loop %n (%a = %A, %k = %K) rotate [0, 1] depths [1] {
    temporal.update %a = @cell(%a[0, 0], %k[0, 1]) in <[0, 0], [64, 64]>
  } : !field, !field
  func.return
}

// -----

// A kernel of several steps stores the fields read by later steps. If later steps read none, there is
// no such kernel, and only the last step runs.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK:       temporal.loop in @overwritten: depth 4 is left out: no later step reads its cells
// CHECK-NEXT:  temporal.loop in @overwritten: depth 2 is left out: no later step reads its cells
// CHECK-NOT:   {{depth 1 is left out|tile.kernel @overwritten_d}}
// CHECK-LABEL: tile.kernel @overwritten_step(%dst: {{.*}}, %a: {{.*}}, %K: {{.*}})
// CHECK-NEXT:    %[[k:.*]] = tile.load %K : !tile.queue
// CHECK-NEXT:    %[[v:.*]] = tile.apply @cell(%[[k]][0, 1]) : !tile.queue
// CHECK-NEXT:    tile.store %[[v]] to %dst
// CHECK-NEXT:  }
// CHECK-NOT:   tile.kernel
// CHECK:       depths [4, 2, 1] kernels [@overwritten_step]
func.func @overwritten(%n: index, %A: !field, %K: !field) {
  temporal.loop %n (%a = %A) rotate [0] depths [4, 2, 1] {
    temporal.update %a = @cell(%K[0, 1]) in <[0, 0], [64, 64]>
  } : !field
  func.return
}

// -----

!field = !stencil.field<[-16,80]x[-16,80]xf64>

// CHECK:       temporal.loop in @far: taps reach further than the tile is wide; give device-tiling more cells, or reads=memory, for any reach
func.func @far(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] schedule #tile.schedule<cells [1]> {
    temporal.update %b = @cell(%a[0, -16], %a[0, 16]) in <[0, 0], [64, 64]>
  } : !field, !field
  func.return
}

// -----

// A field of the function's own that holds a value of the step is stored by no kernel: each step makes the value anew.

!field = !stencil.field<[-2,10]xf64>
!own = !stencil.field<[-1,9]xf64>

func.func private @difference(%l: f64, %r: f64) -> f64 {
  %d = arith.subf %r, %l : f64
  func.return %d : f64
}

// CHECK-LABEL: tile.kernel @chained_step
// CHECK-NOT:     #tile.role<target 2>
// CHECK:         tile.store %{{.*}} to %dst
// CHECK-NOT:     tile.store
func.func @chained(%n: index, %A: !field, %B: !field) {
  %own = temporal.scratch : !own
  %r:3 = temporal.loop %n (%a = %A, %b = %B, %o = %own) rotate [1, 0, 2] {
    temporal.update %o = @difference(%a[-1], %a[1]) in <[-1], [9]>
    temporal.update %b = @difference(%o[-1], %o[1]) in <[0], [8]>
  } : !field, !field, !own
  func.return
}

// -----

// A field read by the function after the loop is stored.

!field = !stencil.field<[-2,10]xf64>
!own = !stencil.field<[-1,9]xf64>

func.func private @difference(%l: f64, %r: f64) -> f64 {
  %d = arith.subf %r, %l : f64
  func.return %d : f64
}

// CHECK-LABEL: tile.kernel @read_step
// CHECK:         #tile.role<target 2>
func.func @read(%n: index, %A: !field, %B: !field) -> !own {
  %own = temporal.scratch : !own
  %r:3 = temporal.loop %n (%a = %A, %b = %B, %o = %own) rotate [1, 0, 2] {
    temporal.update %o = @difference(%a[-1], %a[1]) in <[-1], [9]>
    temporal.update %b = @difference(%o[-1], %o[1]) in <[0], [8]>
  } : !field, !field, !own
  func.return %r#2 : !own
}
