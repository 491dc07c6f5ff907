// RUN: xdsl-opt %s -p gather-cells --split-input-file | filecheck %s

// What is read at a place that depends on a field is gathered into a field of its own, from the field itself.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @gathers
// CHECK:         %[[at:.*]] = stencil.apply(%{{.*}} = %p : !stencil.temp<?xf64>) -> (!stencil.temp<?xi64>) {
// CHECK:           arith.index_cast %{{.*}} : index to i64
// CHECK:         %[[places:.*]] = temporal.scratch : !stencil.field<[0,8]xi64>
// CHECK-NEXT:    stencil.store %[[at]] to %[[places]](<[0], [8]>)
// CHECK-NEXT:    %[[cells:.*]] = temporal.scratch : !stencil.field<[0,8]xf64>
// CHECK-NEXT:    temporal.gather %[[cells]] = %A at (%[[places]])
// CHECK-NEXT:    %[[read:.*]] = stencil.load %[[cells]]
// CHECK-NEXT:    %v = stencil.apply(%x = %u : !stencil.temp<?xf64>, %y = %p : !stencil.temp<?xf64>, %[[own:.*]] = %[[read]]
// CHECK-NEXT:      %c = stencil.access %[[own]][0]
// CHECK-NEXT:      stencil.return %c : f64
func.func @gathers(%A: !field, %B: !field, %w: !field) {
  %u = stencil.load %A : !field -> !temp
  %p = stencil.load %w : !field -> !temp
  %v = stencil.apply(%x = %u : !temp, %y = %p : !temp) -> (!temp) {
    %d = stencil.access %y[0] : !temp
    %n = arith.fptosi %d : f64 to i64
    %k = arith.index_cast %n : i64 to index
    %c = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !temp
    stencil.return %c : f64
  }
  stencil.store %v to %B(<[0], [8]>) : !temp to !field
  func.return
}

// -----

// The field changes between its load and the apply: a copy is read. Another apply's value is stored for it.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @snapshots
// CHECK:         %u = stencil.load %A
// CHECK-NEXT:    %[[copy:.*]] = temporal.scratch : !stencil.field<[-1,9]xf64>
// CHECK-NEXT:    stencil.store %u to %[[copy]](<[-1], [9]>)
// CHECK:         stencil.store %s to %A(<[0], [8]>)
// CHECK:         temporal.gather %{{.*}} = %[[copy]] at
// CHECK:         %[[held:.*]] = temporal.scratch : !stencil.field<[-1,9]xf64>
// CHECK-NEXT:    stencil.store %s to %[[held]](<[-1], [9]>)
// CHECK:         temporal.gather %{{.*}} = %[[held]] at
func.func @snapshots(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %s = stencil.apply(%x = %u : !temp) -> (!temp) {
    %c = stencil.access %x[0] : !temp
    %e = arith.addf %c, %c : f64
    stencil.return %e : f64
  }
  stencil.store %s to %A(<[0], [8]>) : !temp to !field
  %v = stencil.apply(%x = %u : !temp, %y = %s : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %two = arith.constant 2 : index
    %k = arith.remsi %i, %two : index
    %c = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !temp
    %d = stencil.dyn_access %y[%k] in <[-1]> : <[1]> : !temp
    %e = arith.addf %c, %d : f64
    stencil.return %e : f64
  }
  stencil.store %v to %B(<[0], [8]>) : !temp to !field
  func.return
}

// -----

// An access at a place that another access gives is gathered after it.

!field = !stencil.field<[0,8]xi64>
!temp = !stencil.temp<?xi64>

// CHECK-LABEL: func.func @links
// CHECK:         temporal.gather %[[first:.*]] = %A at
// CHECK-NEXT:    %[[read:.*]] = stencil.load %[[first]]
// CHECK:         temporal.gather %{{.*}} = %A at
// CHECK-NOT:     stencil.dyn_access
func.func @links(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %o = stencil.access %x[0] : !temp
    %k = arith.index_cast %o : i64 to index
    %c = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !temp
    %l = arith.index_cast %c : i64 to index
    %d = stencil.dyn_access %x[%l] in <[-1]> : <[1]> : !temp
    stencil.return %d : i64
  }
  stencil.store %v to %B(<[0], [8]>) : !temp to !field
  func.return
}

// -----

// What nobody stores is left.

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @unused
// CHECK:         stencil.dyn_access
func.func @unused(%u: !temp, %k: index) -> !temp {
  %v = stencil.apply(%x = %u : !temp, %y = %k : index) -> (!temp) {
    %c = stencil.dyn_access %x[%y] in <[-1]> : <[1]> : !temp
    stencil.return %c : f64
  }
  return %v : !temp
}
