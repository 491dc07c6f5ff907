// RUN: xdsl-opt %s -p split-guards --verify-diagnostics | filecheck %s

// The condition holds at cell 9, whose branch reads behind the field.

// CHECK: stencil.access in @behind: the branch is taken at cell [9], and reads [1] from the cell, outside the read value's [0, 10) along axis 0; narrow the condition of the branch, give the field these cells, or store fewer

!field = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>

func.func @behind(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %c = stencil.access %x[0] : !temp
    %i = stencil.index 0 <[0]>
    %ten = arith.constant 10 : index
    %inside = arith.cmpi slt, %i, %ten : index
    %d = scf.if %inside -> (f64) {
      %r = stencil.access %x[1] : !temp
      scf.yield %r : f64
    } else {
      scf.yield %c : f64
    }
    stencil.return %d : f64
  }
  stencil.store %v to %B(<[0], [10]>) : !temp to !field
  func.return
}
