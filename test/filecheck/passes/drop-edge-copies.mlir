// RUN: xdsl-opt %s -p drop-edge-copies --split-input-file | filecheck %s

// Copies after the update of the box, through scratch: a boundary in their place. A kept axis stays kept.

func.func private @cell(%l: f64, %r: f64, %c: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  %d = arith.addf %s, %c : f64
  func.return %d : f64
}
func.func private @copy(%x: f64) -> f64 {
  func.return %x : f64
}

// CHECK-LABEL: func.func @periodic
// CHECK:         rotate [1, 0, 2] {
// CHECK-NEXT:      temporal.update %b = @cell(%a[-1, 0], %a[1, 0], %c[0, 1]) in <[1, 1], [65, 9]>
// CHECK-SAME:        beyond [#temporal.boundary<periodic, periodic, keep, keep>, #temporal.boundary<keep>] inner
// CHECK-NEXT:    }
func.func @periodic(%n: index, %A: !stencil.field<[0,66]x[0,10]xf64>, %B: !stencil.field<[0,66]x[0,10]xf64>, %c: !stencil.field<[0,66]x[0,10]xf64>) {
  %S = temporal.scratch : !stencil.field<[0,66]x[0,10]xf64>
  temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
    temporal.update %b = @cell(%a[-1, 0], %a[1, 0], %c[0, 1]) in <[1, 1], [65, 9]>
    temporal.update %s = @copy(%b[64, 0]) in <[0, 1], [1, 9]>
    temporal.update %b = @copy(%s[0, 0]) in <[0, 1], [1, 9]>
    temporal.update %s = @copy(%b[-64, 0]) in <[65, 1], [66, 9]>
    temporal.update %b = @copy(%s[0, 0]) in <[65, 1], [66, 9]>
  } : !stencil.field<[0,66]x[0,10]xf64>, !stencil.field<[0,66]x[0,10]xf64>, !stencil.field<[0,66]x[0,10]xf64>
  func.return
}

// -----

// Copies before the update of the box, and a constant.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func private @copy(%x: f64) -> f64 {
  func.return %x : f64
}
func.func private @half() -> f64 {
  %h = arith.constant 5.0e-01 : f64
  func.return %h : f64
}

// CHECK-LABEL: func.func @mirror_and_value
// CHECK:         rotate [1, 0, 2] common_halos {
// CHECK-NEXT:      temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]> beyond [#temporal.boundary<mirror, value 0.5>] inner
// CHECK-NEXT:    }
func.func @mirror_and_value(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>) {
  %S = temporal.scratch : !stencil.field<[0,1]xf64>
  temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
    temporal.update %a = @half() in <[65], [66]>
    temporal.update %s = @copy(%a[1]) in <[0], [1]>
    temporal.update %a = @copy(%s[0]) in <[0], [1]>
    temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
  } : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>, !stencil.field<[0,1]xf64>
  func.return
}

// -----

// The copied cell is of the level before: no boundary says this.

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func private @copy(%x: f64) -> f64 {
  func.return %x : f64
}

// CHECK-LABEL: func.func @late
// CHECK:         temporal.update %b = @copy(%a[1]) in <[0], [1]>
func.func @late(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @cell(%a[-1], %a[1]) in <[1], [65]>
    temporal.update %b = @copy(%a[1]) in <[0], [1]>
  } : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>
  func.return
}

// -----

// Kernels keep no cells 3 places to one side of a tap: copies stay.

func.func private @cell(%l: f64) -> f64 {
  %s = arith.addf %l, %l : f64
  func.return %s : f64
}
func.func private @copy(%x: f64) -> f64 {
  func.return %x : f64
}

// CHECK-LABEL: func.func @to_one_side
// CHECK:         temporal.update %a = @copy(%s[0]) in <[0], [1]>
func.func @to_one_side(%n: index, %A: !stencil.field<[0,66]xf64>, %B: !stencil.field<[0,66]xf64>) {
  %S = temporal.scratch : !stencil.field<[0,1]xf64>
  temporal.loop %n (%a = %A, %b = %B, %s = %S) rotate [1, 0, 2] {
    temporal.update %s = @copy(%a[2]) in <[0], [1]>
    temporal.update %a = @copy(%s[0]) in <[0], [1]>
    temporal.update %b = @cell(%a[-1]) in <[1], [66]>
  } : !stencil.field<[0,66]xf64>, !stencil.field<[0,66]xf64>, !stencil.field<[0,1]xf64>
  func.return
}
