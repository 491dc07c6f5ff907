// RUN: xdsl-opt %s -p cut-sweeps | filecheck %s
// RUN: xdsl-opt %s -p 'cut-sweeps{fp-reassoc=on}' | filecheck %s --check-prefix=ON
// RUN: xdsl-opt %s -p 'cut-sweeps{fp-reassoc=off}' | filecheck %s --check-prefix=OFF

// A long line of sums that allow another order is cut into parts, and sums of integers always; a short line, a difference, and a
// line that reads a value two places before are not.

!line = !stencil.field<[0,5000]xf64>
!whole = !stencil.field<[0,5000]xi32>

func.func private @allowed(%before: f64, %u: f64) -> f64 {
  %s = arith.addf %before, %u fastmath<reassoc> : f64
  func.return %s : f64
}

func.func private @ordered(%before: f64, %u: f64) -> f64 {
  %k = arith.constant 0.5 : f64
  %p = arith.mulf %k, %before : f64
  %s = arith.addf %u, %p : f64
  func.return %s : f64
}

func.func private @counted(%before: i32, %u: i32) -> i32 {
  %s = arith.addi %u, %before : i32
  func.return %s : i32
}

func.func private @turned(%before: f64, %u: f64) -> f64 {
  %s = arith.subf %u, %before fastmath<reassoc> : f64
  func.return %s : f64
}

// CHECK-LABEL: func.func @lines
// ON-LABEL:    func.func @lines
// OFF-LABEL:   func.func @lines
func.func @lines(%s: !line, %u: !line, %n: !whole, %m: !whole) {
  // CHECK-NEXT: along 0 ascending parts in <[1], [5000]>
  // ON-NEXT:    along 0 ascending parts in <[1], [5000]>
  // OFF-NEXT:   along 0 ascending in <[1], [5000]>
  temporal.sweep %s = @allowed(%s[-1], %u[0]) along 0 ascending in <[1], [5000]>
  // CHECK-NEXT: along 0 descending in <[0], [4999]>
  // ON-NEXT:    along 0 descending parts in <[0], [4999]>
  // OFF-NEXT:   along 0 descending in <[0], [4999]>
  temporal.sweep %s = @ordered(%s[1], %u[0]) along 0 descending in <[0], [4999]>
  // CHECK-NEXT: along 0 ascending parts in <[1], [5000]>
  // ON-NEXT:    along 0 ascending parts in <[1], [5000]>
  // OFF-NEXT:   along 0 ascending parts in <[1], [5000]>
  temporal.sweep %n = @counted(%n[-1], %m[0]) along 0 ascending in <[1], [5000]>
  // CHECK-NEXT: along 0 ascending in <[1], [4000]>
  // ON-NEXT:    along 0 ascending in <[1], [4000]>
  temporal.sweep %s = @allowed(%s[-1], %u[0]) along 0 ascending in <[1], [4000]>
  // CHECK-NEXT: along 0 ascending in <[2], [5000]>
  // ON-NEXT:    along 0 ascending in <[2], [5000]>
  temporal.sweep %s = @allowed(%s[-2], %u[0]) along 0 ascending in <[2], [5000]>
  // CHECK-NEXT: along 0 ascending in <[1], [5000]>
  // ON-NEXT:    along 0 ascending in <[1], [5000]>
  temporal.sweep %s = @turned(%s[-1], %u[0]) along 0 ascending in <[1], [5000]>
  func.return
}
