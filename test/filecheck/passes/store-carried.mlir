// RUN: xdsl-opt %s -p store-carried --split-input-file | filecheck %s

// The cells of the type are stored in two fields that take turns.

// CHECK-LABEL: func.func @turns
// CHECK:         %[[f:.*]] = stencil.alloc : !stencil.field<[0,8]xf64>
// CHECK-NEXT:    %[[s:.*]] = stencil.alloc : !stencil.field<[0,8]xf64>
// CHECK-NEXT:    stencil.store %u to %[[f]](<[0], [8]>)
// CHECK-NEXT:    %[[r:.*]], %{{.*}} = scf.for %t = %c0 to %n step %c1 iter_args(%[[x:.*]] = %[[f]], %[[y:.*]] = %[[s]])
// CHECK-NEXT:      %[[v:.*]] = stencil.load %[[x]]
// CHECK-NEXT:      %w = stencil.apply(%a = %[[v]]
// CHECK:           stencil.store %w to %[[y]](<[0], [8]>)
// CHECK-NEXT:      scf.yield %[[y]], %[[x]]
// CHECK:         %[[l:.*]] = stencil.load %[[r]]
// CHECK-NEXT:    stencil.store %[[l]] to %B(<[2], [6]>)
!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<[0,8]xf64>
func.func @turns(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%x = %u) -> (!temp) {
    %w = stencil.apply(%a = %x : !temp) -> (!temp) {
      %c = stencil.access %a[0] : !temp
      %s = arith.addf %c, %c : f64
      stencil.return %s : f64
    }
    scf.yield %w : !temp
  }
  stencil.store %r to %B(<[2], [6]>) : !temp to !field
  return
}

// -----

// The load of one field is made in each step, and behind the loop.

// CHECK-LABEL: func.func @loaded
// CHECK:         scf.for %t = %c0 to %n step %c1 {
// CHECK-NEXT:      %[[x:.*]] = stencil.load %A :
// CHECK-NEXT:      %w = stencil.apply(%a = %[[x]] :
// CHECK:           stencil.store %w to %A(<[0], [8]>)
// CHECK:         }
// CHECK-NEXT:    %[[r:.*]] = stencil.load %A :
// CHECK-NEXT:    stencil.store %[[r]] to %B
!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>
func.func @loaded(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%x = %u) -> (!temp) {
    %w = stencil.apply(%a = %x : !temp) -> (!temp) {
      %c = stencil.access %a[-1] : !temp
      stencil.return %c : f64
    }
    stencil.store %w to %A(<[0], [8]>) : !temp to !field
    %v = stencil.load %A : !field -> !temp
    scf.yield %v : !temp
  }
  stencil.store %r to %B(<[0], [8]>) : !temp to !field
  return
}

// -----

// Cells that shrink from step to step: few steps are unrolled, an unknown number is left unchanged.

// CHECK-LABEL: func.func @few
// CHECK-NOT:     scf.for
// CHECK-COUNT-2: stencil.apply
// CHECK-LABEL: func.func @unknown
// CHECK:         iter_args(%x = %u) -> (!stencil.temp<?xf64>)
!field = !stencil.field<[-2,10]xf64>
!temp = !stencil.temp<?xf64>
func.func @few(%A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %u = stencil.load %A : !field -> !temp
  %r = scf.for %t = %c0 to %c2 step %c1 iter_args(%x = %u) -> (!temp) {
    %w = stencil.apply(%a = %x : !temp) -> (!temp) {
      %c = stencil.access %a[-1] : !temp
      stencil.return %c : f64
    }
    scf.yield %w : !temp
  }
  stencil.store %r to %B(<[0], [8]>) : !temp to !field
  return
}
func.func @unknown(%A: !field, %B: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %u = stencil.load %A : !field -> !temp
  %r = scf.for %t = %c0 to %n step %c1 iter_args(%x = %u) -> (!temp) {
    %w = stencil.apply(%a = %x : !temp) -> (!temp) {
      %c = stencil.access %a[-1] : !temp
      stencil.return %c : f64
    }
    scf.yield %w : !temp
  }
  stencil.store %r to %B(<[0], [8]>) : !temp to !field
  return
}

// -----

// A loop inside an unrolled loop is unrolled in each copy.

// CHECK-LABEL: func.func @nested
// CHECK-NOT:     scf.for
// CHECK-COUNT-4: stencil.apply
!field = !stencil.field<[-4,12]xf64>
!temp = !stencil.temp<?xf64>
func.func @nested(%A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %u = stencil.load %A : !field -> !temp
  %r = scf.for %t = %c0 to %c2 step %c1 iter_args(%x = %u) -> (!temp) {
    %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%y = %x) -> (!temp) {
      %w = stencil.apply(%a = %y : !temp) -> (!temp) {
        %c = stencil.access %a[-1] : !temp
        stencil.return %c : f64
      }
      scf.yield %w : !temp
    }
    scf.yield %s : !temp
  }
  stencil.store %r to %B(<[0], [8]>) : !temp to !field
  return
}
