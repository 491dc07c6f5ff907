// RUN: xdsl-opt %s -p 'register-streaming{what=plane delay=0 ring=shared}' | filecheck %s --check-prefix=AT_ONCE
// RUN: xdsl-opt %s -p 'register-streaming{what=plane delay=1 ring=shared}' | filecheck %s --check-prefix=LATER
// RUN: xdsl-opt %s -p 'register-streaming{what=plane delay=1 ring=own}' | filecheck %s --check-prefix=OWN
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=2},register-streaming{ring=shared}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=AHEAD
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=2 addressing=computed},register-streaming{what=plane loads=copies delay=1 ring=shared}' | filecheck %s --check-prefix=COPIES

// Exchanges share a ring of planes. Read at once, two planes serve three levels: the third lies where the first was read. Read a
// step later, each level has its two planes, one behind the other. Copies of a field fetched ahead arrive in a ring of their own beside
// rings of edges, and land in a ring of whole planes, two steps before the step of their plane.

!field = !stencil.field<[-3,67]x[-3,67]x[-3,67]xf64>

// AT_ONCE-LABEL: tile.kernel @star
// AT_ONCE:         what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 0]>
// AT_ONCE:         what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 1, every 1, space shared, sync barrier> : !tile.queue<f64, lag 2, edges [1, 0]>
// AT_ONCE:         what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 3, edges [1, 0]>
// LATER:           what plane delay 1 home #tile.exchange_buffer<slots 6, fixed, ring 0 base 5, every 1, space shared, sync barrier>
// LATER:           what plane delay 1 home #tile.exchange_buffer<slots 6, fixed, ring 0 base 3, every 1, space shared, sync barrier>
// LATER:           what plane delay 1 home #tile.exchange_buffer<slots 6, fixed, ring 0 base 1, every 1, space shared, sync barrier>
// OWN:             what plane delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier>
// AHEAD:           tile.kernel in @pair: ring=shared is ignored: no two exchanges have planes of one type and width in the memory of a block; use what=plane
// AHEAD:           what copies delay 1 home #tile.exchange_buffer<slots 4, computed, every 1
// AHEAD:           what edges delay 1 home #tile.exchange_buffer<slots 4, fixed, ring 0 base 3
// COPIES-LABEL:  tile.kernel @star
// COPIES:          %[[u0:.*]] = tile.load %src ahead 2 home #tile.registers<depth 2, period 2>
// COPIES:          tile.exchange %[[u0]] what copies delay 1 home #tile.exchange_buffer<slots 8, computed, ring 0 base 5, every 1
// COPIES:          what plane delay 1 home #tile.exchange_buffer<slots 8, computed, ring 0 base 3, every 1
// COPIES:          what plane delay 1 home #tile.exchange_buffer<slots 8, computed, ring 0 base 1, every 1
tile.kernel @star(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 3 stream 0 bounds <[0, 0, 0], [64, 64, 64]>
    layout #tile.layout<block, [4 cells x 8 warps, 1 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[1, 0, 0]) : !tile.queue<f64, lag 2>
  %e2 = tile.exchange %u2 what plane delay 0 : !tile.queue<f64, lag 3, edges [1, 0]>
  %u3 = tile.apply @cell(%u2[-1, 0, 0], %e2[0, -1, 0], %u2[1, 0, 0]) : !tile.queue<f64, lag 3>
  tile.store %u3 to %dst : !tile.queue<f64, lag 3>, !field
}

tile.kernel @pair(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]>
    layout #tile.layout<block, [4 cells x 8 warps, 1 cells x 32 lanes]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %e0 = tile.exchange %u0 what plane delay 0 : !tile.queue<f64, lag 1, edges [1, 0]>
  %u1 = tile.apply @cell(%u0[-1, 0, 0], %e0[0, -1, 0], %u0[1, 0, 0]) : !tile.queue<f64, lag 1>
  %e1 = tile.exchange %u1 what plane delay 0 : !tile.queue<f64, lag 2, edges [1, 0]>
  %u2 = tile.apply @cell(%u1[-1, 0, 0], %e1[0, -1, 0], %u1[1, 0, 0]) : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

func.func private @cell(%a: f64, %b: f64, %c: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  %t = arith.addf %s, %c : f64
  func.return %t : f64
}
