// RUN: xdsl-opt %s -p 'temporal-fusion{depths=2},device-tiling{cells=2 pack=1},multi-queue-buffering{ahead=0},register-streaming,carry-halos,peel-boundaries{planes=16},lower-tile-to-gpu' --split-input-file | filecheck %s

// Fields go on at the other end. In tiles on the rim, a thread loads the image of its cells: its column is
// moved by the 256 columns where it lies outside. In the head and the tail of a chunk, a plane is moved by the
// 64 planes. Tiles inside the rim, and steady loops, load cells as they lie.

!field = !stencil.field<[0,64]x[0,256]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.subf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: "gpu.module"() <{sym_name = "ring_d2"}>
// CHECK-DAG:     %[[columns:.*]] = arith.constant 256 : i32
// CHECK-DAG:     %[[back:.*]] = arith.constant -256 : i32
// CHECK-DAG:     %[[planes:.*]] = arith.constant 64 : i32
// CHECK:         scf.if
// Head of a tile inside: the image of a plane, and of no column.
// CHECK:           scf.for
// CHECK-NOT:         arith.addi %{{.*}}, %[[columns]] : i32
// CHECK:             %[[below:.*]] = arith.cmpi slt, %[[plane:.*]], %{{.*}} : i32
// CHECK-NEXT:        %[[last:.*]] = arith.addi %[[plane]], %[[planes]] : i32
// CHECK-NEXT:        %{{.*}} = arith.select %[[below]], %[[last]], %[[plane]] : i32
// Steady loop.
// CHECK:           scf.for
// CHECK-NOT:         arith.select
// CHECK:             simt.store
// CHECK:         } else {
// The rim: the image of a column, ahead of the loops.
// CHECK:           %[[left:.*]] = arith.cmpi slt, %[[column:.*]], %{{.*}} : i32
// CHECK-NEXT:      %[[right:.*]] = arith.addi %[[column]], %[[columns]] : i32
// CHECK-NEXT:      %[[moved:.*]] = arith.select %[[left]], %[[right]], %[[column]] : i32
// CHECK-NEXT:      %[[over:.*]] = arith.cmpi sge, %[[column]], %[[columns]] : i32
// CHECK-NEXT:      %[[begin:.*]] = arith.addi %[[column]], %[[back]] : i32
// CHECK-NEXT:      %{{.*}} = arith.select %[[over]], %[[begin]], %[[moved]] : i32
// CHECK:           scf.for
func.func @ring(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1, -1], %a[1, 1]) in <[0, 0], [64, 256]> beyond [#temporal.boundary<periodic>]
  } : !field, !field
  func.return
}

// -----

// A tap across a mirror reads the image, here the own cell: only the first cell of a thread may lie at the mirror.
// Beyond a value a cell is the number. Tiles inside the rim have neither.

!field = !stencil.field<[0,64]x[0,256]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.subf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: "gpu.module"() <{sym_name = "walls_d2"}>
// CHECK-DAG:     %[[wall:.*]] = arith.constant 5.000000e-01 : f64
// CHECK:         scf.if
// CHECK-NOT:       arith.select %{{.*}} : f64
// CHECK:         } else {
// CHECK:           %[[first:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// CHECK:           scf.for
// CHECK:             arith.select %{{.*}}, %[[wall]], %{{.*}} : f64
// CHECK:             %[[beside:.*]] = simt.shuffle %[[own:.*]] delta -1 : f64
// CHECK:             arith.select %[[first]], %{{.*}}, %{{.*}} : f64
func.func @walls(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[0, -1], %a[0, 1]) in <[0, 0], [64, 256]>
      beyond [#temporal.boundary<keep, keep, mirror, value 0.5>]
  } : !field, !field
  func.return
}
