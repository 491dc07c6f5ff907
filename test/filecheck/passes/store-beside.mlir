// RUN: xdsl-opt %s -p 'store-beside{lower=4,0,52,0 upper=12,64,60,64}' --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'store-beside{lower=4 upper=12}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=BOXES
// RUN: xdsl-opt %s -p 'store-beside{lower=0,0 upper=4,64}' 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// Each store gets a store for each box, in order, to a further argument of the store's type.

// BOXES: store-beside: lower and upper have 2 numbers for each box, got [4] and [12]

!field = !stencil.field<[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @plane
// CHECK-SAME:    (%src: !stencil.field<[-1,65]x[-1,65]xf64>, %dst: !stencil.field<[-1,65]x[-1,65]xf64>, %beside: !stencil.field<[-1,65]x[-1,65]xf64>, %beside_1: !stencil.field<[-1,65]x[-1,65]xf64>)
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<target 0>, #tile.role<target 0>]
// CHECK:         tile.store %[[u:[0-9a-z]+]] to %dst in <[4, 0], [60, 64]>
// CHECK-NEXT:    tile.store %[[u]] to %beside in <[4, 0], [12, 64]>
// CHECK-NEXT:    tile.store %[[u]] to %beside_1 in <[52, 0], [60, 64]>
tile.kernel @plane(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, -1], %u0[0, 1], %u0[1, 0]) else %u0 : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst in <[4, 0], [60, 64]> : !tile.queue<f64, lag 1>, !field
}

// A store without a cell of a box: nothing is stored beside.
// REMARK: a store has no cell of a box: no cell is stored beside
