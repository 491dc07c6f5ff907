// RUN: xdsl-opt %s -p raise-time-loop | filecheck %s

// Cells of 16-bit fields compute in f32: reads need no extension, and results are rounded.

!field = !stencil.field<[-1,65]xbf16>
!temp = !stencil.temp<?xbf16>

// CHECK:      func.func private @heat_cell0(%{{.*}}: f32, %{{.*}}: f32) -> f32 {
// CHECK-NEXT:   %{{.*}} = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:   %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:   %{{.*}} = arith.mulf %{{.*}}, %[[HALF]] : f32
// CHECK-NEXT:   %{{.*}} = temporal.round %{{.*}} as bf16 : f32
// CHECK-NEXT:   func.return %{{.*}} : f32
// CHECK:      temporal.update %{{.*}} = @heat_cell0(%{{.*}}[-1], %{{.*}}[1]) in <[0], [64]>
// CHECK-NEXT: } : !stencil.field<[-1,65]xbf16>, !stencil.field<[-1,65]xbf16>
func.func @heat(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %wl = arith.extf %l : bf16 to f32
      %wr = arith.extf %r : bf16 to f32
      %s = arith.addf %wl, %wr : f32
      %half = arith.constant 0.5 : f32
      %m = arith.mulf %s, %half : f32
      %o = arith.truncf %m : f32 to bf16
      stencil.return %o : bf16
    }
    stencil.store %v to %b(<[0], [64]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
