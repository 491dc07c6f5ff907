// RUN: xdsl-opt %s -p raise-time-loop --split-input-file --verify-diagnostics | filecheck %s

// A loop counts upwards: a step of 0 or less is an error of the program, not a loop without steps.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK: scf.for in @stands: the loop's step is 0; give it a step of 1 or more
func.func @stands(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  scf.for %t = %c0 to %n step %c0 {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %B(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK: scf.for in @counts_down: the loop's step is -2; give it a step of 1 or more
func.func @counts_down(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %down = arith.constant -2 : index
  scf.for %t = %n to %c0 step %down {
    %u = stencil.load %A : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      stencil.return %0 : f64
    }
    stencil.store %v to %B(<[0], [8]>) : !temp to !field
  }
  return
}
