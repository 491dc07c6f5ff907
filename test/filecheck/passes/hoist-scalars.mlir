// RUN: xdsl-opt %s -p hoist-scalars --split-input-file | filecheck %s

// Quotients and roots of scalars alone are computed by the host, each once, and scalars without
// another reader are gone.

func.func private @heat(%u: f64, %k: f64, %h: f64) -> f64 {
  %s = arith.mulf %h, %h : f64
  %q = arith.divf %k, %s : f64
  %r = arith.mulf %u, %q : f64
  func.return %r : f64
}

func.func private @other(%u: f64, %h: f64, %k: f64) -> f64 {
  %s = arith.mulf %h, %h : f64
  %q = arith.divf %k, %s : f64
  %e = math.sqrt %q : f64
  %p = arith.mulf %u, %h : f64
  %t = arith.divf %p, %e : f64
  %r = arith.addf %t, %q : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @heat(%u: f64, %q: f64) -> f64 {
// CHECK-NEXT:    %r = arith.mulf %u, %q : f64
// CHECK-NEXT:    func.return %r : f64
// CHECK-LABEL: func.func private @other(%u: f64, %h: f64, %q: f64, %e: f64) -> f64 {
// CHECK-NEXT:    %p = arith.mulf %u, %h : f64
// CHECK-NEXT:    %t = arith.divf %p, %e : f64
// CHECK-NEXT:    %r = arith.addf %t, %q : f64
// CHECK-NEXT:    func.return %r : f64
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %s = arith.mulf %h, %h : f64
// CHECK-NEXT:    %q = arith.divf %k, %s : f64
// CHECK-NEXT:    %e = math.sqrt %q : f64
// CHECK-NEXT:    %{{.*}} = temporal.loop %n
// CHECK-NEXT:      temporal.update %b = @heat(%a[0]) scalars(%q) in <[0], [8]>
// CHECK-NEXT:      temporal.update %a = @other(%b[0]) scalars(%h, %q, %e) in <[0], [8]>
func.func @step(%n: index, %k: f64, %h: f64, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [0, 1] {
    temporal.update %b = @heat(%a[0]) scalars(%k, %h) in <[0], [8]>
    temporal.update %a = @other(%b[0]) scalars(%h, %k) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

// Sums and products alone, library functions, approximate quotients, and numbers that change from
// step to step stay in the cell.

func.func private @stays(%u: f64, %k: f64, %h: f64, %t: f64) -> f64 {
  %p = arith.mulf %k, %h : f64
  %a = arith.divf %k, %h fastmath<afn> : f64
  %e = math.exp %k : f64
  %l = arith.divf %e, %h : f64
  %o = arith.divf %k, %t : f64
  %0 = arith.mulf %u, %p : f64
  %1 = arith.addf %0, %a : f64
  %2 = arith.addf %1, %l : f64
  %r = arith.addf %2, %o : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @stays(%u: f64, %k: f64, %h: f64, %t: f64) -> f64 {
// CHECK-LABEL: func.func @series
// CHECK-NEXT:    %{{.*}} = temporal.loop %n
// CHECK-NEXT:      temporal.update %b = @stays(%a[0]) scalars(%k, %h, %series) in <[0], [8]>
func.func @series(%n: index, %k: f64, %h: f64, %series: memref<?xf64>, %A: !stencil.field<[0,8]xf64>, %B: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] {
    temporal.update %b = @stays(%a[0]) scalars(%k, %h, %series) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>, !stencil.field<[0,8]xf64>
  func.return
}

// -----

// Updates of one cell function with other scalars have numbers of their own; a cell may be nothing
// but a number of the host.

func.func private @number(%u: f32, %k: f32) -> f32 {
  %c = arith.constant 3.0 : f32
  %q = arith.divf %k, %c : f32
  func.return %q : f32
}

// CHECK-LABEL: func.func private @number(%u: f32, %q: f32) -> f32 {
// CHECK-NEXT:    func.return %q : f32
// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %c = arith.constant 3.000000e+00 : f32
// CHECK-DAG:     %[[q:.*]] = arith.divf %k, %c : f32
// CHECK-DAG:     %[[p:.*]] = arith.divf %h, %c : f32
// CHECK:         temporal.update %a = @number(%a[0]) scalars(%[[q]]) in <[0], [4]>
// CHECK-NEXT:    temporal.update %a = @number(%a[0]) scalars(%[[p]]) in <[4], [8]>
func.func @twice(%n: index, %k: f32, %h: f32, %A: !stencil.field<[0,8]xf32>) {
  temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @number(%a[0]) scalars(%k) in <[0], [4]>
    temporal.update %a = @number(%a[0]) scalars(%h) in <[4], [8]>
  } : !stencil.field<[0,8]xf32>
  func.return
}

// -----

// Numbers known inside a loop of the host alone stay in the cell: the loop may be machine code.

func.func private @inner(%u: f64, %k: f64, %h: f64) -> f64 {
  %q = arith.divf %k, %h : f64
  %r = arith.mulf %u, %q : f64
  func.return %r : f64
}

// CHECK-LABEL: func.func private @inner(%u: f64, %k: f64, %h: f64) -> f64 {
// CHECK-NEXT:    %q = arith.divf %k, %h : f64
func.func @host(%n: index, %one: index, %h: f64, %A: !stencil.field<[0,8]xf64>) {
  %zero = arith.constant 0 : index
  %begin = arith.constant 1.0 : f64
  %end = scf.for %t = %zero to %n step %one iter_args(%k = %begin) -> (f64) {
    temporal.loop %one (%a = %A) rotate [0] sweep {
      temporal.update %a = @inner(%a[0]) scalars(%k, %h) in <[0], [8]>
    } : !stencil.field<[0,8]xf64>
    %next = arith.addf %k, %k : f64
    scf.yield %next : f64
  }
  func.return
}

// -----

// A divisor of scalars alone is a scalar, too, and the product with another reader stays in the cell.

// CHECK-LABEL: func.func private @spacing(%u: f64, %k: f64, %s: f64) -> f64 {
// CHECK-NEXT:    %p = arith.mulf %k, %k : f64
// CHECK-NEXT:    %v = arith.mulf %u, %p : f64
// CHECK-NEXT:    %q = arith.divf %v, %s : f64
// CHECK:         temporal.update %a = @spacing(%a[0]) scalars(%k, %{{.*}}) in <[0], [8]>
func.func private @spacing(%u: f64, %k: f64, %h: f64) -> f64 {
  %p = arith.mulf %k, %k : f64
  %s = arith.mulf %h, %h : f64
  %v = arith.mulf %u, %p : f64
  %q = arith.divf %v, %s : f64
  func.return %q : f64
}

func.func @divided(%n: index, %k: f64, %h: f64, %A: !stencil.field<[0,8]xf64>) {
  temporal.loop %n (%a = %A) rotate [0] {
    temporal.update %a = @spacing(%a[0]) scalars(%k, %h) in <[0], [8]>
  } : !stencil.field<[0,8]xf64>
  func.return
}
