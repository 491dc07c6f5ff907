// A constant of f32 is extended to f64 and weighs cells of two rows.

!field = !stencil.field<[-1,10]x[-1,41]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %c = arith.constant 0.1 : f32
      %k = arith.extf %c : f32 to f64
      %0 = stencil.access %x[0, 0] : !temp
      %1 = stencil.access %x[1, 1] : !temp
      %m = arith.mulf %k, %0 : f64
      %s = arith.addf %m, %1 : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0, 0], [9, 40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  func.return
}
