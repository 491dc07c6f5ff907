// RUN: xdsl-opt %s -p multi-queue-buffering | filecheck %s --check-prefixes=CHECK,REGISTERS
// RUN: xdsl-opt %s -p 'multi-queue-buffering{addressing=computed ahead=1 period=4}' | filecheck %s --check-prefix=OPTIONS
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=fixed}' | filecheck %s --check-prefixes=CHECK,SHARED,FIXED
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=shifting}' | filecheck %s --check-prefixes=CHECK,SHARED,SHIFTING
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=computed}' | filecheck %s --check-prefixes=CHECK,SHARED,COMPUTED
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=computed delay=1}' | filecheck %s --check-prefix=LAZY
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared addressing=computed ahead=2}' | filecheck %s --check-prefix=COPIES

// Every queue and every exchange gets a home, so that the kernel can be lowered whatever the storage:
// registers with exchanges between warps, or rings in shared memory that neighbours read themselves.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @star

// In registers: two older planes of %u0 and %u1, which age by renaming in a loop that is unrolled
// twice. What is only stored keeps nothing; halos are read from memory again.
// REGISTERS:      %[[u0:.*]] = tile.load %src halo %a ahead 3 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
// REGISTERS-NEXT: %[[e0:.*]] = tile.exchange %[[u0]] what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier>
// REGISTERS-NEXT: %[[h1:.*]] = tile.load halo %b home #tile.memory
// REGISTERS-NEXT: %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0]) else %[[h1]] home #tile.registers<depth 2, period 2>
// REGISTERS-NEXT: %[[e1:.*]] = tile.exchange %[[u1]] what plane delay 0 home #tile.exchange_buffer
// REGISTERS-NEXT: tile.apply @cell(%[[u1]][-1, 0, 0], %[[e1]][0, -1, 0], %[[u1]][1, 0, 0]) home #tile.registers<depth 0, period 2>

// OPTIONS-LABEL: tile.kernel @star
// OPTIONS:        tile.load %src halo %a ahead 1 home #tile.registers<depth 2, period 4>
// OPTIONS:        tile.exchange {{.*}} home #tile.exchange_buffer<slots 2, computed, every 1, space shared, sync barrier>
// OPTIONS:        else {{.*}} home #tile.registers<depth 2, period 4>

// Warps read each other's planes a step late, in the ring: the exchange has no memory of its own.
// LAZY-LABEL: tile.kernel @star
// LAZY:           %[[u0:.*]] = tile.load %src halo %a ahead 0 home #tile.shared<slots 8, computed, ring 0 base 7, reader tile>
// LAZY:           %[[e0:.*]] = tile.exchange %[[u0]] what edges delay 1 home #tile.exchange_buffer<slots 2, computed, every 1, space shared, sync barrier>
// LAZY:           tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0]) {{.*}} home #tile.shared<slots 8, computed, ring 0 base 3, reader tile>

// Asynchronous copies land in the ring, two steps before the step of their plane: four of eight slots are theirs. Own cells of
// the field are in registers.
// COPIES-LABEL: tile.kernel @star
// COPIES:         %[[u0:.*]] = tile.load %src halo %a ahead 2 home #tile.registers<depth 2, period 1>
// COPIES:         %[[e0:.*]] = tile.exchange %[[u0]] what copies delay 0 home #tile.exchange_buffer<slots 8, computed, ring 0 base 5, every 1, space shared, sync barrier>
// COPIES:         tile.apply @cell(%[[u0]][-1, 0, 0], %[[e0]][0, -1, 0], %[[u0]][1, 0, 0]) {{.*}} home #tile.shared<slots 8, computed, ring 0 base 3, reader tile>

// Three planes in shared memory, and a fourth that may be overwritten while the three are read.
// Exchanges are erased.
// SHARED-NOT:     tile.exchange
// FIXED:          %[[u0:.*]] = tile.load %src halo %a ahead 0 home #tile.shared<slots 4, fixed, reader tile>
// SHIFTING:       %[[u0:.*]] = tile.load %src halo %a ahead 0 home #tile.shared<slots 4, shifting, reader tile>
// All queues in one ring of a power of two of slots, each with its window below the last one's.
// COMPUTED:       %[[u0:.*]] = tile.load %src halo %a ahead 0 home #tile.shared<slots 8, computed, ring 0 base 7, reader tile>
// SHARED-NEXT:    %[[h1:.*]] = tile.load halo %b home #tile.memory
// SHARED-NEXT:    %[[u1:.*]] = tile.apply @cell(%[[u0]][-1, 0, 0], %[[u0]][0, -1, 0], %[[u0]][1, 0, 0]) else %[[h1]]
// FIXED-SAME:       home #tile.shared<slots 4, fixed, reader tile>
// SHIFTING-SAME:    home #tile.shared<slots 4, shifting, reader tile>
// COMPUTED-SAME:    home #tile.shared<slots 8, computed, ring 0 base 3, reader tile>
// SHARED-NEXT:    %[[u2:.*]] = tile.apply @cell(%[[u1]][-1, 0, 0], %[[u1]][0, -1, 0], %[[u1]][1, 0, 0]) home #tile.registers<depth 0, period 1>
// CHECK-NEXT:     tile.store
tile.kernel @star(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]> layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %h1 = tile.load halo %b : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[1, 0, 0]) else %h1 : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[1, 0, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// Without a stream axis nothing grows old: no planes are kept, nothing is fetched early, no unrolling.
// CHECK-LABEL:     tile.kernel @line
// REGISTERS:       tile.load %src halo %a ahead 0 home #tile.registers<depth 0, period 1>
// REGISTERS-NEXT:  tile.apply {{.*}} home #tile.registers<depth 0, period 1>
// FIXED:           tile.load %src halo %a ahead 0 home #tile.shared<slots 1, fixed, reader tile>
// COMPUTED:        tile.load %src halo %a ahead 0 home #tile.shared<slots 1, computed, ring 0 base 0, reader tile>
tile.kernel @line(%src: !stencil.field<[-1,65]xf64>, %dst: !stencil.field<[-1,65]xf64>, %a: !stencil.field<[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>]
    steps 1 bounds <[0], [64]> layout #tile.layout<warp, [2 cells x 32 lanes]> {
  %u0 = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[-1], %u0[0], %u0[1]) : !tile.queue<f64, lag 0>
  tile.store %u1 to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,65]xf64>
}
