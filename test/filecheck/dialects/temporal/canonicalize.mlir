// RUN: xdsl-opt %s -p canonicalize --split-input-file | filecheck %s

// Operations without an effect, as seen from the operation or from its step. Each function shows one case.

// Without a step each result is its own buffer, whatever the rotation and the updates.
// CHECK-LABEL: func.func @no_steps(
// CHECK-NEXT:    func.return %A, %B
func.func private @moved(f64) -> f64
func.func @no_steps(%A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>)
    -> (!stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>) {
  %none = arith.constant 0 : index
  %a, %b = temporal.loop %none (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %v = @moved(%u[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return %a, %b : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
}

// -----

// Five steps without updates move three buffers on by two places, and two by one.
// CHECK-LABEL: func.func @no_updates(
// CHECK-NEXT:    func.return %C, %A, %B, %E, %D
func.func @no_updates(%A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>, %C: !stencil.field<[0,4]xf64>,
    %D: !stencil.field<[0,4]xf64>, %E: !stencil.field<[0,4]xf64>)
    -> (!stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>,
        !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>) {
  %five = arith.constant 5 : index
  %a, %b, %c, %d, %e = temporal.loop %five (%u = %A, %v = %B, %w = %C, %x = %D, %y = %E) rotate [1, 2, 0, 4, 3] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>,
      !stencil.field<[0,4]xf64>
  func.return %a, %b, %c, %d, %e : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>,
    !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
}

// An unknown number of steps may be odd: buffers that change places stay in their loop.
// CHECK-LABEL: func.func @unknown_steps(
// CHECK-NEXT:    temporal.loop %n
func.func @unknown_steps(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>)
    -> !stencil.field<[0,4]xf64> {
  %a, %b = temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return %a : !stencil.field<[0,4]xf64>
}

// -----

// A buffer that keeps its place, and that no update names, passes by the loop; the others are numbered anew.
// CHECK-LABEL: func.func @idle_buffer(
// CHECK-NEXT:    %b, %c = temporal.loop %n (%v = %B, %w = %C) rotate [1, 0] sweep common_halos depths [2, 1] {
// CHECK-NEXT:      temporal.update %w = @moved(%v[0]) in <[0], [4]>
// CHECK-NEXT:    } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
// CHECK-NEXT:    func.return %A, %b, %c
func.func private @moved(f64) -> f64
func.func @idle_buffer(%n: index, %A: !stencil.field<[0,9]xf64>, %B: !stencil.field<[0,4]xf64>,
    %C: !stencil.field<[0,4]xf64>)
    -> (!stencil.field<[0,9]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>) {
  %a, %b, %c = temporal.loop %n (%u = %A, %v = %B, %w = %C) rotate [0, 2, 1] sweep common_halos depths [2, 1] {
    temporal.update %w = @moved(%v[0]) in <[0], [4]>
  } : !stencil.field<[0,9]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return %a, %b, %c : !stencil.field<[0,9]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
}

// Kernels number the buffers of their loop, and updates were counted for a schedule: both stay.
// CHECK-LABEL: func.func @kernels(
// CHECK-NEXT:    temporal.loop %n (%u = %A, %v = %B, %w = %C) rotate [0, 1, 2] kernels [@k]
// CHECK-LABEL: func.func @scheduled(
// CHECK:         temporal.update
// CHECK-NEXT:    temporal.update
func.func @kernels(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>,
    %C: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%u = %A, %v = %B, %w = %C) rotate [0, 1, 2] kernels [@k] {
    temporal.update %v = @moved(%u[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}
func.func @scheduled(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] schedule #tile.schedule<cells [1]> {
    temporal.update %v = @moved(%u[0]) in <[0], [4]>
    temporal.update %v = @moved(%u[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

// A boundary that keeps all cells is none, and equal sides are written once; 0.0 and -0.0 are two numbers.
// CHECK-LABEL: func.func @boundaries(
// CHECK:         temporal.update %v = @moved(%u[0]) in <[1], [3]>
// CHECK-NEXT:    temporal.update %w = @moved(%v[0]) in <[1], [3]> outside #temporal.boundary<mirror>
// CHECK-NEXT:    temporal.update %x = @moved(%w[0]) in <[1], [3]> outside #temporal.boundary<value 0.0, value -0.0>
// CHECK-NEXT:  }
func.func private @moved(f64) -> f64
func.func @boundaries(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>,
    %C: !stencil.field<[0,4]xf64>, %D: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%u = %A, %v = %B, %w = %C, %x = %D) rotate [3, 1, 2, 0] {
    temporal.update %v = @moved(%u[0]) in <[1], [3]> outside #temporal.boundary<keep, keep>
    temporal.update %w = @moved(%v[0]) in <[1], [3]> outside #temporal.boundary<mirror, mirror>
    temporal.update %x = @moved(%w[0]) in <[1], [3]> outside #temporal.boundary<value 0.0, value -0.0>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

// A cell that is written with what it holds is left alone; a neighbour's cell, another field's, and cells outside are not.
// CHECK-LABEL: func.func @self_copies(
// CHECK-NEXT:    temporal.loop
// CHECK-NEXT:      temporal.update %u = @swapped(%u[0], %v[0]) in <[1], [3]>
// CHECK-NEXT:      temporal.update %v = @same(%u[0]) in <[1], [3]>
// CHECK-NEXT:      temporal.update %u = @same(%u[0]) in <[1], [3]> outside #temporal.boundary<mirror>
// CHECK-NEXT:      temporal.update %v = @same(%u[-1]) in <[1], [2]>
// CHECK-NEXT:    }
func.func private @same(%c: f64) -> f64 {
  func.return %c : f64
}
func.func private @swapped(%c: f64, %d: f64) -> f64 {
  func.return %d : f64
}
func.func private @both(%c: f64, %d: f64) -> (f64, f64) {
  func.return %d, %c : f64, f64
}
func.func @self_copies(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%u = %A, %v = %B) rotate [1, 0] {
    temporal.update %u = @same(%u[0]) in <[1], [3]>
    temporal.update %u = @swapped(%v[0], %u[0]) in <[1], [3]>
    temporal.update %u, %v = @both(%v[0], %u[0]) in <[1], [3]>
    temporal.update %u = @swapped(%u[0], %v[0]) in <[1], [3]>
    temporal.update %v = @same(%u[0]) in <[1], [3]>
    temporal.update %u = @same(%u[0]) in <[1], [3]> outside #temporal.boundary<mirror>
    temporal.update %v = @same(%u[-1]) in <[1], [2]>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

// An update is overwritten if a later one of the step writes all of its cells before any is read.
// CHECK-LABEL: func.func @overwritten(
// CHECK-NEXT:    temporal.loop
// CHECK-NEXT:      temporal.update %v = @first(%u[0]) in <[0], [4]>
// CHECK-NEXT:      temporal.update %v = @second(%u[0]) in <[1], [4]>
// CHECK-NEXT:      temporal.update %w = @first(%v[0]) in <[0], [4]>
// CHECK-NEXT:      temporal.update %v = @second(%u[0]) in <[0], [4]>
// CHECK-NEXT:      temporal.update %w = @first(%w[0]) in <[0], [4]>
// CHECK-NEXT:    }
func.func private @first(f64) -> f64
func.func private @second(f64) -> f64
func.func @overwritten(%n: index, %A: !stencil.field<[0,4]xf64>, %B: !stencil.field<[0,4]xf64>,
    %C: !stencil.field<[0,4]xf64>) {
  temporal.loop %n (%u = %A, %v = %B, %w = %C) rotate [1, 2, 0] {
    temporal.update %v = @second(%u[0]) in <[1], [3]>
    temporal.update %v = @first(%u[0]) in <[0], [4]>
    temporal.update %v = @second(%u[0]) in <[1], [4]>
    temporal.update %w = @first(%v[0]) in <[0], [4]>
    temporal.update %v = @second(%u[0]) in <[0], [4]>
    temporal.update %w = @first(%w[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return
}

// -----

// Fields of the function's own that nothing reads are not written, and are not made. A field that another step reads, or
// that the loop returns, stays.
// CHECK-LABEL: func.func @unread(
// CHECK-NEXT:    %s = temporal.scratch : !stencil.field<[0,4]xf64>
// CHECK-NEXT:    %r = temporal.scratch : !stencil.field<[0,4]xf64>
// CHECK-NEXT:    %a, %q, %p = temporal.loop %n (%u = %A, %x = %s, %z = %r) rotate [0, 1, 2] {
// CHECK-NEXT:      temporal.update %x = @moved(%u[0]) in <[0], [4]>
// CHECK-NEXT:      temporal.update %u = @moved(%x[0]) in <[0], [4]>
// CHECK-NEXT:      temporal.update %z = @moved(%u[0]) in <[0], [4]>
// CHECK-NEXT:    }
func.func private @moved(f64) -> f64
func.func @unread(%n: index, %A: !stencil.field<[0,4]xf64>) -> !stencil.field<[0,4]xf64> {
  %s = temporal.scratch : !stencil.field<[0,4]xf64>
  %t = temporal.scratch : !stencil.field<[0,4]xf64>
  %r = temporal.scratch : !stencil.field<[0,4]xf64>
  %a, %q, %o, %p = temporal.loop %n (%u = %A, %x = %s, %y = %t, %z = %r) rotate [0, 1, 2, 3] {
    temporal.update %x = @moved(%u[0]) in <[0], [4]>
    temporal.update %y = @moved(%u[0]) in <[0], [4]>
    temporal.update %u = @moved(%x[0]) in <[0], [4]>
    temporal.update %z = @moved(%u[0]) in <[0], [4]>
  } : !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>, !stencil.field<[0,4]xf64>
  func.return %p : !stencil.field<[0,4]xf64>
}

// Nor are cells gathered that nothing reads, or fields spread. What an argument receives stays.
// CHECK-LABEL: func.func @gathers(
// CHECK-NEXT:    temporal.gather %G = %A at (%I) : !stencil.field<[0,4]xf64> from !stencil.field<[-1,9]xf64>
// CHECK-NEXT:    func.return
func.func @gathers(%A: !stencil.field<[-1,9]xf64>, %I: !stencil.field<[0,4]xi64>, %G: !stencil.field<[0,4]xf64>) {
  %s = temporal.scratch : !stencil.field<[0,4]xf64>
  temporal.gather %s = %A at (%I) : !stencil.field<[0,4]xf64> from !stencil.field<[-1,9]xf64>
  temporal.gather %G = %A at (%I) : !stencil.field<[0,4]xf64> from !stencil.field<[-1,9]xf64>
  %wide = temporal.broadcast %A axes [1] : !stencil.field<[-1,9]xf64> to !stencil.field<[0,4]x[0,8]xf64>
  func.return
}
