// RUN: xdsl-opt %s -p "share-places" --split-input-file | filecheck %s

// A sum of many operations at three places of a cell is made once for each place, into a field that
// the loop carries. A cell with less to save stays as it is. Sweeps in steps of the host share values,
// too, and a sweep that runs once does not. Loops with a common cell function get a function each.

func.func private @sums(%a: f64, %b: f64, %c: f64, %d: f64, %k: f64) -> f64 {
  %a0 = arith.mulf %b, %k : f64
  %a1 = arith.addf %a0, %c : f64
  %a2 = arith.mulf %a1, %c : f64
  %a3 = arith.addf %a2, %c : f64
  %a4 = arith.mulf %a3, %c : f64
  %a5 = arith.addf %a4, %c : f64
  %a6 = arith.mulf %a5, %c : f64
  %a7 = arith.addf %a6, %c : f64
  %a8 = arith.mulf %a7, %c : f64
  %a9 = arith.addf %a8, %c : f64
  %a10 = arith.mulf %a9, %c : f64
  %a11 = arith.addf %a10, %c : f64
  %a12 = arith.mulf %a11, %c : f64
  %a13 = arith.addf %a12, %c : f64
  %a14 = arith.mulf %a13, %c : f64
  %a15 = arith.addf %a14, %c : f64
  %a16 = arith.mulf %a15, %c : f64
  %a17 = arith.addf %a16, %c : f64
  %a18 = arith.mulf %a17, %c : f64
  %a19 = arith.addf %a18, %c : f64
  %a20 = arith.mulf %a19, %c : f64
  %a21 = arith.addf %a20, %c : f64
  %a22 = arith.mulf %a21, %c : f64
  %a23 = arith.addf %a22, %c : f64
  %a24 = arith.mulf %a23, %c : f64
  %a25 = arith.addf %a24, %c : f64
  %a26 = arith.mulf %a25, %c : f64
  %a27 = arith.addf %a26, %c : f64
  %a28 = arith.mulf %a27, %c : f64
  %a29 = arith.addf %a28, %c : f64
  %a30 = arith.mulf %a29, %c : f64
  %a31 = arith.addf %a30, %c : f64
  %a32 = arith.mulf %a31, %c : f64
  %a33 = arith.addf %a32, %c : f64
  %a34 = arith.mulf %a33, %c : f64
  %a35 = arith.addf %a34, %c : f64
  %a36 = arith.mulf %a35, %c : f64
  %a37 = arith.addf %a36, %c : f64
  %a38 = arith.mulf %a37, %c : f64
  %a39 = arith.addf %a38, %c : f64
  %b0 = arith.mulf %a, %k : f64
  %b1 = arith.addf %b0, %b : f64
  %b2 = arith.mulf %b1, %b : f64
  %b3 = arith.addf %b2, %b : f64
  %b4 = arith.mulf %b3, %b : f64
  %b5 = arith.addf %b4, %b : f64
  %b6 = arith.mulf %b5, %b : f64
  %b7 = arith.addf %b6, %b : f64
  %b8 = arith.mulf %b7, %b : f64
  %b9 = arith.addf %b8, %b : f64
  %b10 = arith.mulf %b9, %b : f64
  %b11 = arith.addf %b10, %b : f64
  %b12 = arith.mulf %b11, %b : f64
  %b13 = arith.addf %b12, %b : f64
  %b14 = arith.mulf %b13, %b : f64
  %b15 = arith.addf %b14, %b : f64
  %b16 = arith.mulf %b15, %b : f64
  %b17 = arith.addf %b16, %b : f64
  %b18 = arith.mulf %b17, %b : f64
  %b19 = arith.addf %b18, %b : f64
  %b20 = arith.mulf %b19, %b : f64
  %b21 = arith.addf %b20, %b : f64
  %b22 = arith.mulf %b21, %b : f64
  %b23 = arith.addf %b22, %b : f64
  %b24 = arith.mulf %b23, %b : f64
  %b25 = arith.addf %b24, %b : f64
  %b26 = arith.mulf %b25, %b : f64
  %b27 = arith.addf %b26, %b : f64
  %b28 = arith.mulf %b27, %b : f64
  %b29 = arith.addf %b28, %b : f64
  %b30 = arith.mulf %b29, %b : f64
  %b31 = arith.addf %b30, %b : f64
  %b32 = arith.mulf %b31, %b : f64
  %b33 = arith.addf %b32, %b : f64
  %b34 = arith.mulf %b33, %b : f64
  %b35 = arith.addf %b34, %b : f64
  %b36 = arith.mulf %b35, %b : f64
  %b37 = arith.addf %b36, %b : f64
  %b38 = arith.mulf %b37, %b : f64
  %b39 = arith.addf %b38, %b : f64
  %c0 = arith.mulf %c, %k : f64
  %c1 = arith.addf %c0, %d : f64
  %c2 = arith.mulf %c1, %d : f64
  %c3 = arith.addf %c2, %d : f64
  %c4 = arith.mulf %c3, %d : f64
  %c5 = arith.addf %c4, %d : f64
  %c6 = arith.mulf %c5, %d : f64
  %c7 = arith.addf %c6, %d : f64
  %c8 = arith.mulf %c7, %d : f64
  %c9 = arith.addf %c8, %d : f64
  %c10 = arith.mulf %c9, %d : f64
  %c11 = arith.addf %c10, %d : f64
  %c12 = arith.mulf %c11, %d : f64
  %c13 = arith.addf %c12, %d : f64
  %c14 = arith.mulf %c13, %d : f64
  %c15 = arith.addf %c14, %d : f64
  %c16 = arith.mulf %c15, %d : f64
  %c17 = arith.addf %c16, %d : f64
  %c18 = arith.mulf %c17, %d : f64
  %c19 = arith.addf %c18, %d : f64
  %c20 = arith.mulf %c19, %d : f64
  %c21 = arith.addf %c20, %d : f64
  %c22 = arith.mulf %c21, %d : f64
  %c23 = arith.addf %c22, %d : f64
  %c24 = arith.mulf %c23, %d : f64
  %c25 = arith.addf %c24, %d : f64
  %c26 = arith.mulf %c25, %d : f64
  %c27 = arith.addf %c26, %d : f64
  %c28 = arith.mulf %c27, %d : f64
  %c29 = arith.addf %c28, %d : f64
  %c30 = arith.mulf %c29, %d : f64
  %c31 = arith.addf %c30, %d : f64
  %c32 = arith.mulf %c31, %d : f64
  %c33 = arith.addf %c32, %d : f64
  %c34 = arith.mulf %c33, %d : f64
  %c35 = arith.addf %c34, %d : f64
  %c36 = arith.mulf %c35, %d : f64
  %c37 = arith.addf %c36, %d : f64
  %c38 = arith.mulf %c37, %d : f64
  %c39 = arith.addf %c38, %d : f64
  %ab = arith.mulf %a39, %b39 : f64
  %r = arith.addf %ab, %c39 : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @sums_own_once(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64 {
// CHECK-LABEL: func.func private @sums_own(%{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %k: f64) -> f64 {
// CHECK-NEXT:    %ab = arith.mulf %{{.*}}, %{{.*}} : f64
// CHECK-NEXT:    %r = arith.addf %ab, %{{.*}} : f64
// CHECK-LABEL: func.func @shared
// CHECK:         %[[f:.*]] = temporal.scratch : !stencil.field<[-1,10]xf64>
// CHECK:         temporal.loop %n (%u = %U, %v = %V, %[[s:.*]] = %[[f]]) rotate [1, 0, 2] {
// CHECK-NEXT:      temporal.update %[[s]] = @sums_own_once(%u[0], %u[1]) scalars(%k) in <[-1], [9]>
// CHECK-NEXT:      temporal.update %v = @sums_own(%[[s]][0], %[[s]][-1], %[[s]][1]) scalars(%k) in <[0], [8]>
func.func @shared(%n: index, %k: f64, %U: !stencil.field<[-1,10]xf64>, %V: !stencil.field<[-1,10]xf64>) {
  temporal.loop %n (%u = %U, %v = %V) rotate [1, 0] {
    temporal.update %v = @sums(%u[-1], %u[0], %u[1], %u[2]) scalars(%k) in <[0], [8]>
  } : !stencil.field<[-1,10]xf64>, !stencil.field<[-1,10]xf64>
  func.return
}

// CHECK-LABEL: func.func @in_steps_of_the_host
// CHECK:         %[[h:.*]] = temporal.scratch : !stencil.field<[-1,10]xf64>
// CHECK-NEXT:    scf.for
// CHECK:           temporal.loop %c1 (%v = %V, %[[t:.*]] = %[[h]]) rotate [0, 1] sweep {
// CHECK-NEXT:        temporal.update %[[t]] = @{{.*}}(%U[0], %U[1]) scalars(%k) in <[-1], [9]>
// CHECK-NEXT:        temporal.update %v = @{{.*}}(%[[t]][0], %[[t]][-1], %[[t]][1]) scalars(%k) in <[0], [8]>
// CHECK-LABEL: func.func @once
// CHECK-NOT:     temporal.scratch
func.func @in_steps_of_the_host(%n: index, %k: f64, %U: !stencil.field<[-1,10]xf64>, %V: !stencil.field<[-1,10]xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %r = temporal.loop %c1 (%v = %V) rotate [0] sweep {
      temporal.update %v = @sums(%U[-1], %U[0], %U[1], %U[2]) scalars(%k) in <[0], [8]>
    } : !stencil.field<[-1,10]xf64>
  } {timetile.time_loop}
  func.return
}
func.func @once(%k: f64, %U: !stencil.field<[-1,10]xf64>, %V: !stencil.field<[-1,10]xf64>) {
  %c1 = arith.constant 1 : index
  %r = temporal.loop %c1 (%v = %V) rotate [0] sweep {
    temporal.update %v = @sums(%U[-1], %U[0], %U[1], %U[2]) scalars(%k) in <[0], [8]>
  } : !stencil.field<[-1,10]xf64>
  func.return
}

// -----

func.func private @short(%a: f64, %b: f64, %c: f64, %d: f64) -> f64 {
  %p = arith.subf %b, %a : f64
  %q = arith.subf %c, %b : f64
  %s = arith.subf %d, %c : f64
  %e = arith.addf %p, %q : f64
  %r = arith.addf %e, %s : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func @stays
// CHECK-NOT:     temporal.scratch
func.func @stays(%n: index, %U: !stencil.field<[-1,10]xf64>, %V: !stencil.field<[-1,10]xf64>) {
  temporal.loop %n (%u = %U, %v = %V) rotate [1, 0] {
    temporal.update %v = @short(%u[-1], %u[0], %u[1], %u[2]) in <[0], [8]>
  } : !stencil.field<[-1,10]xf64>, !stencil.field<[-1,10]xf64>
  func.return
}

// -----

// A quotient is a dozen instructions: four places of it are worth a field.

func.func private @speeds(%a: f64, %b: f64, %c: f64, %d: f64, %p: f64, %q: f64, %r: f64, %s: f64) -> f64 {
  %pa = arith.divf %p, %a : f64
  %qb = arith.divf %q, %b : f64
  %rc = arith.divf %r, %c : f64
  %sd = arith.divf %s, %d : f64
  %low = arith.addf %pa, %qb : f64
  %high = arith.addf %rc, %sd : f64
  %sum = arith.addf %low, %high : f64
  func.return %sum : f64
}

// CHECK-LABEL: func.func @quotients
// CHECK:         temporal.update %[[s:.*]] = @speeds_once(%h[-1], %p[-1]) in <[0], [11]>
// CHECK-NEXT:    temporal.update %v = @speeds(%[[s]][0], %[[s]][1], %[[s]][2], %[[s]][3]) in <[0], [8]>
func.func @quotients(%n: index, %H: !stencil.field<[-1,10]xf64>, %P: !stencil.field<[-1,10]xf64>, %V: !stencil.field<[-1,10]xf64>) {
  temporal.loop %n (%h = %H, %p = %P, %v = %V) rotate [0, 1, 2] {
    temporal.update %v = @speeds(%h[-1], %h[0], %h[1], %h[2], %p[-1], %p[0], %p[1], %p[2]) in <[0], [8]>
  } : !stencil.field<[-1,10]xf64>, !stencil.field<[-1,10]xf64>, !stencil.field<[-1,10]xf64>
  func.return
}
