// RUN: xdsl-opt %s -p 'factor-sums{fp-reassoc=on}' | filecheck %s
// RUN: xdsl-opt %s -p factor-sums | filecheck %s --check-prefix=FLAGS
// RUN: xdsl-opt %s -p 'factor-sums{fp-reassoc=off}' | filecheck %s --check-prefix=OFF

// Terms of one plane and one weight are joined, opposite weights as a difference; terms of other
// planes are not. A scalar is a weight, too.

// CHECK-LABEL: func.func private @join(
// CHECK-NEXT:    %[[c:.*]] = arith.constant 2.500000e-01 : f64
// CHECK-NEXT:    %[[next:.*]] = arith.mulf %[[c]], %n : f64
// CHECK-NEXT:    %[[t:.*]] = arith.addf %w, %h : f64
// CHECK-NEXT:    %[[q:.*]] = arith.mulf %k, %[[t]] : f64
// CHECK-NEXT:    %[[quarter:.*]] = arith.constant 2.500000e-01 : f64
// CHECK-NEXT:    %[[d:.*]] = arith.subf %e, %w : f64
// CHECK-NEXT:    %[[p:.*]] = arith.mulf %[[quarter]], %[[d]] : f64
// CHECK-NEXT:    %[[s:.*]] = arith.subf %[[next]], %[[q]] : f64
// CHECK-NEXT:    %[[r:.*]] = arith.addf %[[s]], %[[p]] : f64
// CHECK-NEXT:    func.return %[[r]] : f64
// FLAGS-LABEL: func.func private @join(
// FLAGS:         arith.addf %{{.*}}, %{{.*}} : f64
// FLAGS-NOT:     arith.subf %e, %w
func.func private @join(%w: f64, %h: f64, %e: f64, %n: f64, %k: f64) -> f64 {
  %c = arith.constant 0.25 : f64
  %d = arith.constant -0.25 : f64
  %0 = arith.mulf %d, %w : f64
  %1 = arith.mulf %c, %e : f64
  %2 = arith.mulf %c, %n : f64
  %3 = arith.mulf %k, %w : f64
  %4 = arith.mulf %h, %k : f64
  %5 = arith.addf %0, %1 : f64
  %6 = arith.addf %5, %2 : f64
  %7 = arith.subf %6, %3 : f64
  %8 = arith.subf %7, %4 : f64
  func.return %8 : f64
}

// Permission is needed on all sums and products.
// FLAGS-LABEL: func.func private @flags(
// FLAGS:         %[[t:.*]] = arith.addf %w, %e fastmath<reassoc> : f64
// FLAGS-NEXT:    %[[p:.*]] = arith.mulf %k, %[[t]] fastmath<reassoc> : f64
// FLAGS:         arith.addf
// FLAGS-SAME:      fastmath<reassoc> : f64
func.func private @flags(%w: f64, %h: f64, %e: f64, %k: f64) -> f64 {
  %0 = arith.mulf %k, %w fastmath<reassoc> : f64
  %1 = arith.mulf %k, %e fastmath<reassoc> : f64
  %2 = arith.mulf %k, %h : f64
  %3 = arith.addf %0, %1 fastmath<reassoc> : f64
  %4 = arith.addf %3, %2 fastmath<reassoc> : f64
  func.return %4 : f64
}

// The weight of a sum of several planes is spread over its terms, and cells of one plane are joined;
// the sum of one plane keeps its weight. A coefficient of terms of one plane is taken once.
// CHECK-LABEL: func.func private @spread(
// CHECK:         %[[three:.*]] = arith.mulf %{{.*}}, %se : f64
// CHECK:         %[[north:.*]] = arith.subf %nw, %ne : f64
// CHECK-NEXT:    %[[early:.*]] = arith.mulf %{{.*}}, %[[north]] : f64
// CHECK:         %[[south:.*]] = arith.subf %se, %sw : f64
// CHECK-NEXT:    %[[late:.*]] = arith.mulf %{{.*}}, %[[south]] : f64
// CHECK-NEXT:    %[[s:.*]] = arith.addf %[[three]], %[[early]] : f64
// CHECK-NEXT:    %[[t:.*]] = arith.addf %[[s]], %[[late]] : f64
// CHECK-NEXT:    %[[p:.*]] = arith.mulf %m, %[[t]] : f64
// CHECK-NEXT:    arith.addf %h, %[[p]] : f64
// OFF-LABEL:   func.func private @spread(
// OFF:           arith.mulf %m
func.func private @spread(%nw: f64, %ne: f64, %sw: f64, %se: f64, %m: f64, %h: f64) -> f64 {
  %c = arith.constant 0.5 : f64
  %d = arith.constant 3.0 : f64
  %0 = arith.subf %nw, %ne : f64
  %1 = arith.subf %se, %sw : f64
  %2 = arith.addf %0, %1 : f64
  %3 = arith.mulf %c, %2 : f64
  %4 = arith.mulf %m, %3 : f64
  %5 = arith.mulf %d, %m : f64
  %6 = arith.mulf %5, %se : f64
  %7 = arith.addf %h, %4 : f64
  %8 = arith.addf %7, %6 : f64
  func.return %8 : f64
}

// Sixteen weights of rank 1: the sum along the last axis is an update of its own, into a field of
// the cells read by the sum of rows.
// CHECK-LABEL: func.func private @grid_line(
// CHECK-SAME:      %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK-LABEL: func.func private @grid(
// CHECK-SAME:      %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64) -> f64
// CHECK:         arith.constant 1.000000e+01 : f64
// CHECK:         arith.constant 2.000000e+01 : f64
// CHECK:         arith.constant 3.000000e+01 : f64
// CHECK:         arith.constant 4.000000e+01 : f64
func.func private @grid(%0: f64, %1: f64, %2: f64, %3: f64, %4: f64, %5: f64, %6: f64, %7: f64, %8: f64, %9: f64, %10: f64, %11: f64, %12: f64, %13: f64, %14: f64, %15: f64) -> f64 {
  %c1 = arith.constant 1.0 : f64
  %c2 = arith.constant 2.0 : f64
  %c3 = arith.constant 3.0 : f64
  %c4 = arith.constant 4.0 : f64
  %c5 = arith.constant 5.0 : f64
  %c6 = arith.constant 6.0 : f64
  %c8 = arith.constant 8.0 : f64
  %c9 = arith.constant 9.0 : f64
  %c10 = arith.constant 10.0 : f64
  %c12 = arith.constant 12.0 : f64
  %c15 = arith.constant 15.0 : f64
  %c16 = arith.constant 16.0 : f64
  %c20 = arith.constant 20.0 : f64
  %c30 = arith.constant 30.0 : f64
  %c40 = arith.constant 40.0 : f64
  %p1 = arith.mulf %c2, %1 : f64
  %p2 = arith.mulf %c3, %2 : f64
  %p3 = arith.mulf %c10, %3 : f64
  %p4 = arith.mulf %c2, %4 : f64
  %p5 = arith.mulf %c4, %5 : f64
  %p6 = arith.mulf %c6, %6 : f64
  %p7 = arith.mulf %c20, %7 : f64
  %p8 = arith.mulf %c3, %8 : f64
  %p9 = arith.mulf %c6, %9 : f64
  %p10 = arith.mulf %c9, %10 : f64
  %p11 = arith.mulf %c30, %11 : f64
  %p12 = arith.mulf %c4, %12 : f64
  %p13 = arith.mulf %c8, %13 : f64
  %p14 = arith.mulf %c12, %14 : f64
  %p15 = arith.mulf %c40, %15 : f64
  %s1 = arith.addf %0, %p1 : f64
  %s2 = arith.addf %s1, %p2 : f64
  %s3 = arith.addf %s2, %p3 : f64
  %s4 = arith.addf %s3, %p4 : f64
  %s5 = arith.addf %s4, %p5 : f64
  %s6 = arith.addf %s5, %p6 : f64
  %s7 = arith.addf %s6, %p7 : f64
  %s8 = arith.addf %s7, %p8 : f64
  %s9 = arith.addf %s8, %p9 : f64
  %s10 = arith.addf %s9, %p10 : f64
  %s11 = arith.addf %s10, %p11 : f64
  %s12 = arith.addf %s11, %p12 : f64
  %s13 = arith.addf %s12, %p13 : f64
  %s14 = arith.addf %s13, %p14 : f64
  %s15 = arith.addf %s14, %p15 : f64
  func.return %s15 : f64
}

// CHECK-LABEL: func.func @program
// CHECK:         %[[line:.*]] = temporal.scratch : !stencil.field<[-1,10]x[0,8]xf64>
// CHECK-NEXT:    temporal.loop %n (%a = %A, %b = %B, %[[l:.*]] = %[[line]]) rotate [1, 0, 2] {
// CHECK:           temporal.update %[[l]] = @grid_line(%a[0, -1], %a[0, 0], %a[0, 1], %a[0, 2]) in <[-1, 0], [10, 8]>
// CHECK-NEXT:      temporal.update %b = @grid(%[[l]][-1, 0], %[[l]][0, 0], %[[l]][1, 0], %[[l]][2, 0]) in <[0, 0], [8, 8]>
// OFF-LABEL:   func.func @program
// OFF-NOT:       temporal.scratch
func.func @program(%n: index, %k: f64, %A: !stencil.field<[-1,10]x[-1,10]xf64>, %B: !stencil.field<[-1,10]x[-1,10]xf64>, %m: !stencil.field<[-1,10]x[-1,10]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @join(%a[0, -1], %a[0, 0], %a[0, 1], %a[1, 0]) scalars(%k) in <[0, 0], [8, 8]>
    temporal.update %b = @flags(%a[0, -1], %a[0, 0], %a[0, 1]) scalars(%k) in <[0, 0], [8, 8]>
    temporal.update %b = @spread(%a[-1, -1], %a[-1, 1], %a[1, -1], %a[1, 1], %m[0, 0], %a[0, 0]) in <[0, 0], [8, 8]>
    temporal.update %b = @grid(%a[-1, -1], %a[-1, 0], %a[-1, 1], %a[-1, 2], %a[0, -1], %a[0, 0], %a[0, 1], %a[0, 2], %a[1, -1], %a[1, 0], %a[1, 1], %a[1, 2], %a[2, -1], %a[2, 0], %a[2, 1], %a[2, 2]) in <[0, 0], [8, 8]>
  } : !stencil.field<[-1,10]x[-1,10]xf64>, !stencil.field<[-1,10]x[-1,10]xf64>
  func.return
}
