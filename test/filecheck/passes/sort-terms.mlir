// RUN: xdsl-opt %s -p 'sort-terms{fp-reassoc=on}' | filecheck %s
// RUN: xdsl-opt %s -p 'sort-terms{fp-reassoc=on},contract-cells' | filecheck %s --check-prefix=FUSED
// RUN: xdsl-opt %s -p sort-terms | filecheck %s --check-prefix=FLAGS
// RUN: xdsl-opt %s -p 'sort-terms{fp-reassoc=off}' | filecheck %s --check-prefix=OFF
// RUN: xdsl-opt %s -p 'sort-terms{fp-reassoc=on order=columns}' | filecheck %s --check-prefix=COLUMNS

// Sums take their terms by planes, then by rows. The sum in a product is sorted first, and the
// product waits for the last plane. A negative product with a constant gets the opposite constant.

// CHECK-LABEL: func.func private @heat(
// CHECK-SAME:      %[[north:[a-z]+]]: f64, %[[south:[a-z]+]]: f64, %[[west:[a-z]+]]: f64, %[[east:[a-z]+]]: f64, %[[here:[a-z]+]]: f64, %[[k:[a-z]+]]: f64)
// CHECK-NEXT:    %[[minus:.*]] = arith.constant -4.000000e+00 : f64
// CHECK-NEXT:    %[[product:.*]] = arith.mulf %[[here]], %[[minus]] : f64
// CHECK-NEXT:    %[[s0:.*]] = arith.addf %[[north]], %[[west]] : f64
// CHECK-NEXT:    %[[s1:.*]] = arith.addf %[[s0]], %[[product]] : f64
// CHECK-NEXT:    %[[s2:.*]] = arith.addf %[[s1]], %[[east]] : f64
// CHECK-NEXT:    %[[s3:.*]] = arith.addf %[[s2]], %[[south]] : f64
// CHECK-NEXT:    %[[all:.*]] = arith.mulf %[[k]], %[[s3]] : f64
// CHECK-NEXT:    %[[new:.*]] = arith.addf %[[here]], %[[all]] : f64
// CHECK-NEXT:    func.return %[[new]] : f64
// In the order of columns, the cell in the west comes first, and the cell in the east last.
// COLUMNS-LABEL: func.func private @heat(
// COLUMNS:         %[[s0:.*]] = arith.addf %west, %north : f64
// COLUMNS-NEXT:    %[[s1:.*]] = arith.addf %[[s0]], %{{.*}} : f64
// COLUMNS-NEXT:    %[[s2:.*]] = arith.addf %[[s1]], %south : f64
// COLUMNS-NEXT:    %[[s3:.*]] = arith.addf %[[s2]], %east : f64
// FUSED-LABEL: func.func private @heat(
// FUSED:         %[[s0:.*]] = arith.addf %north, %west : f64
// FUSED-NEXT:    %[[s1:.*]] = math.fma %here, %{{.*}}, %[[s0]] : f64
// FUSED-NEXT:    %[[s2:.*]] = arith.addf %[[s1]], %east : f64
// FUSED-NEXT:    %[[s3:.*]] = arith.addf %[[s2]], %south : f64
// FUSED-NEXT:    math.fma %k, %[[s3]], %here : f64
// FLAGS-LABEL: func.func private @heat(
// FLAGS:         %{{.*}} = arith.addf %south, %north : f64
// OFF-LABEL:   func.func private @heat(
// OFF:           %{{.*}} = arith.addf %south, %north : f64
func.func private @heat(%north: f64, %south: f64, %west: f64, %east: f64, %here: f64, %k: f64) -> f64 {
  %c = arith.constant 4.0 : f64
  %0 = arith.addf %south, %north : f64
  %1 = arith.addf %0, %east : f64
  %2 = arith.addf %1, %west : f64
  %3 = arith.mulf %c, %here : f64
  %4 = arith.subf %2, %3 : f64
  %5 = arith.mulf %k, %4 : f64
  %6 = arith.addf %5, %here : f64
  func.return %6 : f64
}

// By default, only operations with the flag `reassoc` are sorted, and the sorted sum keeps the flags.
// A difference of cells at one place keeps its order. A sum ends at an operation without the flag.
// FLAGS-LABEL: func.func private @flags(
// FLAGS-NEXT:    %[[s0:.*]] = arith.addf %n, %h fastmath<reassoc> : f64
// FLAGS-NEXT:    %[[s1:.*]] = arith.addf %[[s0]], %s fastmath<reassoc> : f64
// FLAGS-NEXT:    %[[t0:.*]] = arith.addf %s, %n : f64
// FLAGS-NEXT:    %[[t1:.*]] = arith.addf %h, %[[t0]] fastmath<reassoc> : f64
// FLAGS-NEXT:    func.return
// OFF-LABEL:   func.func private @flags(
// OFF-NEXT:      arith.addf %s, %n fastmath<reassoc,contract> : f64
func.func private @flags(%n: f64, %h: f64, %s: f64) -> (f64, f64) {
  %0 = arith.addf %s, %n fastmath<reassoc,contract> : f64
  %1 = arith.addf %0, %h fastmath<reassoc> : f64
  %2 = arith.addf %s, %n : f64
  %3 = arith.addf %2, %h fastmath<reassoc> : f64
  func.return %1, %3 : f64, f64
}

// A sum with a second reader is computed anyway, and stays; scalars come first; the first of two
// negative terms is negated.
// CHECK-LABEL: func.func private @rest(
// CHECK-NEXT:    %[[twice:.*]] = arith.addf %n, %s : f64
// CHECK-NEXT:    %[[one:.*]] = arith.addf %k, %h : f64
// CHECK-NEXT:    %[[two:.*]] = arith.addf %[[one]], %[[twice]] : f64
// CHECK-NEXT:    %[[minus:.*]] = arith.negf %n : f64
// CHECK-NEXT:    %[[three:.*]] = arith.subf %[[minus]], %h : f64
// CHECK-NEXT:    %[[four:.*]] = arith.subf %[[three]], %[[twice]] : f64
// CHECK-NEXT:    %[[five:.*]] = arith.subf %h, %n : f64
// CHECK-NEXT:    func.return %[[two]], %[[four]], %[[five]]
func.func private @rest(%n: f64, %h: f64, %s: f64, %k: f64) -> (f64, f64, f64) {
  %0 = arith.addf %n, %s : f64
  %1 = arith.addf %0, %h : f64
  %2 = arith.addf %1, %k : f64
  %3 = arith.addf %0, %h : f64
  %4 = arith.addf %3, %n : f64
  %5 = arith.negf %4 : f64
  %6 = arith.subf %h, %n : f64
  func.return %2, %5, %6 : f64, f64, f64
}

// Updates with equal functions and different offsets have a function each.
// CHECK-LABEL: func.func private @two(
// CHECK-NEXT:    %[[s0:.*]] = arith.addf %b, %c : f64
// CHECK-NEXT:    arith.addf %[[s0]], %a : f64
// CHECK:       func.func private @two_1(
// CHECK-NEXT:    %[[t0:.*]] = arith.addf %a, %b : f64
// CHECK-NEXT:    arith.addf %[[t0]], %c : f64
func.func private @two(%a: f64, %b: f64, %c: f64) -> f64 {
  %0 = arith.addf %a, %b : f64
  %1 = arith.addf %0, %c : f64
  func.return %1 : f64
}

// CHECK-LABEL: func.func @program
// CHECK:         temporal.update %{{.*}} = @two(%{{.*}}[1, 0], %{{.*}}[-1, 0], %{{.*}}[0, 0])
// CHECK-NEXT:    temporal.update %{{.*}} = @two_1(%{{.*}}[-1, 0], %{{.*}}[0, 0], %{{.*}}[0, 1])
func.func @program(%n: index, %k: f64, %A: !stencil.field<[-1,9]x[-1,9]xf64>, %B: !stencil.field<[-1,9]x[-1,9]xf64>, %C: !stencil.field<[-1,9]x[-1,9]xf64>, %D: !stencil.field<[-1,9]x[-1,9]xf64>) {
  temporal.loop %n (%a = %A, %b = %B, %c = %C, %d = %D) rotate [1, 0, 2, 3] {
    temporal.update %b = @heat(%a[-1, 0], %a[1, 0], %a[0, -1], %a[0, 1], %a[0, 0]) scalars(%k) in <[0, 0], [8, 8]>
    temporal.update %b, %c = @flags(%a[-1, 0], %a[0, 0], %a[1, 0]) in <[0, 0], [8, 8]>
    temporal.update %d, %b, %c = @rest(%a[-1, 0], %a[0, 0], %a[1, 0]) scalars(%k) in <[0, 0], [8, 8]>
    temporal.update %b = @two(%a[1, 0], %a[-1, 0], %a[0, 0]) in <[0, 0], [8, 8]>
    temporal.update %b = @two(%a[-1, 0], %a[0, 0], %a[0, 1]) in <[0, 0], [8, 8]>
  } : !stencil.field<[-1,9]x[-1,9]xf64>, !stencil.field<[-1,9]x[-1,9]xf64>, !stencil.field<[-1,9]x[-1,9]xf64>, !stencil.field<[-1,9]x[-1,9]xf64>
  func.return
}
