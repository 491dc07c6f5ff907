// A sum over three rows from which one product is taken, the coefficient first.

!field = !stencil.field<[-1,10]x[-1,41]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %w = arith.constant 0.3 : f64
      %k = arith.constant 0.7 : f64
      %x0 = stencil.access %x[-1, -1] : !temp
      %m0 = arith.mulf %w, %x0 : f64
      %x1 = stencil.access %x[-1, 0] : !temp
      %m1 = arith.mulf %w, %x1 : f64
      %x2 = stencil.access %x[-1, 1] : !temp
      %m2 = arith.mulf %w, %x2 : f64
      %x3 = stencil.access %x[0, -1] : !temp
      %m3 = arith.mulf %w, %x3 : f64
      %x4 = stencil.access %x[0, 0] : !temp
      %m4 = arith.mulf %k, %x4 : f64
      %x5 = stencil.access %x[0, 1] : !temp
      %m5 = arith.mulf %w, %x5 : f64
      %x6 = stencil.access %x[1, -1] : !temp
      %m6 = arith.mulf %w, %x6 : f64
      %x7 = stencil.access %x[1, 0] : !temp
      %m7 = arith.mulf %w, %x7 : f64
      %x8 = stencil.access %x[1, 1] : !temp
      %m8 = arith.mulf %w, %x8 : f64
      %s1 = arith.addf %m0, %m1 : f64
      %s2 = arith.addf %s1, %m2 : f64
      %s3 = arith.addf %s2, %m3 : f64
      %s4 = arith.subf %s3, %m4 : f64
      %s5 = arith.addf %s4, %m5 : f64
      %s6 = arith.addf %s5, %m6 : f64
      %s7 = arith.addf %s6, %m7 : f64
      %s8 = arith.addf %s7, %m8 : f64
      stencil.return %s8 : f64
    }
    stencil.store %v to %b(<[0, 0], [9, 40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
