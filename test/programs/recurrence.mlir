// A cell reads the cell before it of the field that it is stored to: old values.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %z = stencil.access %x[0] : !temp
      %s = arith.addf %l, %z : f64
      stencil.return %s : f64
    }
    stencil.store %v to %A(<[0], [40]>) : !temp to !field
  }
  func.return
}
