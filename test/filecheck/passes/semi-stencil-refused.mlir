// RUN: xdsl-opt %s -p 'semi-stencil' --verify-diagnostics | filecheck %s

// A sum that begins with the cell itself has no halves.

// CHECK: temporal.loop in @heat: semi-stencil cuts sums into halves, and no sum of a step takes planes before the cell's own before the others; write the terms from the oldest plane to the newest, or use the default passes

!field = !stencil.field<[-1,97]x[-1,97]x[-1,97]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[0, 0, 0] : !temp
      %x1 = stencil.access %x[-1, 0, 0] : !temp
      %x2 = stencil.access %x[1, 0, 0] : !temp
      %x3 = stencil.access %x[-1, 1, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s = arith.addf %s2, %x3 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [96, 96, 96]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
