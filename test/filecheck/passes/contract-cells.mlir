// RUN: xdsl-opt %s -p contract-cells | filecheck %s
// RUN: xdsl-opt %s -p 'contract-cells{fp-contract=on}' | filecheck %s --check-prefix=ON
// RUN: xdsl-opt %s -p 'contract-cells{fp-contract=off}' | filecheck %s --check-prefix=OFF

// Products and sums of the cell functions become math.fma, once and for every schedule. By default
// wherever a product has a single use; with `on` only where both operations allow it; `off`, nowhere.

// The later term of a sum is fused: of two products the right one.
// CHECK-LABEL: func.func private @sum(
// CHECK-SAME:      %[[a:[0-9]+]]: f64, %[[b:[0-9]+]]: f64, %[[c:[0-9]+]]: f64, %[[d:[0-9]+]]: f64)
// CHECK-NEXT:    %[[left:.*]] = arith.mulf %[[a]], %[[b]] : f64
// CHECK-NEXT:    %[[both:.*]] = math.fma %[[c]], %[[d]], %[[left]] : f64
// CHECK-NEXT:    %[[three:.*]] = math.fma %[[a]], %[[d]], %[[both]] : f64
// CHECK-NEXT:    func.return %[[three]] : f64
// ON-LABEL:    func.func private @sum(
// ON-NOT:        math.fma
// OFF-LABEL:   func.func private @sum(
// OFF-NOT:       math.fma
func.func private @sum(%0: f64, %1: f64, %2: f64, %3: f64) -> f64 {
  %4 = arith.mulf %0, %1 : f64
  %5 = arith.mulf %2, %3 : f64
  %6 = arith.addf %4, %5 : f64
  %7 = arith.mulf %0, %3 : f64
  %8 = arith.addf %7, %6 : f64
  func.return %8 : f64
}

// A difference is fused with a negated factor (p - a*b) or addend (a*b - p), which is exact.
// CHECK-LABEL: func.func private @difference(
// CHECK-SAME:      %[[a:[0-9]+]]: f64, %[[b:[0-9]+]]: f64, %[[p:[0-9]+]]: f64)
// CHECK-NEXT:    %[[minus:.*]] = arith.negf %[[a]] : f64
// CHECK-NEXT:    %[[less:.*]] = math.fma %[[minus]], %[[b]], %[[p]] : f64
// CHECK-NEXT:    %[[other:.*]] = arith.negf %[[less]] : f64
// CHECK-NEXT:    %[[more:.*]] = math.fma %[[a]], %[[p]], %[[other]] : f64
// CHECK-NEXT:    func.return %[[more]] : f64
// OFF-LABEL:   func.func private @difference(
// OFF-NOT:       {{math.fma|arith.negf}}
func.func private @difference(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.mulf %0, %1 : f64
  %4 = arith.subf %2, %3 : f64
  %5 = arith.mulf %0, %2 : f64
  %6 = arith.subf %5, %4 : f64
  func.return %6 : f64
}

// A product with two uses is computed anyway, and stays.
// CHECK-LABEL: func.func private @shared
// CHECK-NOT:     math.fma
// CHECK:         func.return
func.func private @shared(%0: f64, %1: f64) -> f64 {
  %2 = arith.mulf %0, %1 : f64
  %3 = arith.addf %2, %0 : f64
  %4 = arith.addf %2, %3 : f64
  func.return %4 : f64
}

// `on`: the flag on both, on the product only, on the sum only.
// ON-LABEL:    func.func private @flags
// ON-NEXT:       math.fma
// ON-NEXT:       arith.mulf
// ON-NEXT:       arith.addf
// ON-NEXT:       arith.mulf
// ON-NEXT:       arith.addf
// ON-NEXT:       func.return
// OFF-LABEL:   func.func private @flags
// OFF-NOT:       math.fma
func.func private @flags(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.mulf %0, %1 fastmath<contract> : f64
  %4 = arith.addf %2, %3 fastmath<contract> : f64
  %5 = arith.mulf %0, %1 fastmath<contract> : f64
  %6 = arith.addf %4, %5 : f64
  %7 = arith.mulf %0, %1 : f64
  %8 = arith.addf %6, %7 fastmath<contract> : f64
  func.return %8 : f64
}

// Only cell functions are touched: what the host computes is the program's own affair.
// CHECK-LABEL: func.func @program
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    arith.addf
// CHECK-NOT:     math.fma
func.func @program(%n: index, %x: f64, %A: !stencil.field<[0,8]xf64>) -> f64 {
  %square = arith.mulf %x, %x : f64
  %sum = arith.addf %square, %x : f64
  temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @sum(%a[0], %a[0], %a[0], %a[0]) in <[0], [8]>
    temporal.update %a = @difference(%a[0], %a[0], %a[0]) in <[0], [8]>
    temporal.update %a = @shared(%a[0], %a[0]) in <[0], [8]>
    temporal.update %a = @flags(%a[0], %a[0], %a[0]) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>
  func.return %sum : f64
}
