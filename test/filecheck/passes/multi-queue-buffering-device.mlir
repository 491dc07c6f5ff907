// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=computed every=2}' | filecheck %s --check-prefixes=CHECK,RINGS
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=shifting}' | filecheck %s --check-prefixes=CHECK,EACH
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared},register-streaming{what=plane sync=grid every=2}' | filecheck %s --check-prefix=STREAMED

// Where the device holds a tile, each block has the ring of its own part. Exchanges stay: what crosses blocks waits
// for a barrier of the grid, and one of those serves a batch of planes. What crosses lanes is read from the ring.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

// The oldest plane that a neighbour reads was made five steps ago: two until it is sent and taken, one more that the
// tap looks back, and so on down to the newest; two are written until the next barrier. Both queues' windows are in one
// ring of a power of two.
// CHECK-LABEL: tile.kernel @star
// RINGS:          %[[u0:.*]] = tile.load %src halo %a ahead 0 home #tile.shared<slots 16, computed, ring 0 base 15, reader tile>
// RINGS-NEXT:     %[[e0:.*]] = tile.exchange %[[u0]] what edges delay 2 home #tile.exchange_buffer<slots 4, computed, every 2, space global, sync grid> : !tile.queue<f64, lag 2, edges [1, 0]>
// EACH:           %[[u0:.*]] = tile.load %src halo %a ahead 0 home #tile.shared<slots 4, shifting, reader tile>
// EACH-NEXT:      %[[e0:.*]] = tile.exchange %[[u0]] what edges delay 1 home #tile.exchange_buffer<slots 2, shifting, every 1, space global, sync grid>
// CHECK:          %[[h1:.*]] = tile.load halo %b home #tile.memory
// CHECK-NEXT:     %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][0, 0, 1], %[[u0]][1, 0, 0]) else %[[h1]]
// RINGS-SAME:       home #tile.shared<slots 16, computed, ring 0 base 9, reader tile>
// EACH-SAME:        home #tile.shared<slots 4, shifting, reader tile>
// CHECK-NEXT:     %[[e1:.*]] = tile.exchange %[[u1]] what edges
// CHECK-NEXT:     tile.apply {{.*}} home #tile.registers<depth 0, period 1>
// Streamed through registers, a block's part is in shared memory a second time: the exchange has it, rows of the blocks
// beside included.
// STREAMED:       %[[u0:.*]] = tile.load %src halo %a {{.*}} home #tile.registers<depth 3, period
// STREAMED-NEXT:  %[[e0:.*]] = tile.exchange %[[u0]] what plane delay 2 home #tile.exchange_buffer<slots 6, fixed, every 2, space global, sync grid>
// STREAMED:       %[[u1:.*]] = tile.apply {{.*}} home #tile.registers<depth 3, period
// STREAMED-NEXT:  tile.exchange %[[u1]] what plane delay 2
tile.kernel @star(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<device, [4 cells x 4 warps x 4 blocks, 2 cells x 32 lanes]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[0, 0, 1], %u0[1, 0, 0]) else %h1 : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[0, 0, 1], %u1[1, 0, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}
