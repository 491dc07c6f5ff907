// Fields of one and of two axes in a domain of three, read beside the cell.
!field = !stencil.field<[-1,9]x[-1,11]x[-1,7]xf64>
!temp = !stencil.temp<?x?x?xf64>
func.func @step(%A: !field, %B: !field, %w: !stencil.field<[-3,14]xf64>, %k: !stencil.field<[-1,9]xf64>, %p: !stencil.field<[0,8]x[-2,9]xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %d = stencil.load %w : !stencil.field<[-3,14]xf64> -> !stencil.temp<?xf64>
    %kd = stencil.load %k : !stencil.field<[-1,9]xf64> -> !stencil.temp<?xf64>
    %pd = stencil.load %p : !stencil.field<[0,8]x[-2,9]xf64> -> !stencil.temp<?x?xf64>
    %v = stencil.apply(%x = %u : !temp, %e = %d : !stencil.temp<?xf64>, %g = %kd : !stencil.temp<?xf64>, %q = %pd : !stencil.temp<?x?xf64>) -> (!temp) {
      %c = stencil.access %x[0, 0, 0] : !temp
      %l = stencil.access %x[-1, 0, 1] : !temp
      %r = stencil.access %e[_, 1, _] : !stencil.temp<?xf64>
      %s = stencil.access %g[_, _, -1] : !stencil.temp<?xf64>
      %o = stencil.access %q[0, _, 1] : !stencil.temp<?x?xf64>
      %m = arith.mulf %c, %r : f64
      %m2 = arith.mulf %l, %s : f64
      %m3 = arith.addf %m, %m2 : f64
      %m4 = arith.subf %m3, %o : f64
      stencil.return %m4 : f64
    }
    stencil.store %v to %b(<[0, 0, 0], [8, 10, 6]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
