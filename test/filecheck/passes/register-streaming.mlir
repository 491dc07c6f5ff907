// RUN: xdsl-opt %s -p register-streaming | filecheck %s
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared},register-streaming' | filecheck %s
// RUN: xdsl-opt %s -p 'register-streaming{delay=1 period=3}' | filecheck %s --check-prefix=LAZY
// RUN: xdsl-opt %s -p 'register-streaming{what=plane}' | filecheck %s --check-prefix=PLANE

// Own cells live in registers, neighbours read edges by mail, and the wait for the mail comes a step
// later wherever that makes no queue later: then one synchronisation a step serves all levels.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

// The neighbours' plane is older than the newest own one by a step anyway. It does not matter whether
// the queues came in shared memory.
// CHECK-LABEL: tile.kernel @star
// CHECK-NOT:     #tile.shared
// CHECK:         %[[u0:.*]] = tile.load %src {{.*}}home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[e0:.*]] = tile.exchange %[[u0]] what edges delay 1 home #tile.mail<slots 2, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 0]>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0]) home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[e1:.*]] = tile.exchange %[[u1]] what edges delay 1 {{.*}} : !tile.queue<f64, lag 2, edges [1, 0]>
// CHECK-NEXT:    tile.apply @cell(%[[u1]][-1, 0, 0], %[[e1]][0, -1, 0], %[[u1]][1, 0, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 2>

// LAZY-LABEL:  tile.kernel @star
// LAZY:          tile.load %src {{.*}} home #tile.registers<depth 2, period 3>

// PLANE-LABEL: tile.kernel @star
// PLANE-NOT:     what edges
// PLANE-COUNT-2: tile.exchange {{.*}} what plane delay 1
tile.kernel @star(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[1, 0, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// A neighbour's cell of the newest plane: waiting would cost a plane of lag, so it is read in the step
// in which it is published. Who asks for a delay pays for it.
// CHECK-LABEL: tile.kernel @box
// CHECK:         tile.exchange {{.*}} what edges delay 0 {{.*}} : !tile.queue<f64, lag 0, edges [1, 0]>
// CHECK-NEXT:    tile.apply {{.*}} : !tile.queue<f64, lag 1>
// LAZY-LABEL:  tile.kernel @box
// LAZY:          tile.exchange {{.*}} what edges delay 1 {{.*}} : !tile.queue<f64, lag 1, edges [1, 0]>
// LAZY-NEXT:     tile.apply {{.*}} : !tile.queue<f64, lag 2>
tile.kernel @box(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %u0[1, 0, 0], %e0[1, -1, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// Where every tap crosses warps, the queue is as late as its exchange allows.
// CHECK-LABEL: tile.kernel @across
// CHECK:         tile.load %src {{.*}} : !tile.queue<f64, lag 0>
// CHECK-NEXT:    tile.exchange {{.*}} what edges delay 0 {{.*}} : !tile.queue<f64, lag 0, edges [1, 0]>
// LAZY-LABEL:  tile.kernel @across
// LAZY:          tile.load %src {{.*}} : !tile.queue<f64, lag 0>
// LAZY-NEXT:     tile.exchange {{.*}} what edges delay 1 {{.*}} : !tile.queue<f64, lag 1, edges [1, 0]>
tile.kernel @across(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %e0[0, 1, 0]) : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !field
}

// Edges are whole rows of one axis, of one warp: where warps lie along two axes, or a neighbour looks
// beyond the next warp, the whole plane is published.
// CHECK-LABEL: tile.kernel @both_axes
// CHECK:         tile.exchange {{.*}} what plane delay 1
tile.kernel @both_axes(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 2 warps, 2 cells x 32 lanes x 2 warps]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 1]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %e0[0, 0, 1], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// CHECK-LABEL: tile.kernel @far
// CHECK:         tile.exchange {{.*}} what plane delay 1 {{.*}} edges [5, 0]
tile.kernel @far(%src: !stencil.field<[-5,65]x[-5,65]x[0,64]xf64>, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [5, 0]>
  %u1 = tile.apply @cell(%e0[0, -5, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// Shared storage that the schedule asks for stays.
// CHECK-LABEL: tile.kernel @asked
// CHECK:         tile.load %src {{.*}} home #tile.shared<slots 2, fixed, base 0, reader tile>
// CHECK-NOT:     tile.exchange
// CHECK:       func.func @program
tile.kernel @asked(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src ahead 0 home #tile.shared<slots 2, fixed, base 0, reader tile> : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[0, -1, 0], %u0[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !field
}

func.func @program(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] schedule {storage = "shared"} kernels [@asked] {
    temporal.update %b = @cell(%a[0, -1, 0], %a[0, 1, 0]) in <[0, 0, 0], [64, 64, 64]>
  } : !field, !field
  func.return
}
