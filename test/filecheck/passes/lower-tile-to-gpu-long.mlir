// RUN: xdsl-opt %s -p 'temporal-fusion{depths=8},device-tiling{cells=8 pack=1},multi-queue-buffering{ahead=0},register-streaming,carry-halos,peel-boundaries{planes=64},lower-tile-to-gpu' --split-input-file | filecheck %s

// In long code, the head and the tail of a chunk are one loop.

!field = !stencil.field<[-8,136]x[-8,1032]xf32>

func.func private @cell(%l: f32, %r: f32) -> f32 {
  %s = arith.addf %l, %r : f32
  func.return %s : f32
}

// Two loops fill the pipeline. Then two loops run twice: the loop with guards up to the steady part, and the loop without
// up to the tail; the second time, the loop with guards runs up to the end, and the other has no step left. The rim has
// the same two loops.
// CHECK-LABEL: sym_name = "sum_d8"
// CHECK:         scf.if
// CHECK-COUNT-2: scf.for
// CHECK:           scf.for [[part:%[0-9]+]] = %{{.*}} iter_args([[at:%[0-9]+]] =
// CHECK:             [[first:%[0-9]+]] = arith.cmpi eq, [[part]], %{{.*}} : i32
// CHECK:             [[end:%[0-9]+]] = arith.select [[first]], [[steady:%[0-9]+]], %{{.*}} : i32
// CHECK:             scf.for %{{.*}} = [[at]] to [[end]] step
// CHECK:               simt.override
// CHECK:             [[begin:%[0-9]+]] = arith.maxsi [[end]], [[at]] : i32
// CHECK:             [[last:%[0-9]+]] = arith.select [[first]], [[tail:%[0-9]+]], %{{.*}} : i32
// CHECK:             scf.for %{{.*}} = [[begin]] to [[last]] step
// CHECK-NOT:           simt.override
// CHECK:               scf.yield
// CHECK:             scf.yield [[last]],
// CHECK:         } else {
// CHECK:           scf.for %{{.*}} iter_args([[at:%[0-9]+]] =
// CHECK:             scf.for %{{.*}} = [[at]] to
// CHECK:             scf.for
// CHECK-NOT:       scf.for
// CHECK:         "gpu.return"
func.func @sum(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1, 0], %a[1, 0]) in <[0, 0], [128, 1024]>
  } : !field, !field
  func.return
}

// -----

// The rim of a kernel with quotients has a single loop, with all guards. It is also the head and the tail of the tiles
// inside; the steady loop has no step outside of these tiles.

!field = !stencil.field<[-8,136]x[-8,1032]xf32>

func.func private @cell(%l: f32, %r: f32) -> f32 {
  %s = arith.divf %l, %r : f32
  func.return %s : f32
}

// CHECK-LABEL: sym_name = "quotient_d8"
// CHECK:         [[inside:%[0-9]+]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK-COUNT-2: scf.for
// CHECK:         scf.for [[part:%[0-9]+]] = %{{.*}} iter_args([[at:%[0-9]+]] =
// CHECK:           [[equal:%[0-9]+]] = arith.cmpi eq, [[part]], %{{.*}} : i32
// CHECK:           [[first:%[0-9]+]] = arith.andi [[equal]], [[inside]] : i1
// CHECK:           [[end:%[0-9]+]] = arith.select [[first]], %{{.*}}, %{{.*}} : i32
// CHECK:           scf.for %{{.*}} = [[at]] to [[end]] step
// CHECK:             simt.override
// CHECK:           [[begin:%[0-9]+]] = arith.maxsi [[end]], [[at]] : i32
// CHECK:           [[last:%[0-9]+]] = arith.select [[first]], %{{.*}}, %{{.*}} : i32
// CHECK:           scf.for %{{.*}} = [[begin]] to [[last]] step
// CHECK-NOT:         simt.override
// CHECK:             scf.yield
// CHECK:           scf.yield [[last]],
// CHECK-NOT:     scf.for
// CHECK:         "gpu.return"
func.func @quotient(%n: index, %A: !field, %B: !field) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1, 0], %a[1, 0]) in <[0, 0], [128, 1024]>
  } : !field, !field
  func.return
}
