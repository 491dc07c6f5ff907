// Two sums over the planes, each weighted by a field that stays.

!field = !stencil.field<[-1,10]x[-1,41]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%A: !field, %B: !field, %C: !field, %D: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k0 = stencil.load %C : !field -> !temp
  %k1 = stencil.load %D : !field -> !temp
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %y = %k0 : !temp, %z = %k1 : !temp) -> (!temp) {
      %0 = stencil.access %x[-1, 0] : !temp
      %1 = stencil.access %x[1, 0] : !temp
      %2 = stencil.access %x[-1, 1] : !temp
      %3 = stencil.access %x[1, -1] : !temp
      %p = arith.addf %0, %1 : f64
      %q = arith.subf %2, %3 : f64
      %c = stencil.access %y[0, 0] : !temp
      %d = stencil.access %z[0, 0] : !temp
      %m = arith.mulf %c, %p : f64
      %w = arith.mulf %d, %q : f64
      %s = arith.addf %m, %w : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0, 0], [9, 40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
