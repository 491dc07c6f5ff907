// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt | filecheck %s
// RUN: xdsl-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// Every operation of the temporal dialect prints, and parses back, in its own and in generic form.
// Parts that are absent are not printed.

// CHECK:      func.func private @average
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK:      func.func private @ramp
func.func private @ramp(%u: f64, %k: f64, %dt: f64, %y: index, %x: index) -> (f64, f64) {
  func.return %u, %k : f64, f64
}

// CHECK-LABEL: func.func @plain
func.func @plain(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
  // CHECK:      %last, %{{.*}} = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
  // CHECK-NEXT:   temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]>
  // CHECK-NEXT: } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  %last, %before = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  // GENERIC:      "temporal.loop"(%n, %A, %B) <{rotate = array<i64: 1, 0>}> ({
  // GENERIC-NEXT: ^{{.*}}(%a: !stencil.field<[-1,65]xf64>, %b: !stencil.field<[-1,65]xf64>):
  // GENERIC-NEXT:   "temporal.update"(%b, %a)
  // GENERIC-SAME:     cell = @average, taps = array<i64: 0, -1, 0, 1>, box = #stencil.bounds<[0], [64]>
  func.return
}

// CHECK-LABEL: func.func @everything
func.func @everything(%n: index, %dt: f64, %K: !stencil.field<[0,8]x[0,8]xf64>,
    %A: !stencil.field<[-1,9]x[-1,9]xf64>, %B: !stencil.field<[-1,9]x[-1,9]xf64>) {
  // CHECK:      temporal.loop %n (%a = %A, %b = %B) rotate [0, 1] common_halos depths [4, 2, 1]
  // CHECK-SAME:   schedule #tile.schedule<cells [8], guards all>
  // CHECK-SAME:   inside #tile.schedule<ahead 2>
  // CHECK-SAME:   kernels [@heat_d4, @heat_d2, @heat_step]
  // CHECK-SAME:   attributes {note = "kept"} {
  // CHECK-NEXT:   temporal.update %a, %b = @ramp(%a[0, 0], %K[0, 0]) scalars(%dt) indices [0, 1] in <[0, 0], [8, 8]> attributes {note = "kept"}
  // CHECK-NEXT: }
  temporal.loop %n (%a = %A, %b = %B) rotate [0, 1] common_halos depths [4, 2, 1]
      schedule #tile.schedule<cells [8], guards all> inside #tile.schedule<ahead 2>
      kernels [@heat_d4, @heat_d2, @heat_step] attributes {note = "kept"} {
    temporal.update %a, %b = @ramp(%a[0, 0], %K[0, 0]) scalars(%dt) indices [0, 1]
      in <[0, 0], [8, 8]> attributes {note = "kept"}
  } : !stencil.field<[-1,9]x[-1,9]xf64>, !stencil.field<[-1,9]x[-1,9]xf64>
  func.return
}

// A boundary for each source continues the field beyond its cells.
// CHECK-LABEL: func.func @continued
// CHECK:         temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> beyond [#temporal.boundary<mirror, value 1.0>]
func.func @continued(%n: index, %A: !stencil.field<[0,64]xf64>, %B: !stencil.field<[0,64]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> beyond [#temporal.boundary<mirror, value 1.0>]
  } : !stencil.field<[0,64]xf64>, !stencil.field<[0,64]xf64>
  func.return
}

// Fields end with the box along axes that go on: the cells outside are not read.
// CHECK-LABEL: func.func @ends_with_the_box
// CHECK:         temporal.update %b = @average(%a[-1], %a[1]) in <[1], [63]> beyond [#temporal.boundary<periodic>] inner
func.func @ends_with_the_box(%n: index, %A: !stencil.field<[0,64]xf64>, %B: !stencil.field<[0,64]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[1], [63]> beyond [#temporal.boundary<periodic>] inner
  } : !stencil.field<[0,64]xf64>, !stencil.field<[0,64]xf64>
  func.return
}

// A kind of a boundary is an attribute, too.
// CHECK-LABEL: func.func private @kinds
// CHECK-SAME:    kinds = [#temporal<boundary_kind keep>, #temporal<boundary_kind periodic>, #temporal<boundary_kind mirror>, #temporal<boundary_kind reflect>, #temporal<boundary_kind clamp>]
func.func private @kinds() attributes {kinds = [#temporal<boundary_kind keep>, #temporal<boundary_kind periodic>, #temporal<boundary_kind mirror>, #temporal<boundary_kind reflect>, #temporal<boundary_kind clamp>]}

// Boundaries: one kind for all sides, or two an axis. Without `outside` all cells outside the box are kept.
// CHECK-LABEL: func.func @boundaries
func.func @boundaries(%n: index, %A: !stencil.field<[-2,66]xf64>, %B: !stencil.field<[-2,66]xf64>) {
  // CHECK:      temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<periodic>
  // CHECK-NEXT: temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<keep>
  // CHECK-NEXT: temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<mirror, value -0.5> attributes {note = "kept"}
  // CHECK-NEXT: temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<reflect, clamp>
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<periodic>
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<keep>
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<mirror, value -0.5> attributes {note = "kept"}
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> outside #temporal.boundary<reflect, clamp>
  } : !stencil.field<[-2,66]xf64>, !stencil.field<[-2,66]xf64>
  func.return
}

// A loop without buffers computes nothing, and is legal.
// CHECK-LABEL: func.func @empty
func.func @empty(%n: index) {
  // CHECK:      temporal.loop %n () rotate [] {
  // CHECK-NEXT: }
  temporal.loop %n () rotate [] {
  }
  func.return
}

// A sweep, over a field of the function's own and one that is spread along an axis.
// CHECK-LABEL: func.func @sweep
func.func @sweep(%one: index, %w: !stencil.field<[-1,9]xf64>) {
  // CHECK:      %mid = temporal.scratch : !stencil.field<[0,8]x[0,4]xf64>
  // CHECK-NEXT: %wide = temporal.broadcast %w axes [0] : !stencil.field<[-1,9]xf64> to !stencil.field<[0,8]x[0,4]xf64>
  // CHECK-NEXT: temporal.loop %one (%m = %mid) rotate [0] sweep depths [1] {
  // GENERIC:    "temporal.broadcast"(%w) <{axes = array<i64: 0>}>
  %mid = temporal.scratch : !stencil.field<[0,8]x[0,4]xf64>
  %wide = temporal.broadcast %w axes [0] : !stencil.field<[-1,9]xf64> to !stencil.field<[0,8]x[0,4]xf64>
  %r = temporal.loop %one (%m = %mid) rotate [0] sweep depths [1] {
    temporal.update %m = @average(%wide[0, 0], %wide[0, 0]) in <[0, 0], [8, 4]>
  } : !stencil.field<[0,8]x[0,4]xf64>
  func.return
}

// Cells of a field at places that other fields hold.
// CHECK-LABEL: func.func @gathered
func.func @gathered(%A: !stencil.field<[-1,9]x[0,4]xf32>, %i: !stencil.field<[0,8]xi64>, %j: !stencil.field<[0,8]xi64>) {
  // CHECK:      temporal.gather %near = %A at (%i, %j) : !stencil.field<[0,8]xf32> from !stencil.field<[-1,9]x[0,4]xf32>
  // GENERIC:    "temporal.gather"(%near, %A, %i, %j)
  %near = temporal.scratch : !stencil.field<[0,8]xf32>
  temporal.gather %near = %A at (%i, %j) : !stencil.field<[0,8]xf32> from !stencil.field<[-1,9]x[0,4]xf32>
  func.return
}

// CHECK-LABEL: func.func private @reductions()
// CHECK-SAME:    kinds = [#temporal<reduction total>, #temporal<reduction maximum>, #temporal<reduction minimum>]
func.func private @reductions() attributes {kinds = [#temporal<reduction total>, #temporal<reduction maximum>, #temporal<reduction minimum>]}

// A number of all cells of a box.
// CHECK-LABEL: func.func @reduced
func.func @reduced(%u: !stencil.field<[-1,9]x[0,4]xf32>) {
  // CHECK:      %r = temporal.reduce maximum %u in <[0, 0], [8, 4]> : !stencil.field<[-1,9]x[0,4]xf32> -> f32
  // GENERIC:    "temporal.reduce"(%u) <{kind = #temporal<reduction maximum>, box = #stencil.bounds<[0, 0], [8, 4]>}>
  %r = temporal.reduce maximum %u in <[0, 0], [8, 4]> : !stencil.field<[-1,9]x[0,4]xf32> -> f32
  // CHECK-NEXT: %s = temporal.reduce total %u in <[-1, 0], [9, 4]> : !stencil.field<[-1,9]x[0,4]xf32> -> f32
  %s = temporal.reduce total %u in <[-1, 0], [9, 4]> : !stencil.field<[-1,9]x[0,4]xf32> -> f32
  func.return
}

// A memref of one axis among the scalars has a number for each step.
// CHECK-LABEL: func.func @series
// CHECK:         temporal.update %b = @plus(%a[0]) scalars(%f) in <[0], [64]>
func.func private @plus(%l: f64, %f: f64) -> f64 {
  %s = arith.addf %l, %f : f64
  func.return %s : f64
}
func.func @series(%n: index, %A: !stencil.field<[0,64]xf64>, %B: !stencil.field<[0,64]xf64>, %f: memref<?xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @plus(%a[0]) scalars(%f) in <[0], [64]>
  } : !stencil.field<[0,64]xf64>, !stencil.field<[0,64]xf64>
  func.return
}

// The fields of a loop hold a part of a domain, for one of several ranks.
// CHECK-LABEL: func.func @part
// CHECK:         rotate [1, 0] part #temporal.part<rank 1 of [0, 64, 128] x [0, 64], ghosts [2, 2] x [0, 0], steps 2> {
// CHECK:         rotate [1, 0] part #temporal.part<rank 0 of [0, 64], periodic [0], ghosts [1, 1], steps 1> depths [1] {
func.func @part(%n: index, %A: !stencil.field<[62,129]x[-1,65]xf64>, %B: !stencil.field<[62,129]x[-1,65]xf64>, %C: !stencil.field<[-1,65]xf64>, %D: !stencil.field<[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] part #temporal.part<rank 1 of [0, 64, 128] x [0, 64], ghosts [2, 2] x [0, 0], steps 2> {
    temporal.update %b = @average(%a[-1, 0], %a[1, 0]) in <[63, 0], [128, 64]>
  } : !stencil.field<[62,129]x[-1,65]xf64>, !stencil.field<[62,129]x[-1,65]xf64>
  temporal.loop %n (%c = %C, %d = %D) rotate [1, 0] part #temporal.part<rank 0 of [0, 64], periodic [0], ghosts [1, 1], steps 1> depths [1] {
    temporal.update %d = @average(%c[-1], %c[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}

// A number is rounded to the type in which a field stores it; cells compute with f32.
// CHECK-LABEL: func.func private @halved
// CHECK-NEXT:    %b = temporal.round %a as f16 : f32
// CHECK-LABEL: func.func @stored
// CHECK:         temporal.update %b = @halved(%a[0]) in <[0], [64]>
func.func private @halved(%a: f32) -> f32 {
  %b = temporal.round %a as f16 : f32
  func.return %b : f32
}
func.func @stored(%n: index, %A: !stencil.field<[-1,65]xf16>, %B: !stencil.field<[-1,65]xf16>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @halved(%a[0]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf16>, !stencil.field<[-1,65]xf16>
  func.return
}

// A sweep along an axis reads its own targets on the line of the cell.
// CHECK-LABEL: func.func private @directions
// CHECK-SAME:    order = #temporal<direction descending>
func.func private @directions() attributes {order = #temporal<direction descending>}

// CHECK-LABEL: func.func @swept
// CHECK-NEXT:    temporal.sweep %a = @average(%a[-1, 0], %b[0, 1]) along 0 ascending in <[1, 0], [8, 7]>
// CHECK-NEXT:    temporal.sweep %a, %b = @ramp(%a[0, 1], %b[0, 0]) scalars(%dt) indices [0, 1] along 1 descending in <[0, 0], [8, 7]> attributes {note = "kept"}
// GENERIC:         "temporal.sweep"(%a, %a, %b) <{cell = @average, taps = array<i64: 0, -1, 0, 1, 0, 1>, axis = #builtin.int<0>, direction = #temporal<direction ascending>
func.func @swept(%dt: f64, %a: !stencil.field<[0,8]x[0,8]xf64>, %b: !stencil.field<[0,8]x[0,8]xf64>) {
  temporal.sweep %a = @average(%a[-1, 0], %b[0, 1]) along 0 ascending in <[1, 0], [8, 7]>
  temporal.sweep %a, %b = @ramp(%a[0, 1], %b[0, 0]) scalars(%dt) indices [0, 1] along 1 descending in <[0, 0], [8, 7]> attributes {note = "kept"}
  func.return
}

// A time loop of the host may run as kernels with lists of points.
// CHECK-LABEL: func.func private @lists_of_a_loop
// CHECK-SAME:    lists = [#temporal.point_list<inject 1 later 0 in <[0], [64]> of <[-1], [65]>>]
func.func private @lists_of_a_loop() attributes {lists = [#temporal.point_list<inject 1 later 0 in <[0], [64]> of <[-1], [65]>>]}

// CHECK-LABEL: func.func @point_run
// CHECK:         temporal.point_run [@uses_of_points, @uses_of_points, @uses_of_points, @uses_of_points, @uses_of_points]
// CHECK-SAME:      [#temporal.point_list<sample 0 later 2 in <[0], [64]> of <[-1], [65]>>] rotate [1, 0](%n, %m) : index, memref<3xf64>
// CHECK-NEXT:    temporal.point_run [@a, @a, @a, @a, @a] [] rotate []() :
func.func @point_run(%n: index, %m: memref<3xf64>) {
  temporal.point_run [@uses_of_points, @uses_of_points, @uses_of_points, @uses_of_points, @uses_of_points]
    [#temporal.point_list<sample 0 later 2 in <[0], [64]> of <[-1], [65]>>] rotate [1, 0] (%n, %m) : index, memref<3xf64>
  temporal.point_run [@a, @a, @a, @a, @a] [] rotate [] () :
  func.return
}

// A long line goes on in parts.
// CHECK-LABEL: func.func @in_parts
// CHECK-NEXT:    temporal.sweep %a = @average(%a[1], %b[0]) along 0 descending parts in <[0], [7]>
func.func @in_parts(%a: !stencil.field<[0,8]xf64>, %b: !stencil.field<[0,8]xf64>) {
  temporal.sweep %a = @average(%a[1], %b[0]) along 0 descending parts in <[0], [7]>
  func.return
}

// Values are added at points, and cells noted, by the host and by updates.
// CHECK-LABEL: func.func private @uses_of_points
// CHECK-SAME:    kinds = [#temporal<point_kind inject>, #temporal<point_kind sample>]
func.func private @uses_of_points() attributes {kinds = [#temporal<point_kind inject>, #temporal<point_kind sample>]}

// CHECK-LABEL: func.func @points
// CHECK:         temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
// CHECK-NEXT:    temporal.sample %A at %l weights %w table %o columns 8 step %t in <[0], [64]>
// CHECK:         temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w, %f, %l, %w, %o)
// CHECK-SAME:      uses [#temporal.points<inject 0 columns 2 of <[-1], [65]>>, #temporal.points<sample 0 columns 8 of <[-1], [65]>>]
func.func @points(%n: index, %t: i64, %rows: memref<?xi64>, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>,
    %l: !stencil.field<[0,37]xi32>, %w: !stencil.field<[0,8]xf64>, %f: !stencil.field<[0,32]xf64>, %o: !stencil.field<[0,128]xf64>) {
  temporal.inject %A at %l weights %w table %f columns 2 step %t in <[0], [64]>
  temporal.sample %A at %l weights %w table %o columns 8 step %t in <[0], [64]>
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> points(%rows, %l, %w, %f, %l, %w, %o)
      uses [#temporal.points<inject 0 columns 2 of <[-1], [65]>>, #temporal.points<sample 0 columns 8 of <[-1], [65]>>]
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}
