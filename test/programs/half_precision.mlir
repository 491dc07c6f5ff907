// Fields of f16.

!field = !stencil.field<[-1,41]xf16>
!temp = !stencil.temp<?xf16>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %s = arith.addf %l, %r : f16
      %h = arith.constant 0.5 : f16
      %m = arith.mulf %h, %s : f16
      stencil.return %m : f16
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
