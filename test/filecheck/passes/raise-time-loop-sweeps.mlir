// RUN: xdsl-opt %s -p raise-time-loop --split-input-file 2>&1 | filecheck %s

// Stores outside a time loop become sweeps: loops of one step, which a caller's number of steps leaves alone.
// What may read or write memory keeps its place between sweeps.

!field = !stencil.field<[-1,9]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @prepares
// CHECK:         temporal.loop %{{.*}} (%[[k:.*]] = %K) rotate [0] sweep {
// CHECK-NEXT:      temporal.update %[[k]] = @{{.*}}(%[[k]][0]) in <[0], [8]>
// CHECK-NEXT:    }
// CHECK:         temporal.loop %n (%{{.*}} = %A) rotate [0] {
func.func @prepares(%n: index, %A: !field, %K: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = stencil.load %K : !field -> !temp
  %sq = stencil.apply(%x = %k : !temp) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    %1 = arith.mulf %0, %0 : f64
    stencil.return %1 : f64
  }
  stencil.store %sq to %K(<[0], [8]>) : !temp to !field
  scf.for %t = %c0 to %n step %c1 {
    %u = stencil.load %K : !field -> !temp
    stencil.store %u to %A(<[0], [8]>) : !temp to !field
  }
  return
}

// -----

// A single cell is read between the sweeps: the first must be done, the second not begun.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @reads_between
// CHECK:         temporal.loop %{{.*}} (%{{.*}} = %A) rotate [0] sweep
// CHECK:         %[[c:.*]] = memref.load
// CHECK:         temporal.loop %{{.*}} (%{{.*}} = %A) rotate [0] sweep
// CHECK-NEXT:      temporal.update {{.*}} scalars(%[[c]])
func.func @reads_between(%A: !field, %B: !field) {
  %c1 = arith.constant 1 : index
  %u = stencil.load %B : !field -> !temp
  stencil.store %u to %A(<[0], [8]>) : !temp to !field
  %m = builtin.unrealized_conversion_cast %A : !field to memref<8xf64>
  %c = memref.load %m[%c1] : memref<8xf64>
  %v = stencil.apply(%x = %u : !temp, %s = %c : f64) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    %1 = arith.addf %0, %s : f64
    stencil.return %1 : f64
  }
  stencil.store %v to %A(<[0], [8]>) : !temp to !field
  return
}

// -----

// Memory that nothing in the block writes may be read at any time: one sweep makes both updates.

!field = !stencil.field<[0,8]xf64>
!temp = !stencil.temp<?xf64>

// CHECK-LABEL: func.func @reads_a_series
// CHECK:         memref.load
// CHECK:         temporal.loop
// CHECK-NEXT:      temporal.update
// CHECK-NEXT:      temporal.update
// CHECK-NEXT:    }
func.func @reads_a_series(%A: !field, %B: !field, %series: memref<8xf64>) {
  %c1 = arith.constant 1 : index
  %u = stencil.load %B : !field -> !temp
  stencil.store %u to %A(<[0], [8]>) : !temp to !field
  %c = memref.load %series[%c1] : memref<8xf64>
  %w = stencil.load %A : !field -> !temp
  %v = stencil.apply(%x = %w : !temp, %s = %c : f64) -> (!temp) {
    %0 = stencil.access %x[0] : !temp
    %1 = arith.addf %0, %s : f64
    stencil.return %1 : f64
  }
  stencil.store %v to %A(<[2], [3]>) : !temp to !field
  return
}

// -----

// A field of fewer axes changes before it is spread: its sweep ends in front of the spreading.

!field = !stencil.field<[0,8]x[0,8]xf64>
!temp = !stencil.temp<?x?xf64>
!line = !stencil.field<[0,8]xf64>

// CHECK-LABEL: func.func @spread_between
// CHECK:         temporal.loop %{{.*}} (%{{.*}} = %K) rotate [0] sweep
// CHECK:         temporal.broadcast %K axes [0]
// CHECK:         temporal.loop %{{.*}} (%{{.*}} = %A) rotate [0] sweep
func.func @spread_between(%A: !field, %K: !line, %L: !line) {
  %l = stencil.load %L : !line -> !stencil.temp<?xf64>
  stencil.store %l to %K(<[0], [8]>) : !stencil.temp<?xf64> to !line
  %k = stencil.load %K : !line -> !stencil.temp<?xf64>
  %v = stencil.apply(%x = %k : !stencil.temp<?xf64>) -> (!temp) {
    %0 = stencil.access %x[0, _] : !stencil.temp<?xf64>
    stencil.return %0 : f64
  }
  stencil.store %v to %A(<[0, 0], [8, 8]>) : !temp to !field
  return
}
