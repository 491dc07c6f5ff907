// RUN: xdsl-opt %s -p hoist-invariants --split-input-file | filecheck %s

// What functions of a library make of coefficients, coordinates and scalars is made by a sweep before the
// loop. What depends on a buffer stays, and so does everything in sweeps.

func.func private @tilted(%u: f64, %t: f64, %k: f64) -> f64 {
  %s = math.sin %t : f64
  %c = arith.mulf %s, %k : f64
  %r = arith.mulf %u, %c : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @tilted_once(%0: f64, %1: f64) -> f64 {
// CHECK-NEXT:    %{{.*}} = math.sin %0 : f64
// CHECK-NEXT:    %{{.*}} = arith.mulf %{{.*}}, %1 : f64
// CHECK-NEXT:    func.return
// CHECK-LABEL: func.func private @tilted(%u: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64 {
// CHECK-NEXT:    %{{.*}} = arith.mulf %u, %{{.*}} : f64
// CHECK-NEXT:    func.return
// CHECK-LABEL: func.func @wave
// CHECK:         %[[c:.*]] = temporal.scratch : !stencil.field<[0,8]xf64>
// CHECK:         temporal.loop %{{.*}} (%[[m:.*]] = %[[c]]) rotate [0] sweep {
// CHECK-NEXT:      temporal.update %[[m]] = @tilted_once(%T[1]) scalars(%k) in <[0], [8]>
// CHECK:         temporal.loop %n
// CHECK-NEXT:      temporal.update %b = @tilted(%a[0], %[[c]][0]) scalars(%k) in <[0], [8]>
func.func @wave(%n: index, %k: f64, %A: !stencil.field<[-1,9]xf64>, %B: !stencil.field<[-1,9]xf64>, %T: !stencil.field<[0,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @tilted(%a[0], %T[1]) scalars(%k) in <[0], [8]>
  } : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  func.return
}

// -----

func.func private @of_the_buffer(%u: f64) -> f64 {
  %s = math.exp %u : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @stays
// CHECK-NOT:     temporal.scratch
// CHECK:         temporal.update %{{.*}} = @of_the_buffer(%{{.*}}[0]) in <[0], [8]>
func.func @stays(%n: index, %A: !stencil.field<[-1,9]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @of_the_buffer(%a[0]) in <[0], [8]>
  } : !stencil.field<[-1,9]xf64>
  func.return
}

// -----

func.func private @once(%t: f64) -> f64 {
  %s = math.exp %t : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @sweeps
// CHECK-NOT:     temporal.scratch
func.func @sweeps(%one: index, %A: !stencil.field<[-1,9]xf64>, %T: !stencil.field<[0,9]xf64>) {
  temporal.loop %one (%a = %A) rotate [0] sweep {
    temporal.update %a = @once(%T[0]) in <[0], [8]>
  } : !stencil.field<[-1,9]xf64>
  func.return
}

// -----

// No field has conditions as cells: the sine is hoisted, and the comparison stays.

func.func private @where(%u: f64, %t: f64) -> f64 {
  %zero = arith.constant 0.000000e+00 : f64
  %s = math.sin %t : f64
  %c = arith.cmpf olt, %s, %zero : f64
  %r = arith.select %c, %zero, %u : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @where_once(%0: f64) -> f64 {
// CHECK-NEXT:    %{{.*}} = math.sin %0 : f64
// CHECK-NEXT:    func.return
// CHECK-LABEL: func.func private @where(%u: f64, %{{.*}}: f64) -> f64 {
// CHECK:         %[[c:.*]] = arith.cmpf olt, %{{.*}}, %zero : f64
// CHECK-NEXT:    %{{.*}} = arith.select %[[c]], %zero, %u : f64
// CHECK-LABEL: func.func @chooses
// CHECK:         temporal.scratch : !stencil.field<[0,8]xf64>
// CHECK-NOT:     temporal.scratch
func.func @chooses(%n: index, %A: !stencil.field<[-1,9]xf64>, %B: !stencil.field<[-1,9]xf64>, %T: !stencil.field<[0,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @where(%a[0], %T[1]) in <[0], [8]>
  } : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  func.return
}

// -----

// Sines at two places, in two updates, are cells of one field over the box around all places. Two
// updates with a common cell function get a function each.

func.func private @turned(%u: f64, %left: f64, %right: f64) -> f64 {
  %s = math.sin %left : f64
  %t = math.sin %right : f64
  %d = arith.mulf %u, %s : f64
  %r = arith.mulf %d, %t : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @turned_own_once(%0: f64) -> f64 {
// CHECK-NEXT:    %{{.*}} = math.sin %0 : f64
// CHECK-LABEL: func.func @places
// CHECK:         %[[s:.*]] = temporal.scratch : !stencil.field<[0,11]xf64>
// CHECK-NOT:     temporal.scratch
// CHECK:         temporal.update %{{.*}} = @turned_own_once(%T[-1]) in <[0], [11]>
// CHECK:         temporal.loop %n
// CHECK-NEXT:      temporal.update %b = @turned_own(%a[0], %[[s]][0], %[[s]][2]) in <[0], [8]>
// CHECK-NEXT:      temporal.update %c = @turned(%a[1], %[[s]][1], %[[s]][3]) in <[0], [8]>
func.func @places(%n: index, %A: !stencil.field<[-1,9]xf64>, %B: !stencil.field<[-1,9]xf64>, %C: !stencil.field<[-1,9]xf64>, %T: !stencil.field<[-1,10]xf64>) {
  temporal.loop %n (%a = %A, %b = %B, %c = %C) rotate [1, 0, 2] {
    temporal.update %b = @turned(%a[0], %T[-1], %T[1]) in <[0], [8]>
    temporal.update %c = @turned(%a[1], %T[0], %T[2]) in <[0], [8]>
  } : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  func.return
}

// -----

// In a time loop of the host the sines of a field that no step writes are made before the loop. The
// host stores to another field in each step, and one number is made in each step.

func.func private @both(%u: f64, %a: f64, %b: f64, %k: f64) -> f64 {
  %s = math.sin %a : f64
  %t = math.sin %b : f64
  %e = math.exp %k : f64
  %m = arith.mulf %s, %t : f64
  %n = arith.mulf %m, %e : f64
  %r = arith.mulf %u, %n : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func @steps_of_the_host
// CHECK:         temporal.scratch : !stencil.field<[0,8]xf64>
// CHECK-NOT:     temporal.scratch
// CHECK:         temporal.update %{{.*}} = @both_once(%T[0]) in <[0], [8]>
// CHECK:         scf.for
// CHECK:           temporal.update %a = @both(%a[0], %W[0], %{{.*}}[0]) scalars(%k) in <[0], [8]>
func.func @steps_of_the_host(%n: index, %A: !stencil.field<[0,8]xf64>, %T: !stencil.field<[0,8]xf64>, %w: memref<8xf64>, %ks: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %W = builtin.unrealized_conversion_cast %w : memref<8xf64> to !stencil.field<[0,8]xf64>
  scf.for %t = %c0 to %n step %c1 {
    %k = memref.load %ks[%t] : memref<8xf64>
    %r = temporal.loop %c1 (%a = %A) rotate [0] sweep {
      temporal.update %a = @both(%a[0], %T[0], %W[0]) scalars(%k) in <[0], [8]>
    } : !stencil.field<[0,8]xf64>
    memref.store %k, %w[%t] : memref<8xf64>
  } {timetile.time_loop}
  func.return
}
