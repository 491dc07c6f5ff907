// RUN: xdsl-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Refusals by the verifiers of the tile dialect's operations. Each sentence stands above its operation,
// with the found and the expected value.

// CHECK: 1 arguments and 2 roles
tile.kernel @roles(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0], [8]> {
}

// -----

// CHECK: a kernel advances at least one step, got 0
tile.kernel @no_step() roles [] steps 0 stream 0 bounds <[0], [8]> {
}

// -----

// CHECK: stream axis 1 of rank 1
tile.kernel @stream_axis() roles [] steps 1 stream 1 bounds <[0], [8]> {
}

// -----

// CHECK: a kernel holds stages only, got arith.constant
tile.kernel @foreign_operation() roles [] steps 1 stream 0 bounds <[0], [8]> {
  %c = arith.constant 1 : i32
}

// -----

// CHECK: a queue of tile.load has no reader
tile.kernel @unread(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
}

// -----

// CHECK: every queue has a home, or none has
tile.kernel @half_placed(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

// CHECK: layout of 2 axes for a plane of 1
tile.kernel @layout_axes() roles [] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells, 1 cells x 32 lanes]> {
}

// -----

// CHECK: a field is loaded as data and stored in one kernel
tile.kernel @in_place(%A: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %A : !tile.queue<f64, lag 0>
  tile.store %u to %A : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

// CHECK: a field is stored twice in one kernel
tile.kernel @stored_twice(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

tile.kernel @load_of_nothing() roles [] steps 1 stream 0 bounds <[0], [8]> {
  // CHECK: a load has a data field, a halo field or both
  %u = "tile.load"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> !tile.queue<f64, lag 0>
}

// -----

tile.kernel @load_type(%src: !stencil.field<[0,8]xf32>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  // CHECK: field of f32 loaded as f64
  %u = tile.load %src : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @load_late(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  // CHECK: a plane is fetched 0 or more steps early, got -1
  %u = tile.load %src ahead -1 : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @half_a_tap(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: taps hold 3 integers, not a multiple of rank + 1 = 2
  %v = "tile.apply"(%u) <{cell = @cell, taps = array<i64: 0, 0, 0>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tile.queue<f64, lag 0>) -> !tile.queue<f64, lag 0>
}

// -----

tile.kernel @operand_without_a_tap(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %w = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: operand 1 has no tap
  %v = "tile.apply"(%u, %w) <{cell = @cell, taps = array<i64: 0, 0>, operandSegmentSizes = array<i32: 2, 0, 0, 0>}> : (!tile.queue<f64, lag 0>, !tile.queue<f64, lag 0>) -> !tile.queue<f64, lag 0>
}

// -----

tile.kernel @tap_of_nothing(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: tap reads operand 1 of 1
  %v = "tile.apply"(%u) <{cell = @cell, taps = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tile.queue<f64, lag 0>) -> !tile.queue<f64, lag 0>
}

// -----

tile.kernel @no_result(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: an apply has at least one result
  "tile.apply"(%u) <{cell = @cell, taps = array<i64: 0, 0>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tile.queue<f64, lag 0>) -> ()
}

// -----

tile.kernel @two_lags(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: the results of an apply have one lag
  %v, %w = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>, !tile.queue<f64, lag 1>
}

// -----

tile.kernel @one_else_for_two(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: 1 else operands for 2 results
  %v, %w = tile.apply @cell(%u[0]) else %u : !tile.queue<f64, lag 0>, !tile.queue<f64, lag 0>
}

// -----

tile.kernel @else_of_another_type(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: an else operand has the element type of its result
  %v = tile.apply @cell(%u[0]) else %u : !tile.queue<f32, lag 0>
}

// -----

tile.kernel @early_else(%src: !stencil.field<[0,8]xf64>, %A: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<halo 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %h = tile.load halo %A : !tile.queue<f64, lag 2>
  // CHECK: else reads a plane that has not arrived: lag 0 must be at least 2
  %v = tile.apply @cell(%u[0]) else %h : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @early_tap(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 1>
  // CHECK: tap [2] reads a plane that has not arrived: lag 2 must be at least 3
  %v = tile.apply @cell(%u[-1], %u[2]) : !tile.queue<f64, lag 2>
}

// -----

tile.kernel @across_warps(%src: !stencil.field<[0,8]x[0,8]xf64>) roles [#tile.role<source 0>]
    steps 1 stream 0 bounds <[0, 0], [8, 8]> layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: tap [0, -2] crosses warps along axis 1; tap an exchange of the queue with edges of at least 2, not of 0
  %v = tile.apply @cell(%u[0, -2]) : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @beyond_the_edges(%src: !stencil.field<[0,8]x[0,8]xf64>) roles [#tile.role<source 0>]
    steps 1 stream 0 bounds <[0, 0], [8, 8]> layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 : !tile.queue<f64, lag 0, edges [1]>
  // CHECK: tap [0, 2] crosses warps along axis 1; tap an exchange of the queue with edges of at least 2, not of 1
  %v = tile.apply @cell(%e[0, 2]) : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @published_what(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: Expected `edges`, `plane`, or `copies`.
  %e = tile.exchange %u what corners delay 0 : !tile.queue<f64, lag 0, edges [1]>
}

// -----

tile.kernel @copies_of_a_result(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>
  // CHECK: only a load's asynchronous copies can be published
  %e = tile.exchange %v what copies delay 0 : !tile.queue<f64, lag 0, edges [1]>
}

// -----

tile.kernel @copies_of_a_halo(%A: !stencil.field<[0,8]xf64>) roles [#tile.role<halo 0>] steps 1 stream 0 bounds <[0], [8]> {
  %h = tile.load halo %A : !tile.queue<f64, lag 0>
  // CHECK: sym_name = "copies_of_a_halo"
  // CHECK: Operation does not verify: only a load's asynchronous copies can be published
  %e = tile.exchange %h what copies delay 0 : !tile.queue<f64, lag 0, edges [1]>
}

// -----

tile.kernel @read_before(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 1>
  // CHECK: lag 2 is below the source's 1 plus delay 2
  %e = tile.exchange %u what plane delay 2 : !tile.queue<f64, lag 2, edges [1]>
}

// -----

tile.kernel @no_edges(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: an exchange needs edges along an axis
  %e = tile.exchange %u what plane delay 0 : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @too_lazy(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  // CHECK: delay 1 is shorter than the 2 steps between synchronisations
  %e = tile.exchange %u what plane delay 1 home #tile.exchange_buffer<slots 4, fixed, every 2, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1]>
}

// -----

tile.kernel @too_few_slots(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  // CHECK: 3 slots are overwritten before the read: delay 2 and one synchronisation every 2 steps need 4
  %e = tile.exchange %u what plane delay 2 home #tile.exchange_buffer<slots 3, fixed, every 2, space shared, sync barrier> : !tile.queue<f64, lag 2, edges [1]>
}

// -----

tile.kernel @unheard(%src: !stencil.field<[0,8]xf64>) roles [#tile.role<source 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  // CHECK: 3 slots are too few: with flags, a sender learns 2 steps late that a slot was read; use 4 slots
  %e = tile.exchange %u what edges delay 2 home #tile.exchange_buffer<slots 3, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 2, edges [1]>
}

// -----

// A store writes what the field has of the bounds, and that is something.
tile.kernel @store_nothing(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[8,12]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: the store has no cell: bounds [0, 8) and the field's [8, 12) have no cell in common
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[8,12]xf64>
}

// -----

// The box of a store lies in the bounds and in the field.
tile.kernel @store_box(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[2,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: the box of a store has cells of the bounds and of the field only, [2, 8), got [1, 8)
  tile.store %u to %dst in <[1], [8]> : !tile.queue<f64, lag 0>, !stencil.field<[2,8]xf64>
}

// -----

tile.kernel @store_box_rank(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: box of rank 2 in a kernel of rank 1
  tile.store %u to %dst in <[1, 1], [8, 8]> : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

// A sum has no order among warps.
tile.kernel @store_total(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: numbers of a kernel are maximum or minimum of f32 or f64: a sum has a fixed order
  tile.store %u to %dst number total : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

tile.kernel @store_numbers_of_a_box(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: numbers of a kernel are made of all cells, and have no box
  tile.store %u to %dst in <[1], [8]> number maximum : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

// A spot of points has tiles before the first.
func.func private @same(%a: f64) -> f64 {
  func.return %a : f64
}
// CHECK: a kernel with points writes cells, no numbers
tile.kernel @store_numbers_beside_points(%src: !stencil.field<[0,66]x[0,66]xf64>, %dst: !stencil.field<[0,66]x[0,66]xf64>,
    %l: !stencil.field<[0,697]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %rows: i64)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<capture 0>, #tile.role<capture 1>, #tile.role<capture 2>, #tile.role<series 0>]
    steps 1 stream 0 bounds <[1, 1], [65, 65]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @same(%u[0, 0]) points(%rows, %l, %w, %f) uses [#temporal.points<inject 0 columns 2 of <[0, 0], [66, 66]>>] : !tile.queue<f64, lag 0>
  tile.store %v to %dst number maximum : !tile.queue<f64, lag 0>, !stencil.field<[0,66]x[0,66]xf64>
}

// -----

tile.kernel @store_rank(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: field of rank 2 in a kernel of rank 1
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

tile.kernel @other_halo(%src: !stencil.field<[0,8]xf64>, %a: !stencil.field<[-1,9]xf64>)
    roles [#tile.role<source 0>, #tile.role<halo 0>] steps 1 stream 0 bounds <[0], [8]> {
  // CHECK: data and halo have the same bounds, got [0, 8) and [-1, 9)
  %u = tile.load %src halo %a : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @inside_of_a_halo(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %h = tile.load halo %src : !tile.queue<f64, lag 0>
  // CHECK: a stage with a box of its own takes cells inside the bounds from else, and a load of a halo has no cells inside
  %v = tile.apply @cell(%u[0]) else %h in <[1], [7]> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

// The second stage looks two cells to the left of the first cell that is stored.
// CHECK: stored cells depend on [-2, 7) of a field, and tile.load reads a field of [-1, 9)
tile.kernel @cells_of_no_field(%src: !stencil.field<[-1,9]xf64>, %dst: !stencil.field<[-1,9]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0], [8]> {
  %u0 = tile.load %src : !tile.queue<f64, lag 0>
  %u1 = tile.apply @cell(%u0[-1], %u0[0]) : !tile.queue<f64, lag 0>
  %u2 = tile.apply @cell(%u1[-1], %u1[-1]) : !tile.queue<f64, lag 0>
  tile.store %u2 to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]xf64>
}

// -----

tile.kernel @store_type(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  // CHECK: queue of f64 stored to a field of f32
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf32>
}

// -----

func.func @copy(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,9]xf64>) {
  // CHECK: copy from !stencil.field<[0,8]xf64> to !stencil.field<[0,9]xf64>
  tile.copy %A to %B : !stencil.field<[0,8]xf64>, !stencil.field<[0,9]xf64>
  func.return
}

// -----

func.func @load_alone(%A: !stencil.field<[0,8]xf64>) {
  // CHECK: 'tile.load' expects parent op 'tile.kernel'
  %u = tile.load %A : !tile.queue<f64, lag 0>
  func.return
}

// -----

tile.kernel @undefined() roles [] steps 1 stream 0 bounds <[0], [8]> {
  // CHECK: %u is not defined above
  %v = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>
}

// -----

tile.kernel @axes_of_at(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]> {
  // CHECK: at has 2 axes and the domain 1
  %u = tile.load %src at [0, 1] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

tile.kernel @at_of_a_halo(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]> {
  // CHECK: a load with at has a data field, no halo, and none ahead
  %u = tile.load halo %src at [1] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

tile.kernel @at_in_registers(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]> {
  // CHECK: a load with at lives in memory, got #tile.registers<depth 0, period 1>
  %u = tile.load %src at [1] home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

tile.kernel @at_stored(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]> {
  // CHECK: a load with at or along is read by tile.apply, got tile.store
  %u = tile.load %src at [1] : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

tile.kernel @at_tapped_beside(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]> {
  // CHECK: a load with at is tapped at the own cell
  %u = tile.load %src at [1] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[1]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
tile.kernel @along_of_no_axes(%src: !field, %w: !stencil.field<[0,8]xf64>, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>] steps 1
    bounds <[0, 0], [8, 8]> {
  // CHECK: along names increasing axes of the 2 of the domain, got [2]
  %u = tile.load %w along [2] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
tile.kernel @along_other_axes(%src: !field, %w: !stencil.field<[0,8]xf64>, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>] steps 1
    bounds <[0, 0], [8, 8]> {
  // CHECK: a load along 2 axes of a field of rank 1
  %u = tile.load %w along [0, 1] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
tile.kernel @along_of_a_halo(%src: !field, %w: !stencil.field<[0,8]xf64>, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>] steps 1
    bounds <[0, 0], [8, 8]> {
  // CHECK: a load with along has a data field, no halo, and none ahead
  %u = tile.load halo %w along [0] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
tile.kernel @along_in_registers(%src: !field, %w: !stencil.field<[0,8]xf64>, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>] steps 1
    bounds <[0, 0], [8, 8]> {
  // CHECK: a load with along lives in memory, got #tile.registers<depth 0, period 1>
  %u = tile.load %w along [0] home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
tile.kernel @along_outside(%src: !field, %w: !stencil.field<[0,8]xf64>, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<capture 0>, #tile.role<target 0>] steps 1
    bounds <[0, 0], [8, 8]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %n = tile.load %w along [0] : !tile.queue<f64, lag 0>
  // CHECK: a load with at or along is tapped, and read by no else
  %v = tile.apply @cell(%u[0, 0]) else %n : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

!field = !stencil.field<[0,8]x[0,8]xf64>
tile.kernel @along_too_short(%w: !stencil.field<[0,7]xf64>, %dst: !field)
    roles [#tile.role<capture 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [8, 8]> {
  // CHECK: stored cells depend on [0, 8) of a field, and tile.load reads a field of [0, 7)
  %n = tile.load %w along [1] : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%n[0, 0]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

func.func @roles_of_a_launch(%A: !stencil.field<[0,8]xf64>) {
  // CHECK: 1 arguments for the 2 roles of the kernel
  tile.launch @k(%A) with #tile.launch<steps 1, roles [#tile.role<source 0>, #tile.role<target 0>],
    grid 1, block 32, shared_bytes 0, occupancy 1> : !stencil.field<[0,8]xf64>
  func.return
}

// -----

// CHECK: a boundary of 2 sides for bounds of rank 2
tile.kernel @sides_of_another_rank() roles [] steps 1 stream 0 bounds <[0, 0], [8, 8]> beyond #temporal.boundary<mirror, mirror> {
}

// -----

// CHECK: an axis goes on at both sides or at none, got keep and mirror
tile.kernel @one_side_goes_on() roles [] steps 1 bounds <[0], [8]> beyond #temporal.boundary<keep, mirror> {
}

// -----

func.func @number_of_another_type(%f: memref<9xf64>, %t: index) {
  // CHECK: a number of memref<9xf64> as f32
  %v = tile.step_value %f at %t plus 0 : memref<9xf64> -> f32
  func.return
}

// -----

// CHECK: a load that lives in copies has no halo, and is fetched one or more steps early
tile.kernel @copies_in_time(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<capture 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0], [8]> {
  %u = tile.load %src ahead 0 home #tile.copies<slots 2> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}

// -----

// CHECK: a tap 3 cells away along axis 1 of 3 mirrored cells
tile.kernel @tap_beyond_the_image(%src: !stencil.field<[0,8]x[0,3]xf64>, %dst: !stencil.field<[0,8]x[0,3]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 3]> beyond #temporal.boundary<mirror> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, -3]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,3]xf64>
}
