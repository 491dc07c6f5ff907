// A prefix sum in one step of five updates, each of which reaches twice as far as the one before.

!line = !stencil.field<[-16,32]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !line, %B: !line, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %u0 = stencil.load %A : !line -> !temp
    %v0 = stencil.apply(%x = %u0 : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.access %x[-1] : !temp
      %s = arith.addf %0, %1 : f64
      stencil.return %s : f64
    }
    stencil.store %v0 to %B(<[0], [32]>) : !temp to !line
    %u1 = stencil.load %B : !line -> !temp
    %v1 = stencil.apply(%x = %u1 : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.access %x[-2] : !temp
      %s = arith.addf %0, %1 : f64
      stencil.return %s : f64
    }
    stencil.store %v1 to %A(<[0], [32]>) : !temp to !line
    %u2 = stencil.load %A : !line -> !temp
    %v2 = stencil.apply(%x = %u2 : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.access %x[-4] : !temp
      %s = arith.addf %0, %1 : f64
      stencil.return %s : f64
    }
    stencil.store %v2 to %B(<[0], [32]>) : !temp to !line
    %u3 = stencil.load %B : !line -> !temp
    %v3 = stencil.apply(%x = %u3 : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.access %x[-8] : !temp
      %s = arith.addf %0, %1 : f64
      stencil.return %s : f64
    }
    stencil.store %v3 to %A(<[0], [32]>) : !temp to !line
    %u4 = stencil.load %A : !line -> !temp
    %v4 = stencil.apply(%x = %u4 : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = stencil.access %x[-16] : !temp
      %s = arith.addf %0, %1 : f64
      stencil.return %s : f64
    }
    stencil.store %v4 to %B(<[0], [32]>) : !temp to !line
  }
  func.return
}
