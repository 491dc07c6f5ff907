// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s

// What a cell may not hold is named where the loop is raised.

!field = !stencil.field<[0,8]xi32>
!temp = !stencil.temp<?xi32>

// CHECK:      arith.addui_extended in @carries: the time loop is left unchanged: a cell has no such operation; use operations of arith and math on single numbers
// CHECK:      scf.for
func.func @carries(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1, %2 = arith.addui_extended %0, %0 : i32, i1
      stencil.return %1 : i32
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xi32>
!temp = !stencil.temp<?xi32>

// CHECK:      arith.cmpi in @compares: the time loop is left unchanged: it compares i32 with i64; cast one to the other's type
// CHECK:      scf.for
func.func @compares(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.extsi %0 : i32 to i64
      %2 = "arith.cmpi"(%0, %1) <{predicate = 2 : i64}> : (i32, i64) -> i1
      %3 = arith.extui %2 : i1 to i32
      stencil.return %3 : i32
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}

// -----

!field = !stencil.field<[0,8]xf32>
!temp = !stencil.temp<?xf32>

// CHECK:      arith.extf in @widens: the time loop is left unchanged: it makes f32 of f32; use extf from f32 to f64 and truncf back
// CHECK:      scf.for
func.func @widens(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %0 = stencil.access %x[0] : !temp
      %1 = arith.extf %0 : f32 to f32
      stencil.return %1 : f32
    }
    stencil.store %v to %b(<[0], [8]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
