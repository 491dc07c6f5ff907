// RUN: xdsl-opt %s -p select-branches --split-input-file | filecheck %s

// Branches inside an apply become selects: what both sides hold stands before, the inner ones first.

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @nested
// CHECK:         %[[l:.*]] = stencil.access %x[1]
// CHECK-NEXT:    %[[inner:.*]] = arith.select %q, %[[l]], %c : f64
// CHECK-NEXT:    %[[r:.*]] = stencil.access %x[-1]
// CHECK-NEXT:    %[[m:.*]] = arith.select %p, %[[inner]], %[[r]] : f64
// CHECK-NEXT:    stencil.return %[[m]] : f64
// CHECK-NOT:     scf.if
func.func @nested(%u: !temp, %f: i1, %g: i1) -> !temp {
  %v = stencil.apply(%x = %u : !temp, %p = %f : i1, %q = %g : i1) -> (!temp) {
    %c = stencil.access %x[0] : !temp
    %m = scf.if %p -> (f64) {
      %l = stencil.access %x[1] : !temp
      %i = scf.if %q -> (f64) {
        scf.yield %l : f64
      } else {
        scf.yield %c : f64
      }
      scf.yield %i : f64
    } else {
      %r = stencil.access %x[-1] : !temp
      scf.yield %r : f64
    }
    stencil.return %m : f64
  }
  return %v : !temp
}

// -----

// Stored results are their values.

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @stored_results
// CHECK:         %[[m:.*]] = arith.select %p, %a, %b : f64
// CHECK-NEXT:    stencil.return %[[m]] : f64
func.func @stored_results(%u: !temp, %f: i1) -> !temp {
  %v = stencil.apply(%x = %u : !temp, %p = %f : i1) -> (!temp) {
    %a = stencil.access %x[0] : !temp
    %b = stencil.access %x[1] : !temp
    %m = scf.if %p -> (!stencil.result<f64>) {
      %0 = stencil.store_result %a : !stencil.result<f64>
      scf.yield %0 : !stencil.result<f64>
    } else {
      %1 = stencil.store_result %b : !stencil.result<f64>
      scf.yield %1 : !stencil.result<f64>
    }
    stencil.return %m : !stencil.result<f64>
  }
  return %v : !temp
}
