// RUN: xdsl-opt %s --split-input-file -p 'cut-domain{rank=1 parts=4 steps=2}' | filecheck %s
// RUN: xdsl-opt %s --split-input-file -p 'cut-domain{rank=3 parts=4 steps=2}' | filecheck %s --check-prefix=LAST

// The fields of a rank hold its own cells and the ghost zone of two steps. At an end of the domain the rank holds the
// halo. Boxes are the cells with all reads in the fields.

// CHECK-LABEL: func.func @loop0(%n: index, %A: !stencil.field<[14,34]xf64>, %B: !stencil.field<[14,34]xf64>) {
// CHECK-NEXT:    temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] part #temporal.part<rank 1 of [0, 16, 32, 48, 64], ghosts [2, 2], steps 2> {
// CHECK-NEXT:      temporal.update %b = @average(%a[-1], %a[1]) in <[15], [33]>
// LAST-LABEL:  func.func @loop0(%n: index, %A: !stencil.field<[46,65]xf64>, %B: !stencil.field<[46,65]xf64>) {
// LAST:            temporal.update %b = @average(%a[-1], %a[1]) in <[47], [64]>
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @heat(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  func.return
}

// -----

// Along a cut periodic axis places go on beyond the ends.
// CHECK-LABEL: func.func @loop0(
// CHECK-SAME:    %A: !stencil.field<[14,34]xf64>
// CHECK-NEXT:    part #temporal.part<rank 1 of [0, 16, 32, 48, 64], periodic [0], ghosts [2, 2], steps 2>
// CHECK-NEXT:      temporal.update %b = @average(%a[-1], %a[1]) in <[15], [33]>
// LAST-LABEL:  func.func @loop0(
// LAST-SAME:     %A: !stencil.field<[46,66]xf64>
// LAST:            temporal.update %b = @average(%a[-1], %a[1]) in <[47], [65]>
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @ring(%n: index, %A: !stencil.field<[0,64]xf64>, %B: !stencil.field<[0,64]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[-1], %a[1]) in <[0], [64]> beyond [#temporal.boundary<periodic>]
  } : !stencil.field<[0,64]xf64>, !stencil.field<[0,64]xf64>
  func.return
}

// -----

// A mirrored side becomes boxes, of the rank at the end. A field of fewer axes is whole on each rank, and a loop of
// fewer axes runs as a whole.
// CHECK-LABEL: func.func @loop0(%one: index, %w: !stencil.field<[0,8]xf64>) {
// CHECK-NEXT:    temporal.loop %one (%x = %w) rotate [0] sweep {
// CHECK-NEXT:      temporal.update %x = @average(%x[0], %x[0]) in <[0], [8]>
// CHECK-LABEL: func.func @loop1(
// CHECK-SAME:    %A: !stencil.field<[0,6]x[0,8]xf64>, %B: !stencil.field<[0,6]x[0,8]xf64>, %w: !stencil.field<[0,8]xf64>
// CHECK-NEXT:    %wide = temporal.broadcast %w axes [1] : !stencil.field<[0,8]xf64> to !stencil.field<[0,6]x[0,8]xf64>
// CHECK-NEXT:    temporal.loop
// CHECK-NEXT:      temporal.update %b = @average(%a[1, 0], %wide[0, 0]) in <[0, 0], [5, 8]>
// CHECK-NEXT:    }
// LAST-LABEL:  func.func @loop1(
// LAST:            temporal.update %b = @average(%a[1, 0], %wide[0, 0]) in <[4, 0], [7, 8]>
// LAST-NEXT:       temporal.update %b = @average(%a[0, 0], %wide[0, 0]) in <[7, 0], [8, 8]>
func.func private @average(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}
func.func @wall(%n: index, %one: index, %A: !stencil.field<[0,8]x[0,8]xf64>, %B: !stencil.field<[0,8]x[0,8]xf64>, %w: !stencil.field<[0,8]xf64>) {
  temporal.loop %one (%x = %w) rotate [0] sweep {
    temporal.update %x = @average(%x[0], %x[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>
  %wide = temporal.broadcast %w axes [1] : !stencil.field<[0,8]xf64> to !stencil.field<[0,8]x[0,8]xf64>
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @average(%a[1, 0], %wide[0, 0]) in <[0, 0], [8, 8]> beyond [#temporal.boundary<mirror>, #temporal.boundary<keep>]
  } : !stencil.field<[0,8]x[0,8]xf64>, !stencil.field<[0,8]x[0,8]xf64>
  func.return
}
