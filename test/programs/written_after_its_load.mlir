// A field is loaded before the time loop, which reads that value after other cells were stored to the field.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %C: !field, %D: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = stencil.load %C : !field -> !temp
  %d = stencil.load %D : !field -> !temp
  stencil.store %d to %C(<[0], [40]>) : !temp to !field
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %y = %k : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %z = stencil.access %y[0] : !temp
      %s = arith.addf %l, %z : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
