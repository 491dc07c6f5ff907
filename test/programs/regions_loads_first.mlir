// Three parts of a domain: all loads, all applies, and then all stores.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v0 = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %k = arith.constant 0.5 : f64
      %m = arith.mulf %k, %l : f64
      %s = arith.addf %m, %r : f64
      stencil.return %s : f64
    }
    %v1 = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %k = arith.constant 0.25 : f64
      %m = arith.mulf %k, %l : f64
      %s = arith.addf %m, %r : f64
      stencil.return %s : f64
    }
    %v2 = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %k = arith.constant 0.75 : f64
      %m = arith.mulf %k, %l : f64
      %s = arith.addf %m, %r : f64
      stencil.return %s : f64
    }
    stencil.store %v0 to %b(<[0], [3]>) : !temp to !field
    stencil.store %v1 to %b(<[3], [37]>) : !temp to !field
    stencil.store %v2 to %b(<[37], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
