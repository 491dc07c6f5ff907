// RUN: xdsl-opt %s -p 'split-sums{form=lanes}' --split-input-file 2>&1 | filecheck %s

// Partial sums travel along the row: each lane adds the cells of its own column, without a shuffle, and passes the sum
// on. The last stage moves the sum to its cell, and only the last stage takes cells from outside the box.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-DAG:   func.func private @columns_lanes0(%{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-DAG:   func.func private @columns_lanes1(%{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-DAG:   func.func private @columns_lanes2(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-DAG:   func.func private @columns_lanes3(%[[total:.*]]: f64) -> f64
func.func private @columns(%0: f64, %1: f64, %2: f64, %3: f64, %4: f64) -> f64 {
  %weight = arith.constant 0.25 : f64
  %5 = arith.mulf %0, %weight : f64
  %6 = math.fma %1, %weight, %5 : f64
  %7 = math.fma %2, %weight, %6 : f64
  %8 = math.fma %3, %weight, %7 : f64
  %9 = math.fma %4, %weight, %8 : f64
  func.return %9 : f64
}

// CHECK-LABEL: tile.kernel @one_step
// CHECK:         %[[u:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[h:.*]] = tile.load halo %b : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[p:.*]] = tile.apply @columns_lanes0(%[[u]][-1, 0], %[[u]][1, 0]) : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[q:.*]] = tile.apply @columns_lanes1(%[[p]][0, -1], %[[u]][0, 0]) : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[t:.*]] = tile.apply @columns_lanes2(%[[q]][0, -1], %[[u]][-1, 0], %[[u]][1, 0]) : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[v:.*]] = tile.apply @columns_lanes3(%[[t]][0, 1]) else %[[h]] : !tile.queue<f64, lag 1>
// CHECK-NEXT:    tile.store %[[v]]
tile.kernel @one_step(%src: !field, %dst: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 1>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %h = tile.load halo %b : !tile.queue<f64, lag 1>
  %v = tile.apply @columns(%u[-1, -1], %u[1, -1], %u[0, 0], %u[-1, 1], %u[1, 1]) else %h : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// A sum ends at the cell's own column if that column is the last.

!field = !stencil.field<[-2,66]x[-2,66]xf64>

func.func private @upwind(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// CHECK-LABEL: tile.kernel @one_sided
// CHECK:         %[[p:.*]] = tile.apply @upwind_lanes0(%[[u:.*]][0, 0]) : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[v:.*]] = tile.apply @upwind_lanes1(%[[p]][0, -2], %[[u]][0, 0]) : !tile.queue<f64, lag 0>
// CHECK-NEXT:    tile.store %[[v]]
tile.kernel @one_sided(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @upwind(%u[0, -2], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// Terms row by row, with equal columns in every row: the sum stays whole.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @rows(%0: f64, %1: f64, %2: f64, %3: f64) -> f64 {
  %4 = arith.addf %0, %1 : f64
  %5 = arith.addf %4, %2 : f64
  %6 = arith.addf %5, %3 : f64
  func.return %6 : f64
}

// CHECK:       tile.apply in @whole: its sum does not take the columns one after the other; it stays whole
// CHECK-NOT:   _lanes
// CHECK-LABEL: tile.kernel @whole
// CHECK:         tile.apply @rows(%{{.*}}[-1, -1], %{{.*}}[-1, 0], %{{.*}}[0, -1], %{{.*}}[0, 0])
tile.kernel @whole(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @rows(%u[-1, -1], %u[-1, 0], %u[0, -1], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// No sum travels from one warp to the next: where several hold a row, sums stay whole.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @line(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// CHECK:       tile.kernel in @two_warps: several warps hold a row, and sums travel within a warp only; its sums stay whole; give device-tiling one warp along the row
// CHECK-NOT:   _lanes
// CHECK-LABEL: tile.kernel @two_warps
// CHECK:         tile.apply @line(
tile.kernel @two_warps(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 : !tile.queue<f64, lag 0, edges [1]>
  %v = tile.apply @line(%e[0, -1], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// No lanes lie along a streamed axis.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @row(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// CHECK:       tile.kernel in @along_rows: its rows lie along the stream, and no lanes along them; its sums stay whole; stream another axis
// CHECK-LABEL: tile.kernel @along_rows
// CHECK:         tile.apply @row(
tile.kernel @along_rows(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 1 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @row(%u[0, -1], %u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// Stages with a common cell function and other columns have separate parts.

!field = !stencil.field<[-2,66]x[-2,66]xf64>

func.func private @f(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// CHECK-LABEL: tile.kernel @shared
// CHECK:         %[[p:.*]] = tile.apply @f_lanes0(%[[u:.*]][0, 0])
// CHECK-NEXT:    %[[v:.*]] = tile.apply @f_lanes1(%[[p]][0, -1], %[[u]][0, 0], %[[u]][-1, 0])
// CHECK-NEXT:    %[[q:.*]] = tile.apply @f_lanes0_1(%[[v]][-1, 0], %[[v]][0, 0])
// CHECK-NEXT:    tile.apply @f_lanes1_1(%[[q]][0, -1], %[[v]][0, 0])
tile.kernel @shared(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @f(%u[0, -1], %u[0, 0], %u[-1, 0]) : !tile.queue<f64, lag 0>
  %w = tile.apply @f(%v[-1, -1], %v[0, -1], %v[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// A coordinate belongs to the computing lane, not to the cell of a travelling sum.

!field = !stencil.field<[-1,65]x[-1,65]xf64>

func.func private @at(%0: f64, %1: f64, %x: index) -> f64 {
  %n = arith.index_cast %x : index to i64
  %w = arith.sitofp %n : i64 to f64
  %2 = arith.mulf %0, %w : f64
  %3 = arith.addf %2, %1 : f64
  func.return %3 : f64
}

// CHECK:       tile.apply in @placed: its cell takes coordinates, which do not travel with a sum; it stays whole; use form=rows
// CHECK-LABEL: tile.kernel @placed
// CHECK:         tile.apply @at(
tile.kernel @placed(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @at(%u[0, -1], %u[0, 0]) indices [1] : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}
