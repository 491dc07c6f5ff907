// RUN: xdsl-opt %s -p inline-calls | filecheck %s
// RUN: xdsl-opt %s -p inline-calls,raise-time-loop 2>&1 | filecheck %s --check-prefix=SAID
// RUN: xdsl-opt %s -p raise-time-loop 2>&1 | filecheck %s --check-prefix=BEFORE

// A function called by a cell is copied into the cell, with the functions it calls, and erased if unused.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-NOT:   func.func private @half(
// CHECK-NOT:   func.func private @quarter_and_sum(
func.func private @half(%q: f64) -> f64 {
  %h = arith.constant 0.5 : f64
  %m = arith.mulf %h, %q : f64
  func.return %m : f64
}
func.func private @quarter_and_sum(%q: f64, %r: f64) -> (f64, f64) {
  %h = func.call @half(%q) : (f64) -> f64
  %m = func.call @half(%h) : (f64) -> f64
  %s = arith.addf %q, %r : f64
  func.return %m, %s : f64, f64
}

// CHECK-LABEL: func.func @step(
// CHECK:         %l = stencil.access %x[-1] : !stencil.temp<?xf64>
// CHECK-NEXT:    %right = stencil.access %x[1] : !stencil.temp<?xf64>
// CHECK-NEXT:    %[[a:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-NEXT:    %[[half:.*]] = arith.mulf %[[a]], %l : f64
// CHECK-NEXT:    %[[b:.*]] = arith.constant 5.000000e-01 : f64
// CHECK-NEXT:    %[[quarter:.*]] = arith.mulf %[[b]], %[[half]] : f64
// CHECK-NEXT:    %[[sum:.*]] = arith.addf %l, %right : f64
// CHECK-NEXT:    %o = arith.subf %[[quarter]], %[[sum]] : f64
// SAID:          temporal.update
// BEFORE:        func.call in @step: the time loop is left unchanged: it calls a function; run inline-calls before
func.func @step(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %right = stencil.access %x[1] : !temp
      %m, %s = func.call @quarter_and_sum(%l, %right) : (f64, f64) -> (f64, f64)
      %o = arith.subf %m, %s : f64
      stencil.return %o : f64
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
