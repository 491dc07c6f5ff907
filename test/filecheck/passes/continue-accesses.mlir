// RUN: xdsl-opt %s -p continue-accesses --split-input-file | filecheck %s

// A remainder, and a choice of a place: the field is periodic.

!f = !stencil.field<[0,32]xf64>
!t = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @periodic
// CHECK:         stencil.load %a attributes {boundary = #temporal.boundary<periodic, periodic>}
// CHECK-NEXT:    stencil.apply
// CHECK-NEXT:      %l = stencil.access %p[-1]
// CHECK-NEXT:      %r = stencil.access %p[1]
// CHECK-NEXT:      arith.addf %l, %r
func.func @periodic(%a: !f, %b: !f) {
  %x = stencil.load %a : !f -> !t
  %y = stencil.apply(%p = %x : !t) -> (!t) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    %c32 = arith.constant 32 : index
    %i = stencil.index 0 <[0]>
    %before = arith.addi %i, %c31 : index
    %j = arith.remui %before, %c32 : index
    %l = stencil.dyn_access %p[%j] in <[-31]> : <[31]> : !t
    %behind = arith.addi %i, %c1 : index
    %is_last = arith.cmpi eq, %i, %c31 : index
    %k = arith.select %is_last, %c0, %behind : index
    %r = stencil.dyn_access %p[%k] in <[-31]> : <[31]> : !t
    %s = arith.addf %l, %r : f64
    stencil.return %s : f64
  }
  stencil.store %y to %b(<[0], [32]>) : !t to !f
  func.return
}

// -----

!f = !stencil.field<[0,32]xf64>
!t = !stencil.temp<?xf64>

// A clamped place below, and above a number in place of an access.

// CHECK-LABEL: func.func @mirror_and_value
// CHECK:         stencil.load %a attributes {boundary = #temporal.boundary<mirror, value 0.5>}
// CHECK-NEXT:    stencil.apply
// CHECK-NEXT:      %l = stencil.access %p[-1]
// CHECK-NEXT:      %r = stencil.access %p[1]
// CHECK-NEXT:      arith.addf %l, %r
func.func @mirror_and_value(%a: !f, %b: !f) {
  %x = stencil.load %a : !f -> !t
  %y = stencil.apply(%p = %x : !t) -> (!t) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    %half = arith.constant 5.0e-01 : f64
    %i = stencil.index 0 <[0]>
    %before = arith.subi %i, %c1 : index
    %j = arith.maxsi %before, %c0 : index
    %l = stencil.dyn_access %p[%j] in <[-1]> : <[0]> : !t
    %is_inside = arith.cmpi slt, %i, %c31 : index
    %r = scf.if %is_inside -> (f64) {
      %inner = stencil.access %p[1] : !t
      scf.yield %inner : f64
    } else {
      scf.yield %half : f64
    }
    %s = arith.addf %l, %r : f64
    stencil.return %s : f64
  }
  stencil.store %y to %b(<[0], [32]>) : !t to !f
  func.return
}

// -----

!f = !stencil.field<[0,32]xf64>
!t = !stencil.temp<?xf64>

// The period is a cell too short.

// CHECK-LABEL: func.func @too_short
// CHECK:         stencil.load %a : !stencil.field<[0,32]xf64>
// CHECK:         stencil.dyn_access
func.func @too_short(%a: !f, %b: !f) {
  %x = stencil.load %a : !f -> !t
  %y = stencil.apply(%p = %x : !t) -> (!t) {
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    %i = stencil.index 0 <[0]>
    %behind = arith.addi %i, %c1 : index
    %k = arith.remui %behind, %c31 : index
    %r = stencil.dyn_access %p[%k] in <[-31]> : <[31]> : !t
    stencil.return %r : f64
  }
  stencil.store %y to %b(<[0], [32]>) : !t to !f
  func.return
}

// -----

!f = !stencil.field<[0,32]xf64>
!t = !stencil.temp<?xf64>

// An access of another value leaves the field: the program is refused later, and not continued.

// CHECK-LABEL: func.func @leaves
// CHECK:         stencil.load %a : !stencil.field<[0,32]xf64>
// CHECK:         stencil.dyn_access
func.func @leaves(%a: !f, %b: !f) {
  %x = stencil.load %a : !f -> !t
  %y = stencil.apply(%p = %x : !t) -> (!t) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %i = stencil.index 0 <[0]>
    %behind = arith.addi %i, %c1 : index
    %k = arith.remui %behind, %c32 : index
    %r = stencil.dyn_access %p[%k] in <[-31]> : <[31]> : !t
    %l = stencil.access %p[-1] : !t
    %s = arith.addf %l, %r : f64
    stencil.return %s : f64
  }
  stencil.store %y to %b(<[0], [32]>) : !t to !f
  func.return
}

// -----

!f = !stencil.field<[0,32]xf64>
!t = !stencil.temp<?xf64>

// Two cells away, the nearest cell is no mirrored cell.

// CHECK-LABEL: func.func @clamp
// CHECK:         stencil.load %a attributes {boundary = #temporal.boundary<clamp, clamp>}
// CHECK-NEXT:    stencil.apply
// CHECK-NEXT:      %l = stencil.access %p[-2]
// CHECK-NEXT:      %r = stencil.access %p[2]
// CHECK-NEXT:      arith.addf %l, %r
func.func @clamp(%a: !f, %b: !f) {
  %x = stencil.load %a : !f -> !t
  %y = stencil.apply(%p = %x : !t) -> (!t) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c31 = arith.constant 31 : index
    %i = stencil.index 0 <[0]>
    %before = arith.subi %i, %c2 : index
    %j = arith.maxsi %before, %c0 : index
    %l = stencil.dyn_access %p[%j] in <[-2]> : <[0]> : !t
    %behind = arith.addi %i, %c2 : index
    %k = arith.minsi %behind, %c31 : index
    %r = stencil.dyn_access %p[%k] in <[0]> : <[2]> : !t
    %s = arith.addf %l, %r : f64
    stencil.return %s : f64
  }
  stencil.store %y to %b(<[0], [32]>) : !t to !f
  func.return
}
