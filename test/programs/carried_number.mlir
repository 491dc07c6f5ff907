// The loop carries a number beside the fields.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = arith.constant 0.25 : f64
  %dt = arith.constant 0.125 : f64
  %r:3 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B, %time = %start) -> (!field, !field, f64) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp, %w = %time : f64) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %s = arith.addf %l, %w : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    %later = arith.addf %time, %dt : f64
    scf.yield %b, %a, %later : !field, !field, f64
  }
  func.return
}
