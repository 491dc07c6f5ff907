// RUN: xdsl-opt %s -p ssam --verify-diagnostics | filecheck %s

// A line has no rows.

// CHECK: temporal.loop in @heat: ssam is for domains of 2 or 3 axes, got 1: a warp holds rows, one after the other; use the default passes

!field = !stencil.field<[-1,1025]xf64>
!temp = !stencil.temp<?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1] : !temp
      %x1 = stencil.access %x[1] : !temp
      %s = arith.addf %x0, %x1 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0], [1024]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
