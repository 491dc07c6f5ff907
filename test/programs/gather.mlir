// A cell reads where its index and a number of the caller say, within stated bounds.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %n: index, %off: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %o = %off : index) -> (!temp) {
      %i = stencil.index 0 <[0]>
      %k = arith.addi %i, %o : index
      %l = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !temp
      stencil.return %l : f64
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
