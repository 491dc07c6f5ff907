// RUN: xdsl-opt %s -p 'split-sums{form=halves}' --split-input-file 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'split-sums{form=halves carried=2}' --split-input-file 2>&1 | filecheck %s --check-prefix=CARRIED

// The planes before the cell's own enter its sum together, as a stage of their own; the others are the
// second half. A sum that looks to one side only stays whole.

!field = !stencil.field<[-2,66]x[-2,66]xf64>

// CHECK-DAG:   func.func private @star_halves0(%{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-DAG:   func.func private @star_halves1(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64
func.func private @star(%0: f64, %1: f64, %2: f64, %3: f64, %4: f64) -> f64 {
  %weight = arith.constant 0.25 : f64
  %5 = arith.mulf %0, %weight : f64
  %6 = math.fma %1, %weight, %5 : f64
  %7 = math.fma %2, %weight, %6 : f64
  %8 = math.fma %3, %weight, %7 : f64
  %9 = math.fma %4, %weight, %8 : f64
  func.return %9 : f64
}

// The first half is made a step before the cell's own plane arrives, and waits until the last one has.
// CHECK-LABEL: tile.kernel @one_step
// CHECK:         %[[u:.*]] = tile.load %src : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[f:.*]] = tile.apply @star_halves0(%[[u]][-2, 0], %[[u]][-1, 0]) : !tile.queue<f64, lag -1>
// CHECK-NEXT:    %[[v:.*]] = tile.apply @star_halves1(%[[f]][0, 0], %[[u]][0, 0], %[[u]][1, 0], %[[u]][2, 0]) : !tile.queue<f64, lag 2>
// CHECK-NEXT:    tile.store %[[v]]
tile.kernel @one_step(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @star(%u[-2, 0], %u[-1, 0], %u[0, 0], %u[1, 0], %u[2, 0]) : !tile.queue<f64, lag 2>
  tile.store %v to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

!field = !stencil.field<[-2,66]x[-2,66]xf64>

// CHECK-NOT:   _halves
func.func private @ahead(%0: f64, %1: f64) -> f64 {
  %2 = arith.addf %0, %1 : f64
  func.return %2 : f64
}

// CHECK-LABEL: tile.kernel @one_sided
// CHECK:         tile.apply @ahead(
tile.kernel @one_sided(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @ahead(%u[0, 0], %u[1, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// Of two sums, both with earlier planes, a result takes the quotient: two values pass from half to half, if asked for.
// CHECK-LABEL:   func.func private @quotient
// CARRIED-DAG:   func.func private @quotient_halves0(%{{.*}}: f64, %{{.*}}: f64) -> (f64, f64)
// CARRIED-DAG:   func.func private @quotient_halves1(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64
func.func private @quotient(%0: f64, %1: f64, %2: f64, %3: f64) -> f64 {
  %4 = arith.addf %0, %1 : f64
  %5 = arith.addf %4, %2 : f64
  %6 = arith.mulf %0, %1 : f64
  %7 = arith.addf %6, %3 : f64
  %8 = arith.divf %5, %7 : f64
  func.return %8 : f64
}

// CHECK-LABEL:   tile.kernel @two_sums
// CHECK:         tile.apply @quotient(
// CARRIED-LABEL: tile.kernel @two_sums
// CARRIED:         %[[f:.*]], %[[g:.*]] = tile.apply @quotient_halves0(%{{.*}}[-1, 0], %{{.*}}[-1, 1]) : !tile.queue<f64, lag -1>, !tile.queue<f64, lag -1>
// CARRIED-NEXT:    tile.apply @quotient_halves1(%[[f]][0, 0], %[[g]][0, 0], %{{.*}}[0, 0], %{{.*}}[1, 0])
tile.kernel @two_sums(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @quotient(%u[-1, 0], %u[-1, 1], %u[0, 0], %u[1, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}
