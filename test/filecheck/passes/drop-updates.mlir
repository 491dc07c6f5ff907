// RUN: xdsl-opt %s -p "drop-updates" --split-input-file | filecheck %s

// The copy into %m is left out: the layer's update writes all of its cells before a read. Nobody
// reads %s and %t once the first update of %v is gone.

!f = !stencil.field<[0,64]xf64>
func.func private @copy(%a: f64) -> f64 { func.return %a : f64 }
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @unread(%U: !f, %V: !f, %M: !f, %n: index) {
  %S = temporal.scratch : !f
  %T = temporal.scratch : !f
  temporal.loop %n (%u = %U, %v = %V, %m = %M, %s = %S, %t = %T) rotate [1, 0, 2, 3, 4] {
    temporal.update %m = @copy(%u[0]) in <[1], [9]>
    temporal.update %s = @cell(%u[-1], %u[1]) in <[1], [40]>
    temporal.update %s = @cell(%u[-1], %u[0]) in <[40], [63]>
    temporal.update %t = @cell(%s[0], %u[0]) in <[2], [62]>
    temporal.update %v = @cell(%t[0], %s[0]) in <[2], [62]>
    temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
    temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
  } : !f, !f, !f, !f, !f
  func.return
}

// CHECK-LABEL: @unread
// CHECK-NOT:   temporal.scratch
// CHECK:       (%u = %U, %v = %V, %m = %M) rotate [1, 0, 2]
// CHECK-NEXT:  temporal.update %v = @cell(%u[-1], %u[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
// CHECK-NEXT:  }

// -----

// A layer read before it is written again is no copy to leave out. The next step reads %s, and %t is
// written again in a part of its cells alone.

!f = !stencil.field<[0,64]xf64>
func.func private @cell(%a: f64, %b: f64) -> f64 { %r = arith.addf %a, %b : f64 func.return %r : f64 }
func.func @read(%U: !f, %V: !f, %M: !f, %T: !f, %n: index) {
  %S = temporal.scratch : !f
  temporal.loop %n (%u = %U, %v = %V, %m = %M, %s = %S, %t = %T) rotate [1, 0, 2, 3, 4] {
    temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
    temporal.update %v = @cell(%m[-1], %s[1]) in <[1], [63]>
    temporal.update %m = @cell(%u[-1], %u[1]) in <[1], [9]>
    temporal.update %s = @cell(%u[-1], %u[1]) in <[1], [63]>
    temporal.update %t = @cell(%u[0], %u[0]) in <[1], [63]>
    temporal.update %t = @cell(%u[0], %u[1]) in <[1], [62]>
  } : !f, !f, !f, !f, !f
  func.return
}

// CHECK-LABEL: @read
// CHECK:       rotate
// CHECK-NEXT:  temporal.update %m = @cell(%u[0], %u[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %v = @cell(%m[-1], %s[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %m = @cell(%u[-1], %u[1]) in <[1], [9]>
// CHECK-NEXT:  temporal.update %s = @cell(%u[-1], %u[1]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %t = @cell(%u[0], %u[0]) in <[1], [63]>
// CHECK-NEXT:  temporal.update %t = @cell(%u[0], %u[1]) in <[1], [62]>
// CHECK-NEXT:  }
