// RUN: xdsl-opt %s -p 'temporal-fusion{depths=3},device-tiling{tile=warp cells=2 lanes=32 warps=1}' | filecheck %s
// RUN: xdsl-opt %s -p 'temporal-fusion{depths=3},device-tiling{tile=warp cells=2 lanes=32 warps=1},plan-launches{steps=3}' | filecheck %s --check-prefix=LAUNCH

// Both updates of all steps read %c at the own cell: one load serves all levels. The profile %w has cells along axis 1 alone: the kernels take the profile itself, and one
// load serves all levels. No operation spreads the profile, and launches name %w.

!field = !stencil.field<[-1,65]x[-1,65]xf64>
!line = !stencil.field<[-1,65]xf64>

func.func private @cell(%x: f64, %c: f64, %w: f64) -> f64 {
  %p = arith.mulf %x, %c : f64
  %q = arith.mulf %p, %w : f64
  func.return %q : f64
}

// CHECK-LABEL: tile.kernel @shared_d3
// CHECK-SAME:    %c: !stencil.field<[-1,65]x[-1,65]xf64>, %w: !stencil.field<[-1,65]xf64>
// CHECK:         %[[c:.*]] = tile.load %c : !tile.queue<f64, lag 1>
// CHECK-NEXT:    %[[w:.*]] = tile.load %w along [1] : !tile.queue<f64, lag 1>
// CHECK:         tile.apply @cell(%{{.*}}[1, 0], %[[c]][0, 0], %[[w]][0, 1])
// CHECK:         tile.load %src_1
// CHECK:         tile.apply @cell(%{{.*}}[1, 0], %[[c]][0, 0], %[[w]][0, 1])
// CHECK-NOT:     tile.load %c :
// CHECK-LABEL: tile.kernel @shared_step
// CHECK-COUNT-1: tile.load %c :

// LAUNCH: tile.launch @shared_step(%A, %C, %B, %D, %A, %B, %C, %D, %c, %w)

func.func @shared(%A: !field, %B: !field, %C: !field, %D: !field, %c: !field, %w: !line, %n: index) {
  %wide = temporal.broadcast %w axes [1] : !line to !field
  %r:4 = temporal.loop %n (%a = %A, %b = %B, %p = %C, %q = %D)
      rotate [1, 0, 3, 2] {
    temporal.update %b = @cell(%a[1, 0], %c[0, 0], %wide[0, 1]) in <[0, 0], [64, 64]>
    temporal.update %q = @cell(%p[1, 0], %c[0, 0], %wide[0, 1]) in <[0, 0], [64, 64]>
  } : !field, !field, !field, !field
  func.return
}
