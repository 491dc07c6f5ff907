// RUN: xdsl-opt %s -p 'device-tiling{tile=warp cells=1 lanes=32 warps=1},multi-queue-buffering,peel-boundaries,lower-tile-to-gpu' | filecheck %s

// A field of fewer axes is read from memory. %w has cells along the rows alone: a thread reads its
// cell and the next once, ahead of the loop over the stream. %z has cells along the stream alone:
// all threads read one cell in every step.

!field = !stencil.field<[-1,65]x[-1,1025]xf64>
!row = !stencil.field<[0,1026]xf64>
!column = !stencil.field<[0,64]xf64>

func.func private @cell(%x: f64, %w: f64, %e: f64, %z: f64) -> f64 {
  %p = arith.mulf %x, %w : f64
  %q = arith.addf %p, %e : f64
  %r = arith.mulf %q, %z : f64
  func.return %r : f64
}

// CHECK-LABEL: "gpu.module"() <{sym_name = "narrow_step"}>
// CHECK:         simt.load %w[%[[own:.*]] + 0] mask
// CHECK:         simt.load %w[%[[own]] + 1] mask
// CHECK:         scf.for
// CHECK:           simt.load %[[x:.*]][%{{.*}} + 0] : f64
// CHECK-NOT:       simt.load %w
// CHECK:           simt.load %z[%{{.*}} + 0] mask

func.func @narrow(%A: !field, %B: !field, %w: !row, %z: !column, %n: index) {
  %rows = temporal.broadcast %w axes [1] : !row to !stencil.field<[-1,65]x[0,1026]xf64>
  %columns = temporal.broadcast %z axes [0] : !column to !stencil.field<[0,64]x[-1,1025]xf64>
  %r:2 = temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [1] {
    temporal.update %b = @cell(%a[0, 0], %rows[0, 0], %rows[0, 1], %columns[0, 0])
        in <[0, 0], [64, 1024]>
  } : !field, !field
  func.return
}
