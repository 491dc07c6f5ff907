// The sum of nine cells whose terms are added column by column, as a sum that travels along a row takes them.

!field = !stencil.field<[-1,65]x[-1,65]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[-1, -1] : !temp
      %1 = stencil.access %x[0, -1] : !temp
      %2 = stencil.access %x[1, -1] : !temp
      %3 = stencil.access %x[-1, 0] : !temp
      %4 = stencil.access %x[0, 0] : !temp
      %5 = stencil.access %x[1, 0] : !temp
      %6 = stencil.access %x[-1, 1] : !temp
      %7 = stencil.access %x[0, 1] : !temp
      %8 = stencil.access %x[1, 1] : !temp
      %s1 = arith.addf %0, %1 : f64
      %s2 = arith.addf %s1, %2 : f64
      %s3 = arith.addf %s2, %3 : f64
      %s4 = arith.addf %s3, %4 : f64
      %s5 = arith.addf %s4, %5 : f64
      %s6 = arith.addf %s5, %6 : f64
      %s7 = arith.addf %s6, %7 : f64
      %s8 = arith.addf %s7, %8 : f64
      stencil.return %s8 : f64
    }
    stencil.store %v to %b(<[0, 0], [64, 64]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
