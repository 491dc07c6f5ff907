// RUN: xdsl-opt %s -p carry-halos | filecheck %s
// RUN: xdsl-opt %s -p carry-halos,carry-halos | filecheck %s
// RUN: xdsl-opt %s -p carry-halos | filecheck %s --check-prefix=MEMORY

// Outside the bounds a level is what an older level of the same buffer was, which still keeps the plane:
// its halo need not be read from memory.

!field = !stencil.field<[-4,68]x[-4,68]xf64>

// The third level is of the first one's buffer, the fourth of the second's. Only the second, which has no
// older one, reads its halo from memory.
// CHECK-LABEL: tile.kernel @star
// CHECK:         %[[u0:.*]] = tile.load %src halo %a : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[h1:.*]] = tile.load halo %b : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0], %[[u0]][0, 1], %[[u0]][1, 0]) else %[[h1]] : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[u2:.*]] = tile.apply @cell(%[[u1]][-1, 0], %[[u1]][0, 1], %[[u1]][1, 0]) else %[[u0]] : !tile.queue<f64, lag 2>
// CHECK-NEXT:    %[[u3:.*]] = tile.apply @cell(%[[u2]][-1, 0], %[[u2]][0, 1], %[[u2]][1, 0]) else %[[u1]] : !tile.queue<f64, lag 3>
// CHECK-NEXT:    tile.store %[[u3]] to %dst
tile.kernel @star(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 3 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, 1], %u0[1, 0]) else %h1 : !tile.queue<f64, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 2>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 1], %u1[1, 0]) else %h2 : !tile.queue<f64, lag 2>
  %h3 = tile.load halo %b : !tile.queue<f64, lag 3>
  %u3 = tile.apply @cell(%u2[-1, 0], %u2[0, 1], %u2[1, 0]) else %h3 : !tile.queue<f64, lag 3>
  tile.store %u3 to %dst : !tile.queue<f64, lag 3>, !field
}

// Where sums are split nothing keeps the older plane until the last part is made. It is there when the
// first part is: the parts carry its cells.
// CHECK-LABEL: tile.kernel @rows
// CHECK:         %[[u0:.*]] = tile.load %src halo %a : !tile.queue<f64, lag 0>
// CHECK:         %[[u1:.*]] = tile.apply @last({{.*}}) else %{{.*}} : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[p:.*]] = tile.apply @first(%[[u1]][-1, 1]) else %[[u0]] : !tile.queue<f64, lag 0>
// CHECK-NEXT:    %[[s:.*]] = tile.apply @last(%[[p]][0, 0], %[[u1]][0, 0]) else %[[p]] : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[u2:.*]] = tile.apply @last(%[[s]][0, 0], %[[u1]][1, 0]) else %[[s]] : !tile.queue<f64, lag 2>
// CHECK-NEXT:    tile.store
tile.kernel @rows(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %p1 = tile.apply @first(%u0[-1, 1]) : !tile.queue<f64, lag -1>
  %s1 = tile.apply @last(%p1[0, 0], %u0[0, 0]) : !tile.queue<f64, lag 0>
  %u1 = tile.apply @last(%s1[0, 0], %u0[1, 0]) else %h1 : !tile.queue<f64, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 2>
  %p2 = tile.apply @first(%u1[-1, 1]) : !tile.queue<f64, lag 0>
  %s2 = tile.apply @last(%p2[0, 0], %u1[0, 0]) : !tile.queue<f64, lag 1>
  %u2 = tile.apply @last(%s2[0, 0], %u1[1, 0]) else %h2 : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// A partial sum with another reader may be read outside the bounds, and stays unchanged.
// MEMORY-LABEL: tile.kernel @shared_sum
// MEMORY:         tile.apply @first(%{{.*}}[-1, 1]) : !tile.queue<f64, lag 0>
// MEMORY:         tile.apply @last(%{{.*}}[0, 0], %{{.*}}[1, 0]) else %h2 : !tile.queue<f64, lag 2>
tile.kernel @shared_sum(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %p1 = tile.apply @first(%u0[-1, 1]) : !tile.queue<f64, lag -1>
  %u1 = tile.apply @last(%p1[0, 0], %u0[1, 0]) else %h1 : !tile.queue<f64, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 2>
  %p2 = tile.apply @first(%u1[-1, 1]) : !tile.queue<f64, lag 0>
  %v2 = tile.apply @last(%p2[0, 0], %p2[0, 1]) : !tile.queue<f64, lag 0>
  %u2 = tile.apply @last(%p2[0, 0], %u1[1, 0]) else %h2 : !tile.queue<f64, lag 2>
  %w2 = tile.apply @last(%v2[0, 0], %u2[0, 0]) : !tile.queue<f64, lag 2>
  tile.store %w2 to %dst : !tile.queue<f64, lag 2>, !field
}

// Neither does a sum of another type than the level's carry its cells.
// MEMORY-LABEL: tile.kernel @widened
// MEMORY:         tile.apply @first(%{{.*}}[-1, 1]) : !tile.queue<f64, lag 0>
// MEMORY:         tile.apply @last(%{{.*}}[0, 0], %{{.*}}[1, 0]) else %h2 : !tile.queue<f32, lag 2>
!single = !stencil.field<[-4,68]x[-4,68]xf32>
tile.kernel @widened(%src: !single, %dst: !single, %a: !single, %b: !single)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 2 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f32, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f32, lag 1>
  %p1 = tile.apply @first(%u0[-1, 1]) : !tile.queue<f64, lag -1>
  %u1 = tile.apply @last(%p1[0, 0], %u0[1, 0]) else %h1 : !tile.queue<f32, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f32, lag 2>
  %p2 = tile.apply @first(%u1[-1, 1]) : !tile.queue<f64, lag 0>
  %u2 = tile.apply @last(%p2[0, 0], %u1[1, 0]) else %h2 : !tile.queue<f32, lag 2>
  tile.store %u2 to %dst : !tile.queue<f32, lag 2>, !single
}

// A stencil that looks further ahead than back drops the older plane too soon, and with three buffers
// the level of the same buffer is one further back: both read memory.
// MEMORY-LABEL: tile.kernel @ahead
// MEMORY:         tile.apply @last(%{{.*}}[0, 0], %{{.*}}[1, 0]) else %h2 : !tile.queue<f64, lag 2>
tile.kernel @ahead(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 3 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @last(%u0[0, 0], %u0[1, 0]) else %h1 : !tile.queue<f64, lag 1>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 2>
  %u2 = tile.apply @last(%u1[0, 0], %u1[1, 0]) else %h2 : !tile.queue<f64, lag 2>
  %u3 = tile.apply @last(%u2[0, 0], %u2[1, 0]) : !tile.queue<f64, lag 3>
  tile.store %u3 to %dst : !tile.queue<f64, lag 3>, !field
}

// MEMORY-LABEL: tile.kernel @wave
// MEMORY:         %h4 = tile.load halo %b : !tile.queue<f64, lag 3>
// MEMORY-NEXT:    tile.apply {{.*}} else %h4 : !tile.queue<f64, lag 3>
tile.kernel @wave(%old: !field, %new: !field, %dst: !field, %a: !field, %b: !field, %c: !field)
    roles [#tile.role<source 0>, #tile.role<source 1>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>, #tile.role<halo 2>] steps 4 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %old halo %a : !tile.queue<f64, lag 0>
  %u1 = tile.load %new halo %b : !tile.queue<f64, lag 0>
  %h2 = tile.load halo %c : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[1, 0], %u0[0, 0]) else %h2 : !tile.queue<f64, lag 1>
  %h3 = tile.load halo %a : !tile.queue<f64, lag 2>
  %u3 = tile.apply @cell(%u2[-1, 0], %u2[1, 0], %u1[0, 0]) else %h3 : !tile.queue<f64, lag 2>
  %h4 = tile.load halo %b : !tile.queue<f64, lag 3>
  %u4 = tile.apply @cell(%u3[-1, 0], %u3[1, 0], %u2[0, 0]) else %h4 : !tile.queue<f64, lag 3>
  %u5 = tile.apply @cell(%u4[-1, 0], %u4[1, 0], %u3[0, 0]) : !tile.queue<f64, lag 4>
  tile.store %u5 to %dst : !tile.queue<f64, lag 4>, !field
}

// A result with a box of its own takes the version before it already, and a tile without a stream has no
// older planes.
// MEMORY-LABEL: tile.kernel @inner_box
// MEMORY:         tile.apply @first(%u0[0, 1]) else %u0 in <[8, 8], [56, 56]>
tile.kernel @inner_box(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %u1 = tile.apply @first(%u0[0, 1]) else %u0 in <[8, 8], [56, 56]> : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !field
}

!line = !stencil.field<[-4,68]xf64>

// MEMORY-LABEL: tile.kernel @line
// MEMORY:         tile.apply @first(%{{.*}}[1]) else %h2
tile.kernel @line(%src: !line, %dst: !line, %a: !line, %b: !line)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>] steps 3 bounds <[0], [64]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 0>
  %u1 = tile.apply @first(%u0[1]) else %h1 : !tile.queue<f64, lag 0>
  %h2 = tile.load halo %a : !tile.queue<f64, lag 0>
  %u2 = tile.apply @first(%u1[1]) else %h2 : !tile.queue<f64, lag 0>
  %u3 = tile.apply @first(%u2[1]) : !tile.queue<f64, lag 0>
  tile.store %u3 to %dst : !tile.queue<f64, lag 0>, !line
}
