// RUN: xdsl-opt %s -p copy-edges --split-input-file | filecheck %s

// Both buffers of the rotation have edge cells after a step; no buffer changes places.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func private @copy(%x: f64) -> f64 {
  func.return %x : f64
}

// CHECK-LABEL: func.func @mirror
// CHECK:         rotate [0, 1, 2] {
// CHECK-NEXT:      temporal.update %s = @copy(%a[1]) in <[0], [1]>
// CHECK-NEXT:      temporal.update %a = @copy(%s[0]) in <[0], [1]>
// CHECK-NEXT:      temporal.update %s = @copy(%b[1]) in <[0], [1]>
// CHECK-NEXT:      temporal.update %b = @copy(%s[0]) in <[0], [1]>
// CHECK-NEXT:    }
func.func @mirror(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>) {
  %S = temporal.scratch : !stencil.field<[0,1]xf64>
  temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
    temporal.update %s = @copy(%b[1]) in <[0], [1]>
    temporal.update %b = @copy(%s[0]) in <[0], [1]>
  } : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>, !stencil.field<[0,1]xf64>
  func.return
}

// -----

// Nothing is copied beside the box.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @kept
// CHECK:         rotate [1, 0] {
// CHECK-NEXT:      temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
func.func @kept(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
  } : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  func.return
}
