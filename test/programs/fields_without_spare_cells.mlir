// Two stores of one step, each over a box of its own that fills its field.

!nodes = !stencil.field<[0,8]x[0,40]xf64>
!edges = !stencil.field<[1,8]x[0,40]xf64>
!wide = !stencil.field<[0,8]x[1,40]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%A: !nodes, %B: !edges, %C: !wide, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %A : !nodes -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1, 0] : !temp
      %r = stencil.access %x[0, 0] : !temp
      %d = arith.subf %r, %l : f64
      stencil.return %d : f64
    }
    stencil.store %v to %B(<[1, 0], [8, 40]>) : !temp to !edges
    %w = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[0, -1] : !temp
      %r = stencil.access %x[0, 0] : !temp
      %d = arith.addf %r, %l : f64
      stencil.return %d : f64
    }
    stencil.store %w to %C(<[0, 1], [8, 40]>) : !temp to !wide
  }
  func.return
}
