// RUN: xdsl-opt %s -p choose-schedule --split-input-file --verify-diagnostics > %t.free 2> %t.notes
// RUN: filecheck %s --input-file %t.free
// RUN: filecheck %s --input-file %t.notes --check-prefix=NOTE
// RUN: xdsl-opt %s -p 'choose-schedule{depth=3}' --split-input-file --verify-diagnostics > %t.once 2> %t.asked
// RUN: filecheck %s --input-file %t.once --check-prefix=DEPTH
// RUN: filecheck %s --input-file %t.asked --check-prefix=ASKED
// RUN: xdsl-opt %s -p 'choose-schedule{depth=3}' --split-input-file --verify-diagnostics > %t.again
// RUN: diff %t.once %t.again
// RUN: xdsl-opt %s -p 'choose-schedule{arch=sm_80}' --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'choose-schedule{arch=sm_20}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ARCH
// RUN: xdsl-opt %s -p 'choose-schedule{depth=257}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=DEEP

// Every time loop gets depths and a schedule, a pure function of the program, the options and the
// target. One and two axes are held by warps, small planes and three axes by a block; what is already decided stays.

// DEEP: choose-schedule: depth is at most 256, got 257
// ARCH: the architecture sm_20 is not known; use sm_90 or sm_80 or sm_120 or sm_100 or sm_89 or sm_86, or a part: h200, h100-sxm

func.func private @seven() -> f64 {
  %c = arith.constant 7.0 : f64
  func.return %c : f64
}
func.func private @sum(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

func.func private @quotient(%l: f64, %r: f64) -> f64 {
  %s = arith.divf %l, %r : f64
  func.return %s : f64
}

func.func private @sum_of_floats(%l: f32, %r: f32) -> f32 {
  %s = arith.addf %l, %r : f32
  func.return %s : f32
}

func.func private @sum_of_five(%0: f64, %1: f64, %2: f64, %3: f64, %4: f64) -> f64 {
  %5 = arith.addf %0, %1 : f64
  %6 = arith.addf %5, %2 : f64
  %7 = arith.addf %6, %3 : f64
  %8 = arith.addf %7, %4 : f64
  func.return %8 : f64
}

// A line is held whole, 32 or 64 bytes a lane where it is long; there is no stream to fetch planes of.
// CHECK-LABEL: func.func @line(
// CHECK:         temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [{{([0-9]+, )+[23]}}, 1]
// CHECK-SAME:      schedule #tile.schedule<{{(cells \[8\], )?}}ahead 0, occupancy 4>
// CHECK-NOT:     kernels
// CHECK-NEXT:    temporal.update
// DEPTH-LABEL: func.func @line(
// DEPTH:         depths [3, 1]
// DEPTH-SAME:      schedule #tile.schedule<cells [2], ahead 0
func.func @line(%n: index, %A: !stencil.field<[-1,9999999]xf64>, %B: !stencil.field<[-1,9999999]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1], %a[1]) in <[0], [9999998]>
  } : !stencil.field<[-1,9999999]xf64>, !stencil.field<[-1,9999999]xf64>
  func.return
}

// A short line has more lanes, of 16 bytes each.
// CHECK-LABEL: func.func @floats(
// CHECK:         schedule #tile.schedule<ahead 0
func.func @floats(%n: index, %A: !stencil.field<[-1,4097]xf32>, %B: !stencil.field<[-1,4097]xf32>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum_of_floats(%a[-1], %a[1]) in <[0], [4096]>
  } : !stencil.field<[-1,4097]xf32>, !stencil.field<[-1,4097]xf32>
  func.return
}

// A narrow stencil streams through strips of four cells a lane, its sum in one piece; one block has all
// warps of a multiprocessor.
// CHECK-LABEL: func.func @plane(
// CHECK:         depths [{{([0-9]+, )+[23]}}, 1]
// CHECK-SAME:      schedule #tile.schedule<pack {{8|12|16}}, ahead {{[1-7]}}, occupancy 1>
// DEPTH-LABEL: func.func @plane(
// DEPTH:         depths [3, 1]
func.func @plane(%n: index, %A: !stencil.field<[-1,4097]x[-1,4097]xf64>, %B: !stencil.field<[-1,4097]x[-1,4097]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0], %a[1, 0]) in <[0, 0], [4096, 4096]>
  } : !stencil.field<[-1,4097]x[-1,4097]xf64>, !stencil.field<[-1,4097]x[-1,4097]xf64>
  func.return
}

// Nothing is loaded here, and a stream of planes would gain nothing.
// CHECK-LABEL: func.func @filled(
// CHECK:         depths [1] schedule #tile.schedule<tile block
// CHECK-SAME:    reads_memory>
func.func @filled(%n: index, %A: !stencil.field<[-1,4097]x[-1,4097]xf64>, %B: !stencil.field<[-1,4097]x[-1,4097]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @seven() in <[0, 0], [4096, 4096]>
  } : !stencil.field<[-1,4097]x[-1,4097]xf64>, !stencil.field<[-1,4097]x[-1,4097]xf64>
  func.return
}

// Of a small plane each block keeps a part in its registers for all steps.
// CHECK-LABEL: func.func @small_plane(
// CHECK:         schedule #tile.schedule<tile block, cells [{{[0-9]+, [24]}}], lanes [1, 32], warps [8, 1], pack 1
// CHECK-SAME:    ahead 0
// CHECK-SAME:    resident>
// DEPTH-LABEL: func.func @small_plane(
// DEPTH:         depths [3, 1] schedule #tile.schedule<tile block
func.func @small_plane(%n: index, %A: !stencil.field<[-1,257]x[-1,257]xf64>, %B: !stencil.field<[-1,257]x[-1,257]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0], %a[1, 0]) in <[0, 0], [256, 256]>
  } : !stencil.field<[-1,257]x[-1,257]xf64>, !stencil.field<[-1,257]x[-1,257]xf64>
  func.return
}

// Cells that divide are streamed. Few tiles are spread over the multiprocessors in small blocks.
// CHECK-LABEL: func.func @small_plane_of_quotients(
// CHECK:         depths [3, 1]
// CHECK-SAME:    schedule #tile.schedule<{{(ahead [0-9]+)?(, )?(occupancy [34])?}}>
func.func @small_plane_of_quotients(%n: index, %A: !stencil.field<[-1,257]x[-1,257]xf64>, %B: !stencil.field<[-1,257]x[-1,257]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @quotient(%a[-1, 0], %a[1, 0]) in <[0, 0], [256, 256]>
  } : !stencil.field<[-1,257]x[-1,257]xf64>, !stencil.field<[-1,257]x[-1,257]xf64>
  func.return
}

// A stencil that looks far along the lanes gets wider strips. Sums are split where several planes are
// shuffled, not where one is.
// CHECK-LABEL: func.func @wide(
// CHECK:         schedule #tile.schedule<cells [8], pack
// DEPTH-LABEL: func.func @wide(
// DEPTH:         depths [3, 1] schedule #tile.schedule<cells [8], pack
func.func @wide(%n: index, %A: !stencil.field<[-8,4104]x[-8,4104]xf64>, %B: !stencil.field<[-8,4104]x[-8,4104]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[0, -8], %a[0, 8]) in <[0, 0], [4096, 4096]>
  } : !stencil.field<[-8,4104]x[-8,4104]xf64>, !stencil.field<[-8,4104]x[-8,4104]xf64>
  func.return
}

// CHECK-LABEL: func.func @tall(
// CHECK:         depths [
// CHECK-SAME:    schedule #tile.schedule<pack {{[0-9]+}}, ahead
func.func @tall(%n: index, %A: !stencil.field<[-2,4098]x[-2,4098]xf64>, %B: !stencil.field<[-2,4098]x[-2,4098]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum_of_five(%a[-2, 0], %a[-1, 0], %a[0, 0], %a[1, 0], %a[2, 0]) in <[0, 0], [4096, 4096]>
  } : !stencil.field<[-2,4098]x[-2,4098]xf64>, !stencil.field<[-2,4098]x[-2,4098]xf64>
  func.return
}

// Where no later step reads what one computes, depth has nothing to give.
// CHECK-LABEL: func.func @overwritten(
// CHECK:         depths [1] schedule #tile.schedule<{{pack|tile block}}
// DEPTH-LABEL: func.func @overwritten(
// DEPTH:         depths [1] schedule #tile.schedule<{{pack|tile block}}
// ASKED:       temporal.loop in @overwritten: no step reads cells that an earlier step writes: a launch of 3 steps would gain nothing: it takes 1
func.func @overwritten(%n: index, %A: !stencil.field<[-1,4097]x[-1,4097]xf64>, %K: !stencil.field<[-1,4097]x[-1,4097]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @sum(%K[0, -1], %K[0, 1]) in <[0, 0], [4096, 4096]>
  } : !stencil.field<[-1,4097]x[-1,4097]xf64>
  func.return
}

// Warps lie along the rows of a block, which has its multiprocessor for itself.
// CHECK-LABEL: func.func @space(
// CHECK:         depths [{{([0-9]+, )+[23]}}, 1]
// CHECK-SAME:    schedule #tile.schedule<tile block, cells [{{[2-9]|10}}, {{[12]}}], lanes [1, 32], warps [{{8|12}}, 1], pack 1, ahead {{[12]}}
// CHECK-SAME:    occupancy 1
// DEPTH-LABEL: func.func @space(
// DEPTH:         depths [3, 1]
func.func @space(%n: index, %A: !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>, %B: !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @sum(%a[-1, 0, 0], %a[0, 1, 0]) in <[0, 0, 0], [256, 256, 256]>
  } : !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>, !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>
  func.return
}

// Depths that the program states are kept, and so is a schedule; a loop that does nothing gets none.
// CHECK-LABEL: func.func @decided(
// CHECK:         temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [5, 1] schedule #tile.schedule<
// CHECK:         temporal.loop %n (%c = %A, %d = %B) rotate [1, 0] depths [2, 1] schedule #tile.schedule<pack 2> {
// CHECK:         temporal.loop %n (%e = %A) rotate [0] {
// DEPTH-LABEL: func.func @decided(
// DEPTH:         depths [5, 1]
func.func @decided(%n: index, %A: !stencil.field<[-1,65]xf64>, %B: !stencil.field<[-1,65]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [5, 1] {
    temporal.update %b = @sum(%a[-1], %a[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  temporal.loop %n (%c = %A, %d = %B) rotate [1, 0] depths [2, 1] schedule #tile.schedule<pack 2> {
    temporal.update %d = @sum(%c[-1], %c[1]) in <[0], [64]>
  } : !stencil.field<[-1,65]xf64>, !stencil.field<[-1,65]xf64>
  temporal.loop %n (%e = %A) rotate [0] {
  } : !stencil.field<[-1,65]xf64>
  func.return
}

// -----

// Eleven rows to a neighbour, and no layout of three axes has as many in a thread. Of a single step all
// that is read is loaded, and copies serve neighbours however far; a second one would have to publish
// what it makes as whole planes.

func.func private @same(%u: f64) -> f64 {
  func.return %u : f64
}

// CHECK-LABEL: func.func @far(
// CHECK:         depths [1] schedule #tile.schedule<tile block
// CHECK-SAME:    ahead {{[12]}}
func.func @far(%n: index, %A: !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>, %B: !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @same(%a[0, 11, 0]) in <[0, 0, 0], [8, 8, 8]>
  } : !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>, !stencil.field<[-11,19]x[-11,19]x[-11,19]xf64>
  func.return
}

// -----

// Copies that reach so far do not fit the shared memory, and no tile is so wide: all is read from memory, one
// step a launch, whatever depth was asked for.

func.func private @same(%u: f64) -> f64 {
  func.return %u : f64
}

// CHECK-LABEL: func.func @farther(
// CHECK:         depths [1] schedule #tile.schedule<tile block, cells [1, 1, 1], lanes [1, 1, 32], warps [1, {{[48]}}, {{[12]}}]
// CHECK-SAME:    resident, reads_memory>
// DEPTH-LABEL: func.func @farther(
// DEPTH:         depths [1] schedule #tile.schedule<{{.*}}, reads_memory>
// NOTE:        temporal.loop in @farther: no tile holds a step, with too far taps or too many fields: every tap is read from memory, one step a launch
// ASKED:       temporal.loop in @farther: no tile holds 3 steps at once, as their overlap, planes, fields or code are too much: it takes 1
func.func @farther(%n: index, %A: !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>, %B: !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @same(%a[0, 200, 0]) in <[0, 0, 0], [8, 8, 8]>
  } : !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>, !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>
  func.return
}

// -----

// Updates that look at what others wrote are cut into kernels of their own: three, as the second and the third
// have nothing to do with each other.

func.func private @same(%u: f64) -> f64 {
  func.return %u : f64
}

// CHECK-LABEL: func.func @chained(
// CHECK:         reads_memory, cuts [1, 3]>
// NOTE:        temporal.loop in @chained: no tile holds a step, with too far taps or too many fields: every tap is read from memory, one step a launch, and a step runs as 3 kernels
func.func @chained(%n: index, %A: !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>, %B: !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>, %C: !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>) {
  temporal.loop %n (%a = %A, %b = %B, %c = %C) rotate [0, 1, 2] {
    temporal.update %a = @same(%c[0, 200, 0]) in <[0, 0, 0], [8, 8, 8]>
    temporal.update %b = @same(%a[0, 200, 0]) in <[0, 0, 0], [8, 8, 8]>
    temporal.update %c = @same(%c[0, 0, 0]) in <[0, 0, 0], [8, 8, 8]>
    temporal.update %c = @same(%b[0, -200, 0]) in <[0, 0, 0], [8, 8, 8]>
  } : !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>, !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>, !stencil.field<[-200,208]x[-200,208]x[-200,208]xf64>
  func.return
}
