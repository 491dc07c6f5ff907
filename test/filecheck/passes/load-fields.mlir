// RUN: xdsl-opt %s -p load-fields | filecheck %s

// An apply on fields, with bounds of its own, gets loads in front, results, and stores
// behind.

!field = !stencil.field<[-1,9]xf64>

// CHECK-LABEL: func.func @writes_buffers
// CHECK-NEXT:    %[[a:.*]] = stencil.load %A : !stencil.field<[-1,9]xf64> -> !stencil.temp<?xf64>
// CHECK-NEXT:    %[[v:.*]], %[[w:.*]] = stencil.apply(%x = %[[a]] : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>, !stencil.temp<?xf64>) {
// CHECK-NEXT:      %{{.*}} = stencil.access %x[1] : !stencil.temp<?xf64>
// CHECK:         }
// CHECK-NEXT:    stencil.store %[[v]] to %B(<[0], [8]>)
// CHECK-NEXT:    stencil.store %[[w]] to %C(<[0], [8]>)
func.func @writes_buffers(%A: !field, %B: !field, %C: !field) {
  stencil.apply(%x = %A : !field) outs (%B : !field, %C : !field) {
    %0 = stencil.access %x[1] : !field
    %1 = arith.negf %0 : f64
    stencil.return %0, %1 : f64, f64
  } to <[0], [8]>
  return
}
