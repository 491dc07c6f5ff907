// RUN: xdsl-opt %s -p 'store-box{lower=0,8 upper=8,16}' --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'store-box{lower=0 upper=8}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=AXES
// RUN: xdsl-opt %s -p 'store-box{lower=0,8 upper=8,16}' 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// A store gets the box. Along the stream the bounds stay, and chunks are of the box's planes; along the other axis the
// bounds shrink to the box and the cells that two levels read around the box.

// AXES: store-box: lower and upper have a number for each of 2 axes, got [0] and [8]

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @plane
// CHECK-SAME:    bounds <[0, 6], [64, 18]>
// CHECK:         tile.store %{{.*}} to %{{.*}} in <[0, 8], [8, 16]> : !tile.queue<f64, lag 2>
tile.kernel @plane(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, -1], %u0[0, 1], %u0[1, 0]) else %h1 : !tile.queue<f64, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 2>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[0, -1], %u1[0, 1], %u1[1, 0]) else %h2 : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// The box of an update shrinks to the new bounds, and the box of a store to the cells of both.
// REMARK: an update has no cell near the box: all cells are stored
// CHECK-LABEL: tile.kernel @boxed
// CHECK-SAME:    bounds <[0, 7], [64, 17]>
// CHECK:         else %{{.*}} in <[2, 7], [60, 12]>
// CHECK:         tile.store %{{.*}} to %{{.*}} in <[0, 8], [4, 16]> :
tile.kernel @boxed(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, -1], %u0[0, 1], %u0[1, 0]) else %u0 in <[2, 2], [60, 12]> : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst in <[0, 0], [4, 64]> : !tile.queue<f64, lag 1>, !field
}

// CHECK-LABEL: tile.kernel @far
// CHECK-SAME:    bounds <[0, 0], [64, 64]>
tile.kernel @far(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, -1], %u0[0, 1], %u0[1, 0]) else %u0 in <[2, 40], [60, 60]> : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}
