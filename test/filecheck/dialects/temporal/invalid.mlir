// RUN: xdsl-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// Refusals by the verifiers of the temporal dialect. Each sentence stands above its operation, with the
// found and the expected value.

func.func @rotation_is_a_permutation(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>) {
  // CHECK: rotate must be a permutation of 0 to 1, got [0, 0]
  temporal.loop %n (%a = %A, %b = %B) rotate [0, 0] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @rotation_is_complete(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>) {
  // CHECK: rotate must be a permutation of 0 to 1, got [1, 0, 2]
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0, 2] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @one_buffer_twice(%n: index, %A: !stencil.field<[0,4]xf64>) {
  // CHECK: every buffer of the loop must be a different value
  temporal.loop %n (%a = %A, %b = %A) rotate [1, 0] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @argument_of_another_type(%n: index, %A: !stencil.field<[0,4]xf64>) {
  // CHECK: arguments and results must have the types of the buffers
  %a = "temporal.loop"(%n, %A) <{rotate = array<i64: 0>}> ({
  ^bb0(%b: !stencil.field<[0,5]xf64>):
  }) : (index, !stencil.field<[0,4]xf64>) -> !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @no_results(%n: index, %A: !stencil.field<[0,4]xf64>) {
  // CHECK: arguments and results must have the types of the buffers
  "temporal.loop"(%n, %A) <{rotate = array<i64: 0>}> ({
  ^bb0(%a: !stencil.field<[0,4]xf64>):
  }) : (index, !stencil.field<[0,4]xf64>) -> ()
  func.return
}

// -----

func.func @rotated_types(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf32>) {
  // CHECK: rotation gives argument 0 of type !stencil.field<[0,4]xf64> a buffer of type !stencil.field<[0,4]xf32>
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf32>
  func.return
}

// -----

func.func @depth_zero(%n: index, %A: !stencil.field<[0,4]xf64>) {
  // CHECK: depths must be from 1 to 256, got [2, 0]
  temporal.loop %n (%a = %A) rotate [0] depths [2, 0] {
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @foreign_operation(%n: index, %A: !stencil.field<[0,4]xf64>) {
  // CHECK: a time loop holds temporal.update only, got arith.constant
  temporal.loop %n (%a = %A) rotate [0] {
    %c = arith.constant 1 : i32
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @half_a_tap(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: taps hold 3 integers, not a multiple of rank + 1 = 2
    "temporal.update"(%a, %a) <{cell = @cell, taps = array<i64: 0, 0, 0>, box = #stencil.bounds<[0], [4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (!stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>) -> ()
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @tap_of_nothing(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: tap reads operand 1 of 1
    "temporal.update"(%a, %a) <{cell = @cell, taps = array<i64: 1, 0>, box = #stencil.bounds<[0], [4]>, operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (!stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>) -> ()
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @lower_rank(%n: index, %A: !stencil.field<[0,4]x[0,4]xf64>, %K: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: field of rank 1 in an update of rank 2
    temporal.update %a = @cell(%K[0, 0]) in <[0, 0], [4, 4]>
  } : !stencil.field<[0,4]x[0,4]xf64>
  func.return
}

// -----

func.func @unknown_bounds(%n: index, %A: !stencil.field<[0,4]xf64>, %K: !stencil.field<?xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: expected a field with static bounds, got !stencil.field<?xf64>
    temporal.update %a = @cell(%K[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @target_twice(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: an update writes each target once
    temporal.update %a, %a = @cell(%a[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @index_axis(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: index axis 1 of a domain of rank 1
    temporal.update %a = @cell() indices [1] in <[0], [4]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @read_outside(%n: index, %A: !stencil.field<[-1,9]x[-1,9]xf64>, %B: !stencil.field<[-1,9]x[-1,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: box and offset [0, 2] reach [2, 10) along axis 1, outside the field's [-1, 9)
    temporal.update %b = @cell(%a[0, 2]) in <[0, 0], [8, 8]>
  } : !stencil.field<[-1,9]x[-1,9]xf64>, !stencil.field<[-1,9]x[-1,9]xf64>
  func.return
}

// -----

func.func @write_outside(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: box and offset [0] reach [-1, 4) along axis 0, outside the field's [0, 4)
    temporal.update %a = @cell() in <[-1], [4]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @in_place_with_offset(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: an update may read its own target at offset 0 only, got [1]
    temporal.update %a = @cell(%a[1]) in <[0], [3]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

llvm.func @cell()

func.func @cell_is_a_function(%n: index, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: expected a func.func named @cell, got llvm.func
    temporal.update %a = @cell(%a[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func private @cell(%u: f64) -> f32

func.func @cell_type(%n: index, %dt: f64, %A: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    // CHECK: cell @cell has type (f64) -> f32, expected (f64, f64, index) -> f64
    temporal.update %a = @cell(%a[0]) scalars(%dt) indices [0] in <[0], [4]>
  } : !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @update_alone(%A: !stencil.field<[0,4]xf64>) {
  // CHECK: 'temporal.update' expects parent op 'temporal.loop'
  temporal.update %A = @cell(%A[0]) in <[0], [4]>
  func.return
}

// -----

func.func @undefined_buffer(%n: index, %A: !stencil.field<[0,4]xf64>) {
  // CHECK: %B is not defined above
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

func.func @spread_along_too_few(%w: !stencil.field<[0,8]xf64>) {
  // CHECK: axes must be 1 increasing numbers, got [0, 1]
  %wide = temporal.broadcast %w axes [0, 1] : !stencil.field<[0,8]xf64> to !stencil.field<[0,8]x[0,4]xf64>
  func.return
}

// -----

func.func @spread_along_another(%w: !stencil.field<[0,8]xf64>) {
  // CHECK: axes [2] of a field of rank 2
  %wide = temporal.broadcast %w axes [2] : !stencil.field<[0,8]xf64> to !stencil.field<[0,8]x[0,4]xf64>
  func.return
}

// -----

func.func @spread_to_another_type(%w: !stencil.field<[0,8]xf64>) {
  // CHECK: source and result must have cells of one type
  %wide = temporal.broadcast %w axes [0] : !stencil.field<[0,8]xf64> to !stencil.field<[0,8]x[0,4]xf32>
  func.return
}

// -----

func.func @spread_too_far(%w: !stencil.field<[0,8]xf64>) {
  // CHECK: the result covers [0, 9) along axis 0, outside the source's [0, 8)
  %wide = temporal.broadcast %w axes [0] : !stencil.field<[0,8]xf64> to !stencil.field<[0,9]x[0,4]xf64>
  func.return
}

// -----

func.func @scratch_of_unknown_extent() {
  // CHECK: expected a field with static bounds, got !stencil.field<?xf64>
  %mid = temporal.scratch : !stencil.field<?xf64>
  func.return
}

// -----

func.func @place_of_too_few(%A: !stencil.field<[0,8]x[0,4]xf64>, %B: !stencil.field<[0,8]xf64>, %i: !stencil.field<[0,8]xi64>) {
  // CHECK: a place in a field of rank 2 has 2 coordinates, got 1
  temporal.gather %B = %A at (%i) : !stencil.field<[0,8]xf64> from !stencil.field<[0,8]x[0,4]xf64>
  func.return
}

// -----

func.func @places_elsewhere(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>, %i: !stencil.field<[0,9]xi64>) {
  // CHECK: place fields hold i64 in the bounds of the target, got !stencil.field<[0,9]xi64>
  temporal.gather %B = %A at (%i) : !stencil.field<[0,8]xf64> from !stencil.field<[0,8]xf64>
  func.return
}

// -----

func.func @gathered_as_another_type(%A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf32>, %i: !stencil.field<[0,8]xi64>) {
  // CHECK: source and target must have cells of one type
  temporal.gather %B = %A at (%i) : !stencil.field<[0,8]xf32> from !stencil.field<[0,8]xf64>
  func.return
}

// -----

// CHECK: a boundary is keep, periodic, mirror, reflect, clamp or value, got open
"test.op"() {outside = #temporal.boundary<open>} : () -> ()

// -----

// CHECK: a boundary has one kind, or two for each axis, got 3
"test.op"() {outside = #temporal.boundary<keep, keep, mirror>} : () -> ()

// -----

// CHECK: an axis is periodic on both sides or on none, got periodic and keep
"test.op"() {outside = #temporal.boundary<periodic, keep>} : () -> ()

// -----

func.func @boundary_of_another_rank(%n: index, %A: !stencil.field<[-1,9]xf64>, %B: !stencil.field<[-1,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: a boundary of 4 sides for a box of rank 1
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [8]> outside #temporal.boundary<keep, keep, mirror, mirror>
  } : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  func.return
}

// -----

func.func @more_cells_outside_than_inside(%n: index, %A: !stencil.field<[-2,9]xf64>, %B: !stencil.field<[-2,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: reflect fills at most 1 cells below the box along axis 0, and the field has 2
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [2]> outside #temporal.boundary<reflect, keep>
  } : !stencil.field<[-2,9]xf64>, !stencil.field<[-2,9]xf64>
  func.return
}

// -----

func.func @inner_without_boundary(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: inner fields end with the box where they go on, and no field goes on
    temporal.update %b = @average(%a[-1], %a[1]) in <[1], [7]> inner
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

func.func @a_kept_side_is_read(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: box and offset [1] reach [1, 9) along axis 0, outside the field's [0, 8)
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [8]> beyond [#temporal.boundary<mirror, keep>]
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

func.func @boundaries_of_two_sources(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: 2 boundaries for 1 sources
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [8]> beyond [#temporal.boundary<mirror>, #temporal.boundary<mirror>]
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

func.func @sides_of_another_rank(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: a boundary of 4 sides for a field of rank 1
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [8]> beyond [#temporal.boundary<keep, keep, mirror, mirror>]
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

func.func @one_cell_is_not_reflected(%n: index, %A: !stencil.field<[0,1]xf64>, %B: !stencil.field<[0,1]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: reflect needs two cells along axis 0, and the field has one
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [1]> beyond [#temporal.boundary<reflect>]
  } : !stencil.field<[0,1]xf64>, !stencil.field<[0,1]xf64>
  func.return
}

// -----

// CHECK: a schedule is written #tile.schedule<occupancy 1>, with the parts that differ from the default ones, got {storage = "shared"}
func.func @schedule_of_words(%n: index, %A: !stencil.field<[-1,9]xf64>, %B: !stencil.field<[-1,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] schedule {storage = "shared"} {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [8]>
  } : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  func.return
}

// -----

func.func @series_of_two_axes(%n: index, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>, %f: memref<3x?xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: a series has one axis, got memref<3x?xf64>
    temporal.update %b = @plus(%a[0]) scalars(%f) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

// CHECK: the faces along axis 1 must be two or more increasing places, got [0, 8, 8]
func.func private @empty_part() attributes {part = #temporal.part<rank 0 of [0, 4] x [0, 8, 8], ghosts [0, 0] x [1, 1], steps 1>}

// -----

// CHECK: periodic axis 1 of a domain of rank 1
func.func private @periodic_axis() attributes {part = #temporal.part<rank 0 of [0, 4], periodic [1], ghosts [0, 0], steps 1>}

// -----

// CHECK: a rank of 0 to 1, got 2
func.func private @no_such_rank() attributes {part = #temporal.part<rank 2 of [0, 4, 8], ghosts [1, 1], steps 1>}

// -----

// CHECK: ghosts are two numbers of 0 or more for each of 1 axes, got {{\[\[}}1, -1]]
func.func private @negative_ghosts() attributes {part = #temporal.part<rank 0 of [0, 4, 8], ghosts [1, -1], steps 1>}

// -----

// CHECK: ghosts last for a step or more, got 0
func.func private @no_step() attributes {part = #temporal.part<rank 0 of [0, 4, 8], ghosts [1, 1], steps 0>}

// -----

func.func @reduced_outside(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: the box covers [-1, 8) along axis 0, outside the field's [0, 8)
  %r = temporal.reduce total %u in <[-1, 0], [8, 4]> : !stencil.field<[0,8]x[0,4]xf64> -> f64
  func.return
}

// -----

func.func @reduced_along_too_few(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: box of rank 1 in a field of rank 2
  %r = temporal.reduce total %u in <[0], [8]> : !stencil.field<[0,8]x[0,4]xf64> -> f64
  func.return
}

// -----

func.func @reduced_to_another_type(%u: !stencil.field<[0,8]xf64>) {
  // CHECK: the result has the type of the cells, f64, got f32
  %r = temporal.reduce total %u in <[0], [8]> : !stencil.field<[0,8]xf64> -> f32
  func.return
}

// -----

func.func @reduced_places(%u: !stencil.field<[0,8]xi64>) {
  // CHECK: a reduction takes cells of f32 or f64, got i64
  %r = temporal.reduce total %u in <[0], [8]> : !stencil.field<[0,8]xi64> -> i64
  func.return
}

// -----

func.func @rounded_to_f32(%a: f32) {
  // CHECK: a number is rounded to a type of memory (f16 or bf16), got f32
  %b = temporal.round %a as f32 : f32
  func.return
}

// -----

// CHECK: 0.1 is no number of f16; write 0.0999755859375
func.func private @same(f32) -> f32
func.func @beyond(%n: index, %A: !stencil.field<[0,8]xf16>, %B: !stencil.field<[0,8]xf16>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @same(%a[-1]) in <[0], [8]> beyond [#temporal.boundary<value 0.1>]
  } : !stencil.field<[0,8]xf16>, !stencil.field<[0,8]xf16>
  func.return
}

// -----

func.func @swept_beside(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: a sweep along axis 0 reads its own targets on the line of the cell, got [-1, 1]
  temporal.sweep %u = @cell(%u[-1, 1]) along 0 ascending in <[1, 0], [8, 3]>
  func.return
}

// -----

func.func @swept_outside(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: box and offset [-1, 0] reach [-1, 7) along axis 0, outside the field's [0, 8)
  temporal.sweep %u = @cell(%u[-1, 0]) along 0 ascending in <[0, 0], [8, 4]>
  func.return
}

// -----

func.func @sweep_in_parts_of_lines(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: a sweep in parts has one axis and one target, got 2 axes and 1 targets
  temporal.sweep %u = @cell(%u[-1, 0]) along 0 ascending parts in <[1, 0], [8, 4]>
  func.return
}

// -----

func.func @sweep_in_parts_two_places_before(%u: !stencil.field<[0,8]xf64>) {
  // CHECK: a sweep in parts reads its result of the place before once, and no other place of its target
  temporal.sweep %u = @cell(%u[-2]) along 0 ascending parts in <[2], [8]>
  func.return
}

// -----

func.func @swept_along_none(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: axis 2 of a sweep of rank 2
  temporal.sweep %u = @cell(%u[-1, 0]) along 2 ascending in <[1, 0], [8, 4]>
  func.return
}

// -----

func.func @swept_of_another_rank(%u: !stencil.field<[0,8]x[0,4]xf64>, %v: !stencil.field<[0,8]xf64>) {
  // CHECK: field of rank 1 in a sweep of rank 2
  temporal.sweep %u = @cell(%v[-1, 0]) along 0 ascending in <[1, 0], [8, 4]>
  func.return
}

// -----

func.func @swept_twice(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: a sweep writes each target once
  temporal.sweep %u, %u = @cell(%u[-1, 0]) along 0 ascending in <[1, 0], [8, 4]>
  func.return
}

// -----

func.func @swept_index(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  // CHECK: index axis 2 of a sweep of rank 2
  temporal.sweep %u = @cell(%u[-1, 0]) indices [2] along 0 ascending in <[1, 0], [8, 4]>
  func.return
}

// -----

// CHECK: expected a func.func named @table, got llvm.func
llvm.func @table()
func.func @swept_by_no_function(%u: !stencil.field<[0,8]x[0,4]xf64>) {
  temporal.sweep %u = @table(%u[-1, 0]) along 0 ascending in <[1, 0], [8, 4]>
  func.return
}

// -----

// CHECK: cell @cell has type (f64) -> f64, expected (f64, f64) -> f64
func.func private @cell(f64) -> f64
func.func @swept_by_another_cell(%u: !stencil.field<[0,8]x[0,4]xf64>, %k: f64) {
  temporal.sweep %u = @cell(%u[-1, 0]) scalars(%k) along 0 ascending in <[1, 0], [8, 4]>
  func.return
}

// -----

func.func @a_list_of_one_axis(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,5]x[0,5]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: a field of one axis, got !stencil.field<[0,5]x[0,5]xi32>
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  func.return
}

// -----

func.func @a_list_of_integers(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,25]xf64>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: a field of i32 from cell 0 on, got !stencil.field<[0,25]xf64>
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  func.return
}

// -----

func.func @a_list_of_a_size(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,36]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: a list of 37 integers, got 36
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  func.return
}

// -----

func.func @points_of_floats(%t: i64, %A: !stencil.field<[-1,65]xi32>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: points of a field of f32 or f64, got i32
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  func.return
}

// -----

func.func @rows_of_a_table(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: a table of rows of 5 numbers, got 32
  temporal.inject %A at %l weights %w table %f columns 5 step %t in <[0], [64]>
  func.return
}

// -----

func.func @a_large_table(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,2147483648]xf64>) {
  // CHECK: lists and tables of at most 2147483647 numbers
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  func.return
}

// -----

func.func @columns_of_samples(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: samples have a column for each of 8 entries, got 2
  temporal.sample %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  func.return
}

// -----

func.func @the_box_of_points(%t: i64, %A: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  // CHECK: box of rank 2 in a field of rank 1
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0, 0], [64, 64]>
  func.return
}

// -----

func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @fields_of_points(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: 1 uses of points take the step and 3 fields each, got 3 operands
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w) uses [#temporal.points<inject 0 columns 2 of <[-1], [65]>>]
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}

// -----

func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @the_target_of_points(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: points of target 1, and there are 1
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w, %f) uses [#temporal.points<inject 1 columns 2 of <[-1], [65]>>]
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}

// -----

func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @cells_of_points(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: points of a field of #stencil.bounds<[-1], [65]>, got #stencil.bounds<[0], [66]>
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w, %f) uses [#temporal.points<inject 0 columns 2 of <[0], [66]>>]
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}

// -----

func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @rows_of_points(%n: index, %rows: memref<?xf64>, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>, %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    // CHECK: the step's number is a series of i64, got memref<?xf64>
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w, %f) uses [#temporal.points<inject 0 columns 2 of <[-1], [65]>>]
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}

// -----

func.func @functions_of_a_run(%n: index) {
  // CHECK: functions lists, places, values, steps, after, got 1
  temporal.point_run [@a] [] rotate [] (%n) : index
  func.return
}
