// Two buffers change names; a step writes a part of one from a field that stays, and then the other.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %K: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %k = stencil.load %K : !field -> !temp
    %v = stencil.apply(%x = %k : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %a(<[30], [36]>) : !temp to !field
    %u = stencil.load %a : !field -> !temp
    %w = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %h = arith.constant 0.5 : f64
      %m = arith.mulf %0, %h : f64
      stencil.return %m : f64
    }
    stencil.store %w to %b(<[2], [36]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
