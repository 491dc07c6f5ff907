// RUN: xdsl-opt %s -p cut-sweeps --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// Lines of a single thread have a remark, and parts of other cells are refused.

// CHECK: temporal.sweep in @ordered: the line is work for a single thread: its terms have an order of their own; allow another order with fp_reassoc=on, and the line goes on side by side
func.func private @sum(%before: f64, %u: f64) -> f64 {
  %s = arith.addf %u, %before : f64
  func.return %s : f64
}
func.func @ordered(%s: !stencil.field<[0,5000]xf64>, %u: !stencil.field<[0,5000]xf64>) {
  temporal.sweep %s = @sum(%s[-1], %u[0]) along 0 ascending in <[1], [5000]>
  func.return
}

// -----

// CHECK: temporal.sweep in @turning: the line is work for a single thread: its cells are no sum, product, minimum, maximum or a * before + b of the value before; write the cell as one of these
func.func private @turned(%before: f64, %u: f64) -> f64 {
  %s = arith.subf %u, %before fastmath<reassoc> : f64
  func.return %s : f64
}
func.func @turning(%s: !stencil.field<[0,5000]xf64>, %u: !stencil.field<[0,5000]xf64>) {
  temporal.sweep %s = @turned(%s[-1], %u[0]) along 0 ascending in <[1], [5000]>
  func.return
}

// -----

// CHECK: temporal.sweep in @parts: a sweep in parts has a cell that is a sum, product, minimum, maximum or a * before + b of the value before; leave out parts
func.func private @turned(%before: f64, %u: f64) -> f64 {
  %s = arith.subf %u, %before : f64
  func.return %s : f64
}
func.func @parts(%s: !stencil.field<[0,5000]xf64>, %u: !stencil.field<[0,5000]xf64>) {
  temporal.sweep %s = @turned(%s[-1], %u[0]) along 0 ascending parts in <[1], [5000]>
  func.return
}
