// RUN: xdsl-opt %s -p split-guards --split-input-file | filecheck %s

// The first cell, whose branch would read before the field, is computed apart from the others.

!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @before_the_first
// CHECK:         %[[edge:.*]] = stencil.apply
// CHECK:           %l = arith.constant 0.000000e+00 : f64
// CHECK:         %[[rest:.*]] = stencil.apply
// CHECK:           %l = stencil.access %x[-1]
// CHECK:         %[[all:.*]] = stencil.combine 0 at 1 lower = (%[[edge]] : !stencil.temp<?xf64>) upper = (%[[rest]] : !stencil.temp<?xf64>)
// CHECK-NEXT:    stencil.store %[[all]] to %B(<[0], [12]>)
func.func @before_the_first(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp) -> (!temp) {
    %c = stencil.access %x[0] : !temp
    %i = stencil.index 0 <[0]>
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %i, %zero : index
    %d = scf.if %first -> (f64) {
      scf.yield %c : f64
    } else {
      %l = stencil.access %x[-1] : !temp
      scf.yield %l : f64
    }
    stencil.return %d : f64
  }
  stencil.store %v to %B(<[0], [12]>) : !temp to !field
  func.return
}

// -----

// No branch leaves the field for the cells that are stored; an access in no branch is no concern of the pass.

!field = !stencil.field<[0,12]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @inside
// CHECK-NOT:     stencil.combine
func.func @inside(%A: !field, %B: !field, %p: i1) {
  %u = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %u : !temp, %q = %p : i1) -> (!temp) {
    %c = stencil.access %x[-2] : !temp
    %d = scf.if %q -> (f64) {
      scf.yield %c : f64
    } else {
      %l = stencil.access %x[-1] : !temp
      scf.yield %l : f64
    }
    stencil.return %d : f64
  }
  stencil.store %v to %B(<[1], [12]>) : !temp to !field
  func.return
}

// -----

// The value of another apply is known for the cells of its field: the last cell is computed apart.

!field = !stencil.field<[0,10]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @after_the_last
// CHECK:         %w = stencil.apply
// CHECK:         %[[rest:.*]] = stencil.apply
// CHECK:           stencil.access %x[1]
// CHECK:         %[[edge:.*]] = stencil.apply
// CHECK-NOT:       stencil.access %x[1]
// CHECK:         stencil.combine 0 at 9 lower = (%[[rest]] : !stencil.temp<?xf64>) upper = (%[[edge]] : !stencil.temp<?xf64>)
func.func @after_the_last(%A: !field, %B: !field) {
  %u = stencil.load %A : !field -> !temp
  %w = stencil.apply(%x = %u : !temp) -> (!temp) {
    %l = stencil.access %x[0] : !temp
    stencil.return %l : f64
  }
  %v = stencil.apply(%x = %w : !temp) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %last = arith.constant 9 : index
    %before = arith.cmpi slt, %i, %last : index
    %zero = arith.constant 0.0 : f64
    %d = scf.if %before -> (f64) {
      %r = stencil.access %x[1] : !temp
      scf.yield %r : f64
    } else {
      scf.yield %zero : f64
    }
    stencil.return %d : f64
  }
  stencil.store %v to %B(<[0], [10]>) : !temp to !field
  func.return
}
