// Fields of four axes.

!field = !stencil.field<[0,2]x[0,3]x[0,4]x[-1,6]xf64>
!temp = !stencil.temp<?x?x?x?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[0, 0, 0, -1] : !temp
      %r = stencil.access %x[0, 0, 0, 1] : !temp
      %s = arith.addf %l, %r : f64
      %h = arith.constant 0.5 : f64
      %m = arith.mulf %h, %s : f64
      stencil.return %m : f64
    }
    stencil.store %v to %b(<[0, 0, 0, 0], [2, 3, 4, 5]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
