// RUN: xdsl-opt %s -p register-streaming | filecheck %s --check-prefixes=CHECK,KEPT
// RUN: xdsl-opt %s -p 'register-streaming{what=copies}' | filecheck %s --check-prefixes=CHECK,MOVED
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared},register-streaming' | filecheck %s --check-prefixes=CHECK,KEPT
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=2},register-streaming' | filecheck %s --check-prefix=AHEAD
// RUN: xdsl-opt %s -p 'register-streaming{what=edges}' | filecheck %s --check-prefix=EDGES
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=0},register-streaming' | filecheck %s --check-prefix=EDGES
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=0},register-streaming{what=copies}' | filecheck %s --check-prefix=EDGES
// RUN: xdsl-opt %s -p 'register-streaming{what=plane}' | filecheck %s --check-prefix=PLANE
// RUN: xdsl-opt %s -p 'register-streaming{delay=1 period=3}' | filecheck %s --check-prefix=LAZY
// RUN: xdsl-opt %s -p 'register-streaming{sync=mbarrier}' | filecheck %s --check-prefix=HALVES
// RUN: xdsl-opt %s -p 'register-streaming{delay=2}' | filecheck %s --check-prefix=LATER
// RUN: xdsl-opt %s -p 'register-streaming{sync=grid}' | filecheck %s --check-prefix=GRID

// Own cells live in registers. What is fetched ahead is read by neighbours where its copies land, the
// rest they read as edges, exchanged; the wait for it comes a step later wherever that makes no queue
// later: then one synchronisation a step serves all levels.

!field = !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>

// The plane read from neighbours is a step older than the newest own plane. Queues in shared memory are
// treated alike. Copies have slots for planes on their way, for the arriving plane, and for the plane
// being read; a result of the kernel has no copies.
// CHECK-LABEL: tile.kernel @star
// CHECK-NOT:     #tile.shared
// CHECK:         %[[u0:.*]] = tile.load %src ahead 3 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[e0:.*]] = tile.exchange %[[u0]] what copies delay 1 home #tile.exchange_buffer<slots 5, shifting, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 0]>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0]) home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[e1:.*]] = tile.exchange %[[u1]] what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 2, edges [1, 0]>
// CHECK-NEXT:    tile.apply @cell(%[[u1]][-1, 0, 0], %[[e1]][0, -1, 0], %[[u1]][1, 0, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 2>

// A power of two of slots is computed.
// AHEAD-LABEL: tile.kernel @star
// AHEAD:         %[[u0:.*]] = tile.load %src ahead 2 home #tile.registers
// AHEAD-NEXT:    tile.exchange %[[u0]] what copies delay 1 home #tile.exchange_buffer<slots 4, computed, every 1, space shared, sync barrier>

// Edges instead where that is asked for, or nothing is fetched ahead.
// EDGES-LABEL: tile.kernel @star
// EDGES:         %[[u0:.*]] = tile.load %src ahead {{[03]}} home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
// EDGES-NEXT:    %[[e0:.*]] = tile.exchange %[[u0]] what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 0]>
// EDGES-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0])
// EDGES-NEXT:    tile.exchange %[[u1]] what edges delay 1 home #tile.exchange_buffer<slots 2, fixed

// PLANE-LABEL: tile.kernel @star
// PLANE-NOT:     what {{edges|copies}}
// PLANE:         tile.exchange {{.*}} what plane delay 1 home #tile.exchange_buffer<slots 2, fixed
// PLANE-NOT:     what {{edges|copies}}
// PLANE:         tile.exchange {{.*}} what plane delay 1 home #tile.exchange_buffer<slots 2, fixed

// Warps may arrive and wait later where all that they share is read a step later.
// HALVES-LABEL: tile.kernel @star
// HALVES:         tile.exchange {{.*}} what copies delay 1 home #tile.exchange_buffer<slots 5, {{.*}}, sync mbarrier>
// HALVES:         tile.exchange {{.*}} what edges delay 1 home #tile.exchange_buffer<slots 2, {{.*}}, sync mbarrier>
// LAZY-LABEL:  tile.kernel @star
// LAZY:          tile.load %src {{.*}} home #tile.registers<depth 2, period 3>
tile.kernel @star(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[1, 0, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// Where nothing but the copies makes tiles overlap, in a kernel of a single step, they serve the taps
// along the lanes, too, and are as wide as those look. Own cells stay in registers.
// CHECK-LABEL: tile.kernel @lanes_of_one_step
// CHECK:         %[[u0:.*]] = tile.load %src
// CHECK-NEXT:    %[[e0:.*]] = tile.exchange %[[u0]] what copies delay 1 {{.*}} : !tile.queue<f64, lag 1, edges [1, 1]>
// CHECK-NEXT:    tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[e0]][0, 0, 1], %[[u0]][0, 0, 0], %[[u0]][1, 0, 0])
// Inner rows read along the row when the warp has arrived: the copies have a slot more.
// HALVES-LABEL: tile.kernel @lanes_of_one_step
// HALVES:         tile.exchange {{.*}} what copies delay 1 home #tile.exchange_buffer<slots 6, shifting, {{.*}}, sync mbarrier>
// Edges and whole planes serve the taps that cross warps only: shuffles are cheaper.
// EDGES-LABEL: tile.kernel @lanes_of_one_step
// EDGES:         %[[e0:.*]] = tile.exchange {{.*}} what edges delay 1 {{.*}} edges [1, 0]>
// EDGES-NEXT:    tile.apply @cell(%[[u0:.*]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][0, 0, 1], %[[u0]][0, 0, 0], %[[u0]][1, 0, 0])
// PLANE-LABEL: tile.kernel @lanes_of_one_step
// PLANE:         %[[e0:.*]] = tile.exchange {{.*}} what plane delay 1 {{.*}} edges [1, 0]>
// PLANE-NEXT:    tile.apply @cell(%[[u0:.*]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][0, 0, 1], %[[u0]][0, 0, 0], %[[u0]][1, 0, 0])
tile.kernel @lanes_of_one_step(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[0, 0, 1], %u0[0, 0, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// Of several steps the later ones overlap anyway: a tap along the lanes stays a shuffle...
// CHECK-LABEL: tile.kernel @lanes_of_two_steps
// CHECK:         %[[u0:.*]] = tile.load %src
// CHECK-NEXT:    %[[e0:.*]] = tile.exchange %[[u0]] what copies delay 1 {{.*}} : !tile.queue<f64, lag 1, edges [1, 0]>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][0, 0, 1], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0])
// CHECK-NEXT:    tile.apply @cell(%[[u1]][0, 0, 1])
tile.kernel @lanes_of_two_steps(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[0, 0, 1], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[0, 0, 1]) : !tile.queue<f64, lag 1>
  tile.store %u2 to %dst : !tile.queue<f64, lag 1>, !field
}

// ... unless it looks as far as a whole vector, of two cells of eight bytes or of four of four.
// CHECK-LABEL: tile.kernel @vectors_of_doubles
// CHECK:         %[[e0:.*]] = tile.exchange %[[u0:.*]] what copies delay 1 {{.*}} : !tile.queue<f64, lag 1, edges [1, 2]>
// CHECK-NEXT:    tile.apply @cell(%[[e0]][0, 0, -2], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0])
tile.kernel @vectors_of_doubles(%src: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[0, 0, -2], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[0, 0, 1]) : !tile.queue<f64, lag 1>
  tile.store %u2 to %dst : !tile.queue<f64, lag 1>, !field
}

// CHECK-LABEL: tile.kernel @less_than_a_vector
// CHECK:         %[[e0:.*]] = tile.exchange %[[u0:.*]] what copies delay 1 {{.*}} : !tile.queue<f32, lag 1, edges [1, 0]>
// CHECK-NEXT:    tile.apply @cell(%[[u0]][0, 0, -2], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0])
tile.kernel @less_than_a_vector(%src: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf32>, %dst: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f32, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f32, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[0, 0, -2], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f32, lag 1>
  %u2 = tile.apply @cell(%u1[0, 0, 1]) : !tile.queue<f32, lag 1>
  tile.store %u2 to %dst : !tile.queue<f32, lag 1>, !stencil.field<[-8,72]x[-8,72]x[-8,72]xf32>
}

// An older plane read by neighbours stays in its slot for a step more, beside a newer plane or alone.
// CHECK-LABEL: tile.kernel @older
// CHECK:         tile.exchange {{.*}} what copies delay 1 home #tile.exchange_buffer<slots 6, shifting, {{.*}} : !tile.queue<f64, lag 1, edges [1, 0]>
tile.kernel @older(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[1, 0, 0], %e0[-1, -1, 0], %e0[0, 1, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// CHECK-LABEL: tile.kernel @held
// CHECK:         tile.exchange {{.*}} what copies delay 1 home #tile.exchange_buffer<slots 6, shifting, {{.*}} : !tile.queue<f64, lag 2, edges [1, 0]>
tile.kernel @held(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[1, 0, 0], %e0[-1, -1, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// A neighbour's cell of the newest plane is read in the step of its publication, as waiting would cost a
// plane of lag, and copies have a slot more. A delay by option costs that plane of lag.
// CHECK-LABEL: tile.kernel @box
// CHECK:         tile.exchange {{.*}} what copies delay 0 home #tile.exchange_buffer<slots 5, shifting, {{.*}} : !tile.queue<f64, lag 0, edges [1, 0]>
// CHECK-NEXT:    tile.apply {{.*}} : !tile.queue<f64, lag 1>
// EDGES-LABEL: tile.kernel @box
// EDGES:         tile.exchange {{.*}} what edges delay 0 {{.*}} : !tile.queue<f64, lag 0, edges [1, 0]>
// EDGES-NEXT:    tile.apply {{.*}} : !tile.queue<f64, lag 1>
// Warps that arrive and wait later pay for it, too: the newest plane is kept, the result a step later.
// HALVES-LABEL: tile.kernel @box
// HALVES:         tile.load {{.*}} home #tile.registers<depth 3, period 3>
// HALVES-NEXT:    tile.exchange {{.*}} what copies delay 1 home #tile.exchange_buffer<slots 5, {{.*}}, sync mbarrier>
// HALVES-NEXT:    tile.apply {{.*}} : !tile.queue<f64, lag 2>
// LAZY-LABEL:  tile.kernel @box
// LAZY:          tile.exchange {{.*}} what copies delay 1 home #tile.exchange_buffer<slots 5, shifting, {{.*}} : !tile.queue<f64, lag 1, edges [1, 0]>
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
// CHECK-NEXT:    tile.exchange {{.*}} what copies delay 0 {{.*}} : !tile.queue<f64, lag 0, edges [1, 0]>
// EDGES-LABEL: tile.kernel @across
// EDGES:         tile.load %src {{.*}} : !tile.queue<f64, lag 0>
// EDGES-NEXT:    tile.exchange {{.*}} what edges delay 0 {{.*}} : !tile.queue<f64, lag 0, edges [1, 0]>
// LAZY-LABEL:  tile.kernel @across
// LAZY:          tile.load %src {{.*}} : !tile.queue<f64, lag 0>
// LAZY-NEXT:     tile.exchange {{.*}} what copies delay 1 {{.*}} : !tile.queue<f64, lag 1, edges [1, 0]>
tile.kernel @across(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %e0[0, 1, 0]) : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !field
}

// Edges of a tile that the device holds pass between its blocks in messages, as the words of global memory
// say; the copies of each block serve that block only. All are delayed by a step, whatever lag that costs,
// and stay in their slots until their sender hears that they were read: for twice the delay.
// CHECK-LABEL: tile.kernel @apart(
// CHECK:         %[[u0:.*]] = tile.load %src
// CHECK-NEXT:    tile.exchange %[[u0]] what copies delay 1 home #tile.exchange_buffer<slots 6, shifting, every 1, space shared, sync mbarrier> : !tile.queue<f64, lag 1, edges [1, 0]>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply
// CHECK-NEXT:    tile.exchange %[[u1]] what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 3, edges [1, 0]>
// EDGES-LABEL: tile.kernel @apart(
// EDGES:         tile.exchange {{.*}} what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
// EDGES:         tile.exchange {{.*}} what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags>
// HALVES-LABEL: tile.kernel @apart(
// HALVES:         sync mbarrier>
// HALVES:         sync flags>
// LATER-LABEL: tile.kernel @apart(
// LATER:         tile.exchange {{.*}} what copies delay 2 home #tile.exchange_buffer<slots 7, {{.*}}, space shared, sync mbarrier>
// LATER:         tile.exchange {{.*}} what edges delay 2 home #tile.exchange_buffer<slots 4, {{.*}}, space global, sync flags>
// GRID-LABEL:  tile.kernel @apart(
// GRID:          tile.exchange {{.*}} what copies delay 1 {{.*}}, space shared, sync barrier>
// GRID:          tile.exchange {{.*}} what edges delay 1 {{.*}}, space global, sync grid>
tile.kernel @apart(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<device, [4 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %u0[1, 0, 0], %e0[1, -1, 0]) : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %u1[1, 0, 0], %e1[1, -1, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// A tile that is not streamed has no step to wait for: its warps wait at a barrier, after the publishing.
// CHECK-LABEL: tile.kernel @in_place(
// CHECK:         tile.exchange {{.*}} what edges delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 0, edges [1, 0]>
tile.kernel @in_place(%src: !stencil.field<[-8,72]x[-8,72]xf64>, %dst: !stencil.field<[-8,72]x[-8,72]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [64, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 0, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[0, 0], %e0[-1, 0]) : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-8,72]x[-8,72]xf64>
}

// Edges are whole rows of one axis, of one warp: where warps lie along two axes, or a neighbour looks
// beyond the next warp, the whole plane is published. Copies are the whole plane.
// CHECK-LABEL: tile.kernel @both_axes
// CHECK:         tile.exchange {{.*}} what copies delay 1 {{.*}} edges [1, 1]>
// EDGES-LABEL: tile.kernel @both_axes
// EDGES:         tile.exchange {{.*}} what plane delay 1 {{.*}} edges [1, 1]>
tile.kernel @both_axes(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 2 warps, 2 cells x 32 lanes x 2 warps]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 1]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %e0[0, 0, 1], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// CHECK-LABEL: tile.kernel @far
// CHECK:         tile.exchange {{.*}} what copies delay 1 {{.*}} edges [5, 0]>
// EDGES-LABEL: tile.kernel @far
// EDGES:         tile.exchange {{.*}} what plane delay 1 {{.*}} edges [5, 0]>
tile.kernel @far(%src: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [5, 0]>
  %u1 = tile.apply @cell(%u0[1, 0, 0], %e0[0, -5, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !field
}

// Shared storage that the schedule asks for stays, unless this pass is asked for something.
// CHECK-LABEL: tile.kernel @asked
// KEPT:          tile.load %src {{.*}} home #tile.shared<slots 2, fixed, reader tile>
// KEPT-NOT:      tile.exchange
// MOVED:         tile.load %src ahead 3 home #tile.registers
// MOVED-NEXT:    tile.exchange {{.*}} what copies
// CHECK:       func.func @program
tile.kernel @asked(%src: !field, %dst: !field) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]>
    schedule #tile.schedule<storage shared> {
  %u0 = tile.load %src ahead 0 home #tile.shared<slots 2, fixed, reader tile> : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[0, -1, 0], %u0[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !field
}

func.func @program(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] kernels [@asked] {
    temporal.update %b = @cell(%a[0, -1, 0], %a[0, 1, 0]) in <[0, 0, 0], [64, 64, 64]>
  } : !field, !field
  func.return
}

// If the queue moves back to registers, other taps keep their queue: the exchange is replaced by its
// operand, a queue then given twice.

// CHECK-LABEL: tile.kernel @three(
// CHECK:         [[U:%.*]] = tile.load %src
// CHECK:         [[E:%.*]] = tile.exchange [[U]]
// CHECK:         [[K:%.*]] = tile.load %K
// CHECK:         tile.apply @cell([[E]][0, -1, 0], [[U]][1, 0, 0], [[K]][0, 0, 0])
tile.kernel @three(%src: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>, %K: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>, %dst: !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>) roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %k = tile.load %K : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%e0[0, -1, 0], %u0[1, 0, 0], %k[0, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %u1 to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-8,72]x[-8,72]x[-8,72]xf64>
}
