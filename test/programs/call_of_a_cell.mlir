// A cell calls a function of the module.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %d = func.call @difference(%l, %r) : (f64, f64) -> f64
      stencil.return %d : f64
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
func.func private @difference(%p: f64, %q: f64) -> f64 {
  %d = arith.subf %q, %p : f64
  func.return %d : f64
}
