// RUN: xdsl-opt %s -p bound-accesses --split-input-file | filecheck %s

// An access at the cell's own coordinate plus few possible offsets reads all of these, and selects. One at a
// place that depends on a field stays.

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @shifted
// CHECK:         %k = arith.addi
// CHECK-NEXT:    %[[own:.*]] = stencil.index 0 <[0]>
// CHECK-NEXT:    %[[d:.*]] = arith.subi %{{k|[0-9]+}}, %[[own]] : index
// CHECK-NEXT:    %[[below:.*]] = stencil.access %x[-1]
// CHECK-NEXT:    %[[zero:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[is:.*]] = arith.cmpi eq, %[[d]], %[[zero]] : index
// CHECK-NEXT:    %[[here:.*]] = stencil.access %x[0]
// CHECK-NEXT:    %[[first:.*]] = arith.select %[[is]], %[[here]], %[[below]] : f64
// CHECK:         %[[above:.*]] = stencil.access %x[1]
// CHECK-NEXT:    %[[value:.*]] = arith.select %{{.*}}, %[[above]], %[[first]] : f64
// CHECK-NEXT:    stencil.return %[[value]] : f64
func.func @shifted(%u: !temp, %shift: index) -> !temp {
  %v = stencil.apply(%x = %u : !temp, %s = %shift : index) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %k = arith.addi %i, %s : index
    %0 = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !temp
    stencil.return %0 : f64
  }
  return %v : !temp
}

// -----

// Two of the constants that a select chooses between are possible, whatever the extent says.

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @upwind
// CHECK:         stencil.access %x[-1]
// CHECK:         stencil.access %x[2]
// CHECK-NOT:     stencil.access
func.func @upwind(%u: !temp, %flag: i1) -> !temp {
  %v = stencil.apply(%x = %u : !temp, %f = %flag : i1) -> (!temp) {
    %i = stencil.index 0 <[0]>
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %below = arith.subi %i, %one : index
    %above = arith.addi %i, %two : index
    %k = arith.select %f, %below, %above : index
    %0 = stencil.dyn_access %x[%k] in <[-2]> : <[2]> : !temp
    stencil.return %0 : f64
  }
  return %v : !temp
}

// -----

!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @gathers
// CHECK:         stencil.dyn_access
func.func @gathers(%u: !temp, %places: !stencil.temp<?xi64>) -> !temp {
  %v = stencil.apply(%x = %u : !temp, %p = %places : !stencil.temp<?xi64>) -> (!temp) {
    %c = stencil.access %p[0] : !stencil.temp<?xi64>
    %k = arith.index_cast %c : i64 to index
    %0 = stencil.dyn_access %x[%k] in <[-1]> : <[1]> : !temp
    stencil.return %0 : f64
  }
  return %v : !temp
}
