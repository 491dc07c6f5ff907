// RUN: xdsl-opt %s -p 'store-box{lower=0,64 upper=8,80}' --verify-diagnostics | filecheck %s

// The box lies beside the stored cells.

// CHECK: the box [0, 8) x [64, 80) has no cell of [0, 64) x [0, 64); give another box

!field = !stencil.field<[-1,65]x[-1,65]xf64>

tile.kernel @plane(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, -1], %u0[0, 1], %u0[1, 0]) else %h1 : !tile.queue<f64, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 2>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[0, -1], %u1[0, 1], %u1[1, 0]) else %h2 : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}
