// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// Every operation, type and attribute of the tile dialect prints, and parses back, in its own and in
// generic form. Parts that are absent are not printed.

!field = !stencil.field<[-1,9]x[-1,9]xf64>
!queue = !tile.queue<f64, lag 0>

// Before tiling: no layout, no homes.
// CHECK-LABEL: tile.kernel @plain(%src: !stencil.field<[-1,9]x[-1,9]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]xf64>)
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
tile.kernel @plain(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
  // CHECK-NEXT: %u = tile.load %src : !tile.queue<f64, lag 0>
  %u = tile.load %src : !queue
  // CHECK-NEXT: %v = tile.apply @cell(%u[-1, 0], %u[1, 0]) : !tile.queue<f64, lag 1>
  // GENERIC:      %v = "tile.apply"(%u)
  // GENERIC-SAME:   taps = array<i64: 0, -1, 0, 0, 1, 0>
  %v = tile.apply @cell(%u[-1, 0], %u[1, 0]) : !tile.queue<f64, lag 1>
  // CHECK-NEXT: tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]xf64>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
// CHECK-NEXT: }
}

// A store may write a part of the bounds.
// CHECK-LABEL: tile.kernel @part
tile.kernel @part(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
  %u = tile.load %src : !queue
  // CHECK:      tile.store %u to %dst in <[1, 0], [8, 7]> : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]xf64>
  tile.store %u to %dst in <[1, 0], [8, 7]> : !queue, !field
// CHECK-NEXT: }
}

// Placed: every role, every home, an exchange, and all that an apply can have.
// CHECK-LABEL: tile.kernel @placed
// CHECK-SAME:    roles [#tile.role<source 0>, #tile.role<target 1>, #tile.role<halo 1>, #tile.role<capture 0>, #tile.role<scalar 0>]
// CHECK-SAME:    steps 2 stream 0 bounds <[0, 0], [8, 8]>
// CHECK-SAME:    layout #tile.layout<block, [2 cells x 32 lanes x 4 warps]>
// CHECK-SAME:    variants [#tile.variant<axes [], planes 430, joined 70>, #tile.variant<axes [0, 1], columns 3, planes 8>, #tile.variant<axes [0, 1], planes 5>]
// CHECK-SAME:    occupancy 2 attributes {note = "kept"} {
tile.kernel @placed(%src: !field, %dst: !field, %A: !field, %K: !field, %dt: f64)
    roles [#tile.role<source 0>, #tile.role<target 1>, #tile.role<halo 1>, #tile.role<capture 0>, #tile.role<scalar 0>]
    steps 2 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<block, [2 cells x 32 lanes x 4 warps]>
    variants [#tile.variant<axes [], planes 430, joined 70>, #tile.variant<axes [0, 1], columns 3, planes 8>, #tile.variant<axes [0, 1], planes 5>]
    occupancy 2 attributes {note = "kept"} {
  // CHECK-NEXT: %u = tile.load %src halo %A ahead 3 home #tile.registers<depth 2, period 2> attributes {note = "kept"} : !tile.queue<f64, lag 0>
  %u = tile.load %src halo %A ahead 3 home #tile.registers<depth 2, period 2> attributes {note = "kept"} : !queue
  // CHECK-NEXT: %h = tile.load halo %A home #tile.memory : !tile.queue<f64, lag 1>
  %h = tile.load halo %A home #tile.memory : !tile.queue<f64, lag 1>
  // CHECK-NEXT: %f = tile.load %K at [0, -1] home #tile.memory : !tile.queue<f64, lag 1>
  %f = tile.load %K at [0, -1] home #tile.memory : !tile.queue<f64, lag 1>
  // CHECK-NEXT: %k = tile.load %K home #tile.shared<slots 4, fixed, reader lane> : !tile.queue<f64, lag 1>
  %k = tile.load %K home #tile.shared<slots 4, fixed, reader lane> : !tile.queue<f64, lag 1>
  // CHECK-NEXT: %l = tile.load %K ahead 2 home #tile.copies<slots 4> : !tile.queue<f64, lag 1>
  %l = tile.load %K ahead 2 home #tile.copies<slots 4> : !tile.queue<f64, lag 1>
  // CHECK-NEXT: %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 3, shifting, every 1, space shared, sync barrier> attributes {note = "kept"} : !tile.queue<f64, lag 1, edges [1]>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 3, shifting, every 1, space shared, sync barrier> attributes {note = "kept"} : !tile.queue<f64, lag 1, edges [1]>
  // The copies of a field that is loaded ahead, and the whole plane of another queue.
  // CHECK-NEXT: %c = tile.exchange %u what copies delay 1 home #tile.exchange_buffer<slots 5, shifting, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [2]>
  // GENERIC:      %c = "tile.exchange"(%u) <{what = #tile<published copies>, delay = #builtin.int<1>, home = #tile.exchange_buffer<slots 5, shifting, every 1, space shared, sync barrier>}>
  %c = tile.exchange %u what copies delay 1 home #tile.exchange_buffer<slots 5, shifting, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [2]>
  // CHECK-NEXT: %p = tile.exchange %k what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 1 base 1, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1]>
  %p = tile.exchange %k what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 1 base 1, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1]>
  // CHECK-NEXT: %v, %w = tile.apply @cell(%e[0, -1], %c[0, 2], %p[0, 1], %u[0, 0], %k[0, 0], %l[0, 0]) scalars(%dt) indices [0, 1] else %u, %u in <[1, 1], [7, 7]>
  // CHECK-SAME:   home #tile.shared<slots 8, computed, ring 0 base 3, reader tile> attributes {note = "kept"} : !tile.queue<f64, lag 1>, !tile.queue<f64, lag 1>
  %v, %w = tile.apply @cell(%e[0, -1], %c[0, 2], %p[0, 1], %u[0, 0], %k[0, 0], %l[0, 0]) scalars(%dt) indices [0, 1] else %u, %u
    in <[1, 1], [7, 7]> home #tile.shared<slots 8, computed, ring 0 base 3, reader tile>
    attributes {note = "kept"} : !tile.queue<f64, lag 1>, !tile.queue<f64, lag 1>
  // CHECK-NEXT: %x = tile.apply @sum(%v[0, 0], %w[0, 0], %f[0, 0]) else %h home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  %x = tile.apply @sum(%v[0, 0], %w[0, 0], %f[0, 0]) else %h home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  // CHECK-NEXT: tile.store %x to %dst {note = "kept"} :
  tile.store %x to %dst {note = "kept"} : !tile.queue<f64, lag 1>, !field
}

// Without a stream axis the whole tile is one plane, and lags are zero.
// CHECK-LABEL: tile.kernel @resident
// CHECK-SAME:    steps 1 bounds <[0], [8]> layout #tile.layout<warp, [4 cells x 32 lanes], pack 4> {
tile.kernel @resident(%src: !stencil.field<[0,8]xf32>, %dst: !stencil.field<[0,8]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4> {
  %u = tile.load %src : !tile.queue<f32, lag 0>
  tile.store %u to %dst : !tile.queue<f32, lag 0>, !stencil.field<[0,8]xf32>
}

// CHECK-LABEL: func.func @host
func.func @host(%A: !stencil.field<[-1,9]xf64>, %dt: f64) {
  // CHECK-NEXT: %x = tile.scratch like %A {note = "kept"} : !stencil.field<[-1,9]xf64> -> !stencil.field<[-1,9]xf64>
  %x = tile.scratch like %A {note = "kept"} : !stencil.field<[-1,9]xf64> -> !stencil.field<[-1,9]xf64>
  // CHECK-NEXT: tile.copy %A to %x {note = "kept"} : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  tile.copy %A to %x {note = "kept"} : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  // CHECK-NEXT: tile.launch @heat_d4(%A, %x, %dt) {note = "kept"} : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>, f64
  tile.launch @heat_d4(%A, %x, %dt) {note = "kept"} : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>, f64
  // How a lowered kernel is launched stands behind the arguments.
  // CHECK-NEXT: tile.launch @heat_d4(%A, %x) with #tile.launch<steps 4, roles [#tile.role<source 0>, #tile.role<target 0>], grid 9, block 128, shared_bytes 0, occupancy 2> {note = "kept"} : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  tile.launch @heat_d4(%A, %x) with #tile.launch<steps 4, roles [#tile.role<source 0>, #tile.role<target 0>],
    grid 9, block 128, shared_bytes 0, occupancy 2> {note = "kept"} : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  func.return
}

// CHECK-LABEL: func.func private @attributes
func.func private @attributes() attributes {
  // A count of one is printed for cells only, and a pack of one not at all.
  // CHECK:      queues = [!tile.queue<f32, lag -1>, !tile.queue<f64, lag 2, edges [1, 0]>]
  queues = [!tile.queue<f32, lag -1>, !tile.queue<f64, lag 2, edges [1, 0]>],
  // CHECK-SAME: layouts = [#tile.layout<block, [6 cells x 8 warps, 2 cells x 32 lanes]>, #tile.layout<device, [1 cells x 4 warps x 11 blocks, 2 cells x 32 lanes]>, #tile.layout<cluster, [1 cells x 32 lanes]>]
  layouts = [#tile.layout<block, [6 cells x 8 warps, 2 cells x 32 lanes x 1 warps]>,
             #tile.layout<device, [1 cells x 4 warps x 11 blocks, 2 cells x 32 lanes]>,
             #tile.layout<cluster, [1 cells x 32 lanes], pack 1>],
  // A cluster of one block, and one block a tile, are not printed.
  // CHECK-SAME: launches = [#tile.launch<steps 1, roles [], grid 4, block 32, shared_bytes 0, occupancy 1>, #tile.launch<steps 1, roles [], grid 4, block 1024, shared_bytes 64, occupancy 1, cluster 4>, #tile.launch<steps 3, roles [#tile.role<scalar 0>], grid 6, block 64, shared_bytes 0, occupancy 2, blocks_per_tile 3, message_words 770>]
  launches = [#tile.launch<steps 1, roles [], grid 4, block 32, shared_bytes 0, occupancy 1, cluster 1, blocks_per_tile 1, message_words 0>,
              #tile.launch<steps 1, roles [], grid 4, block 1024, shared_bytes 64, occupancy 1, cluster 4>,
              #tile.launch<steps 3, roles [#tile.role<scalar 0>], grid 6, block 64, shared_bytes 0, occupancy 2, blocks_per_tile 3, message_words 770>],
  // CHECK-SAME: exchanged = [#tile.exchange_buffer<slots 8, computed, every 4, space global, sync grid>, #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier>, #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags>]
  exchanged = [#tile.exchange_buffer<slots 8, computed, every 4, space global, sync grid>,
           #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier>,
           #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags>],
  // Parts of a schedule with their default values are not printed.
  // CHECK-SAME: schedules = [#tile.schedule<>, #tile.schedule<tile device, cells [4, 2], lanes [1, 32], warps [8, 1], blocks [66, 1], pack 1, form rows, storage shared, addressing computed, ahead 0, period 2, delay 2, every 2, sync grid, occupancy 1, guards all>, #tile.schedule<resident, columns_alone, reads_memory, cuts [1, 3], occupancies [2, 3, 2]>]
  schedules = [#tile.schedule<tile warp, cells [4], lanes [32], warps [1], pack 4, ahead 3, occupancy 2>,
               #tile.schedule<tile device, cells [4, 2], lanes [1, 32], warps [8, 1], blocks [66, 1], pack 1, form rows, storage shared, addressing computed, ahead 0, period 2, delay 2, every 2, sync grid, occupancy 1, guards all>,
               #tile.schedule<resident, columns_alone, reads_memory, cuts [1, 3], occupancies [2, 3, 2]>],
  // CHECK-SAME: kinds = [#tile<level cluster>, #tile<addressing shifting>, #tile<reader lane>, #tile<space global>, #tile<sync grid>, #tile<published copies>, #tile<role_kind capture>]
  kinds = [#tile<level cluster>, #tile<addressing shifting>, #tile<reader lane>, #tile<space global>,
           #tile<sync grid>, #tile<published copies>, #tile<role_kind capture>]
}

// A field of fewer axes, read along its own axis, at any cell.
// CHECK-LABEL: tile.kernel @narrow
tile.kernel @narrow(%w: !stencil.field<[-1,9]xf64>, %dst: !field)
    roles [#tile.role<capture 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
  // CHECK-NEXT: %n = tile.load %w along [1] home #tile.memory : !tile.queue<f64, lag 0>
  // GENERIC:      %n = "tile.load"(%w) <{along = array<i64: 1>
  %n = tile.load %w along [1] home #tile.memory : !queue
  // CHECK-NEXT: %v = tile.apply @cell(%n[0, -1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%n[0, -1]) home #tile.registers<depth 0, period 1> : !queue
  tile.store %v to %dst : !queue, !field
}

// The first cells of a field take numbers in place of cells.
// CHECK-LABEL: tile.kernel @numbers
tile.kernel @numbers(%src: !stencil.field<[0,8]xf32>, %dst: !stencil.field<[0,8]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f32, lag 0>
  // CHECK:   tile.store %u to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,8]xf32>
  // GENERIC: "tile.store"(%u, %dst) <{number = #temporal<reduction maximum>}>
  tile.store %u to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,8]xf32>
}

// Fields and levels go on outside the bounds: nothing but the bounds is read.
// CHECK-LABEL: tile.kernel @ring
// CHECK-SAME:    steps 1 stream 0 bounds <[0, 0], [8, 8]> beyond #temporal.boundary<periodic> {

tile.kernel @ring(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]> beyond #temporal.boundary<periodic> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 5]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[0,8]x[0,8]xf64>
}

// The number of a series at a step, for a launch.
// CHECK-LABEL: func.func @number
// CHECK-NEXT:    %v = tile.step_value %f at %t plus 3 : memref<9xf64> -> f64
func.func @number(%f: memref<9xf64>, %t: index) {
  %v = tile.step_value %f at %t plus 3 : memref<9xf64> -> f64
  func.return
}

// The number of a ring that queues share, and the base of a queue.
// CHECK-LABEL: func.func @common
// CHECK-NEXT:    "test.op"() {at = #tile.common_ring<0, 3>} : () -> ()
func.func @common() {
  "test.op"() {at = #tile.common_ring<0, 3>} : () -> ()
  func.return
}
