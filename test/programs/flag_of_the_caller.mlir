// A boolean and an index of the caller decide what a cell is.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %n: index, %flag: i1, %edge: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %f = %flag : i1, %e = %edge : index) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %z = stencil.access %x[0] : !temp
      %r = stencil.access %x[1] : !temp
      %i = stencil.index 0 <[0]>
      %c = arith.cmpi slt, %i, %e : index
      %p = arith.select %c, %l, %z : f64
      %q = arith.select %f, %p, %r : f64
      stencil.return %q : f64
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
