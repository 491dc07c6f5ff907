// RUN: xdsl-opt %s -p 'split-sums{form=rows}' --split-input-file 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p split-sums --split-input-file | filecheck %s --check-prefix=NONE

// A sum over several planes becomes a chain of stages, one plane each, in the order of the body: every
// plane is tapped in the step in which it arrives. By default sums stay whole.

// NONE-NOT: _rows

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-DAG:   func.func private @box(
// CHECK-DAG:   func.func private @box_rows0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-DAG:   func.func private @box_rows1(%{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-DAG:   func.func private @box_rows2(%{{.*}}: f64, %{{.*}}: f64) -> f64
func.func private @box(%0: f64, %1: f64, %2: f64, %3: f64, %4: f64) -> f64 {
  %weight = arith.constant 0.25 : f64
  %5 = arith.mulf %0, %weight : f64
  %6 = math.fma %1, %weight, %5 : f64
  %7 = math.fma %2, %weight, %6 : f64
  %8 = math.fma %3, %weight, %7 : f64
  %9 = math.fma %4, %weight, %8 : f64
  func.return %9 : f64
}

// The partial sum of the oldest plane is made a step before the plane in the middle arrives. Only the
// last stage takes cells from outside the box.
// CHECK-LABEL: tile.kernel @two_steps
// CHECK:         %[[u0:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[h:.*]] = tile.load halo %b : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[p:.*]] = tile.apply @box_rows0(%[[u0]][-1, -1], %[[u0]][-1, 0], %[[u0]][-1, 1]) : !tile.queue<f64, lag -1>
// CHECK-NEXT:    %[[s:.*]] = tile.apply @box_rows1(%[[p]][0, 0], %[[u0]][0, 0]) : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @box_rows2(%[[s]][0, 0], %[[u0]][1, 0]) else %[[h]] : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[q:.*]] = tile.apply @box_rows0(%[[u1]][-1, -1], %[[u1]][-1, 0], %[[u1]][-1, 1]) : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[t:.*]] = tile.apply @box_rows1(%[[q]][0, 0], %[[u1]][0, 0]) : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[u2:.*]] = tile.apply @box_rows2(%[[t]][0, 0], %[[u1]][1, 0]) : !tile.queue<f64, lag 2>
// CHECK-NEXT:    tile.store %[[u2]]
tile.kernel @two_steps(%src: !field, %dst: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 1>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %h = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @box(%u0[-1, -1], %u0[-1, 0], %u0[-1, 1], %u0[0, 0], %u0[1, 0]) else %h : !tile.queue<f64, lag 1>
  %u2 = tile.apply @box(%u1[-1, -1], %u1[-1, 0], %u1[-1, 1], %u1[0, 0], %u1[1, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

// A partial sum is kept in the type in which the body computes it.

!field = !stencil.field<[-1,65]x[-1,65]xf32>

func.func private @wide(%0: f32, %1: f32) -> f32 {
  %2 = arith.extf %0 : f32 to f64
  %3 = arith.extf %1 : f32 to f64
  %4 = arith.addf %2, %3 : f64
  %5 = arith.truncf %4 : f64 to f32
  func.return %5 : f32
}

// CHECK-LABEL: tile.kernel @wider
// CHECK:         %[[p:.*]] = tile.apply @wide_rows0(%[[u:.*]][-1, 0]) : !tile.queue<f64, lag -1>
// CHECK-NEXT:    tile.apply @wide_rows1(%[[p]][0, 0], %[[u]][0, 0]) : !tile.queue<f32, lag 0>
tile.kernel @wider(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f32, lag 0>
  %v = tile.apply @wide(%u[-1, 0], %u[0, 0]) : !tile.queue<f32, lag 0>
  tile.store %v to %dst : !tile.queue<f32, lag 0>, !field
}

// -----

// Two partial sums pass for one result where more cells beside the own column have entered. A cell of
// the own column is loaded again for the last part, which taps the coefficient.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @mixed(%0: f64, %1: f64, %2: f64, %3: f64, %4: f64, %5: f64, %k: f64) -> f64 {
  %6 = arith.addf %0, %1 : f64
  %7 = arith.subf %0, %1 : f64
  %8 = arith.addf %6, %3 : f64
  %9 = arith.addf %7, %4 : f64
  %10 = arith.mulf %8, %9 : f64
  %11 = arith.mulf %k, %2 : f64
  %12 = math.fma %10, %5, %11 : f64
  func.return %12 : f64
}

// CHECK-LABEL: tile.kernel @several
// CHECK:         %[[u:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK:         %[[again:.*]] = tile.load %src : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[p:.*]], %[[q:.*]] = tile.apply @mixed_rows0(%[[u]][-1, -1], %[[u]][-1, 1])
// CHECK-NEXT:    %[[r:.*]] = tile.apply @mixed_rows1(%[[p]][0, 0], %[[q]][0, 0], %[[u]][0, -1], %[[u]][0, 1])
// CHECK-NEXT:    tile.apply @mixed_rows2(%[[r]][0, 0], %[[again]][0, 0], %[[u]][1, 0], %{{.*}}[0, 0]) : !tile.queue<f64, lag 1>
tile.kernel @several(%src: !field, %dst: !field, %coefficient: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<capture 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %k = tile.load %coefficient : !tile.queue<f64, lag 0>
  %v = tile.apply @mixed(%u[-1, -1], %u[-1, 1], %u[0, 0], %u[0, -1], %u[0, 1], %u[1, 0], %k[0, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// A sum with planes in another order than their arrival stays whole, and so does a sum that would pass two
// values from plane to plane for a result.

!field = !stencil.field<[-2,66]x[-2,66]xf64>

func.func private @backwards(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %1, %2 : f64
  %4 = arith.addf %3, %0 : f64
  func.return %4 : f64
}

func.func private @twofold(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.mulf %0, %1 : f64
  %5 = math.fma %2, %3, %4 : f64
  func.return %5 : f64
}

// CHECK:       tile.apply in @whole: its sum does not take the planes one after the other; it stays whole
// CHECK:       tile.apply in @whole: its sum does not take the planes one after the other; it stays whole
// CHECK-NOT:   _rows
// CHECK-LABEL: tile.kernel @whole
// CHECK:         tile.apply @backwards(%{{.*}}[-1, 0]
// CHECK-NEXT:    tile.apply @twofold(%{{.*}}[-1, 0]
// CHECK-NEXT:    tile.store
tile.kernel @whole(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %u1 = tile.apply @backwards(%u0[-1, 0], %u0[0, 0], %u0[1, 0]) : !tile.queue<f64, lag 1>
  %u2 = tile.apply @twofold(%u1[-1, 0], %u1[-1, 1], %u1[0, 0]) : !tile.queue<f64, lag 1>
  tile.store %u2 to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// The schedule of the kernel's loop can ask for it, too.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @sum(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// NONE:       func.func private @sum(
// NONE-LABEL: tile.kernel @asked
// NONE:         tile.apply @sum_rows0(
// NONE:         tile.apply @sum_rows1(
tile.kernel @asked(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    schedule #tile.schedule<form rows> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @sum(%u[-1, 0], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

func.func @program(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] kernels [@asked] {
    temporal.update %b = @sum(%a[-1, 0], %a[0, 0]) in <[0, 0], [64, 64]>
  } : !field, !field
  func.return
}

// -----

// A value that depends on no tap is copied into every part with a reader: here a constant, cast and
// negated.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: func.func private @weighted_rows1(
// CHECK:         %[[narrow:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:    %[[weight:.*]] = arith.extf %[[narrow]] : f32 to f64
// CHECK-NEXT:    arith.negf %[[weight]] : f64
// CHECK-LABEL: func.func private @weighted_rows0(
// CHECK:         arith.extf
// CHECK-NOT:     arith.negf
// CHECK-LABEL: tile.kernel @fixed
func.func private @weighted(%0: f64, %1: f64) -> f64 {
  %narrow = arith.constant 0.5 : f32
  %weight = arith.extf %narrow : f32 to f64
  %opposite = arith.negf %weight : f64
  %2 = arith.mulf %weight, %0 : f64
  %3 = math.fma %opposite, %1, %2 : f64
  func.return %3 : f64
}

tile.kernel @fixed(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @weighted(%u[-1, 0], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// Each part takes the scalars and coordinates that it needs; of two results, two partial sums pass from part to part.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: func.func private @pair_rows1(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> (f64, f64)
// CHECK-LABEL: func.func private @pair_rows0(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: index) -> (f64, f64)
func.func private @pair(%0: f64, %1: f64, %k: f64, %j: f64, %at: index) -> (f64, f64) {
  %weight = arith.index_cast %at : index to i64
  %near = arith.sitofp %weight : i64 to f64
  %2 = arith.mulf %near, %0 : f64
  %3 = arith.mulf %k, %0 : f64
  %4 = math.fma %1, %j, %2 : f64
  %5 = arith.subf %3, %1 : f64
  func.return %4, %5 : f64, f64
}

// CHECK-LABEL: tile.kernel @of_two
// CHECK:         %[[p:.*]], %[[q:.*]] = tile.apply @pair_rows0(%{{.*}}[-1, 0]) scalars(%k) indices [1] : !tile.queue<f64, lag -1>, !tile.queue<f64, lag -1>
// CHECK-NEXT:    tile.apply @pair_rows1(%[[p]][0, 0], %[[q]][0, 0], %{{.*}}[0, 0]) scalars(%j) : !tile.queue<f64, lag 0>, !tile.queue<f64, lag 0>
tile.kernel @of_two(%src: !field, %dst: !field, %other: !field, %k: f64, %j: f64)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<target 1>, #tile.role<scalar 0>, #tile.role<scalar 1>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v, %w = tile.apply @pair(%u[-1, 0], %u[0, 0]) scalars(%k, %j) indices [1] : !tile.queue<f64, lag 0>, !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
  tile.store %w to %other : !tile.queue<f64, lag 0>, !field
}

// -----

// Behind a mirror a cell taps to the other side: a sum stays whole. Around a ring it does not matter.

!field = !stencil.field<[0,64]x[0,64]xf64>

func.func private @column(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK:       tile.kernel in @mirrored{{.*}}: cells outside the bounds are mirrored or a value, and parts of a sum are not; its sums stay whole
// CHECK-LABEL: tile.kernel @mirrored
// CHECK:         tile.apply @column(%
tile.kernel @mirrored(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0], [64, 64]> beyond #temporal.boundary<mirror> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @column(%u[-1, 0], %u[1, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// CHECK-LABEL: tile.kernel @ring
// CHECK:         tile.apply @column_rows0(
tile.kernel @ring(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0], [64, 64]> beyond #temporal.boundary<periodic> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @column(%u[-1, 0], %u[1, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}
