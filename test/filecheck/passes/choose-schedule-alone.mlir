// RUN: xdsl-opt %s -p 'choose-schedule{depth=1 tile=block cells=2,2 lanes=1,32 warps=12,1 form=none sync=barrier resident=false}' | filecheck %s

// A block has a multiprocessor for itself where the memory binds a launch of more blocks than the device
// holds: further blocks would stream through other parts of the fields.

!large = !stencil.field<[-1,513]x[-1,513]x[-1,513]xf64>
!small = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

// CHECK-LABEL: func.func @moves(
// CHECK:         occupancy 1{{(, guards all)?}}, blocks_alone>
func.func @moves(%n: index, %A: !large, %B: !large) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0, 0], %a[0, 1, 0]) in <[0, 0, 0], [512, 512, 512]>
  } : !large, !large
  func.return
}

// The device holds all blocks.
// CHECK-LABEL: func.func @fits(
// CHECK:         occupancy 1
// CHECK-NOT:     blocks_alone
func.func @fits(%n: index, %A: !small, %B: !small) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0, 0], %a[0, 1, 0]) in <[0, 0, 0], [64, 64, 64]>
  } : !small, !small
  func.return
}

// Quotients take longer than moving cells: further blocks compute while others wait.
// CHECK-LABEL: func.func @computes(
// CHECK:         occupancy 1
// CHECK-NOT:     blocks_alone
func.func @computes(%n: index, %A: !large, %B: !large) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @quotients(%a[-1, 0, 0], %a[0, 1, 0]) in <[0, 0, 0], [512, 512, 512]>
  } : !large, !large
  func.return
}

func.func private @sum(%x: f64, %y: f64) -> f64 {
  %s = arith.addf %x, %y : f64
  func.return %s : f64
}

func.func private @quotients(%x: f64, %y: f64) -> f64 {
  %p = arith.divf %x, %y : f64
  %q = arith.divf %y, %p : f64
  %r = arith.divf %p, %q : f64
  %s = arith.divf %q, %r : f64
  %t = arith.divf %r, %s : f64
  %u = arith.divf %s, %t : f64
  %v = arith.divf %t, %u : f64
  %w = arith.divf %u, %v : f64
  func.return %w : f64
}
