// RUN: xdsl-opt %s -p join-levels --split-input-file | filecheck %s

// Six levels, each reading the level before, become a sweep with one cell function.

// CHECK-LABEL: func.func private @up_levels(%0: f64, %1: f64) -> f64
// CHECK:         arith.addf %0, %1 : f64
// CHECK-LABEL: func.func @up
// CHECK:         temporal.sweep %u = @up_levels(%u[0, 0], %u[0, -1]) along 1 ascending in <[0, 1], [4, 7]>
// CHECK-NOT:     stencil.store
// CHECK:         func.return
func.func @up(%u: !stencil.field<[0,4]x[0,9]xf64>) {
  %u1 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v1 = stencil.apply(%x = %u1 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v1 to %u(<[0, 1], [4, 2]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u2 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v2 = stencil.apply(%x = %u2 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v2 to %u(<[0, 2], [4, 3]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u3 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v3 = stencil.apply(%x = %u3 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v3 to %u(<[0, 3], [4, 4]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u4 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v4 = stencil.apply(%x = %u4 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v4 to %u(<[0, 4], [4, 5]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u5 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v5 = stencil.apply(%x = %u5 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v5 to %u(<[0, 5], [4, 6]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u6 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v6 = stencil.apply(%x = %u6 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v6 to %u(<[0, 6], [4, 7]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  return
}

// -----

// The other way round, places count down; a level of another cell begins no sweep of fewer than six.

// CHECK-LABEL: func.func @down
// CHECK:         stencil.store %{{.*}} to %u(<[0, 7], [4, 8]>)
// CHECK:         temporal.sweep %u = @down_levels(%u[0, 0], %u[0, 1]) along 1 descending in <[0, 1], [4, 7]>
// CHECK-NOT:     stencil.store
// CHECK:         func.return
func.func @down(%u: !stencil.field<[0,4]x[0,9]xf64>) {
  %u7 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v7 = stencil.apply(%x = %u7 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, -1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v7 to %u(<[0, 7], [4, 8]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u6 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v6 = stencil.apply(%x = %u6 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v6 to %u(<[0, 6], [4, 7]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u5 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v5 = stencil.apply(%x = %u5 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v5 to %u(<[0, 5], [4, 6]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u4 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v4 = stencil.apply(%x = %u4 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v4 to %u(<[0, 4], [4, 5]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u3 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v3 = stencil.apply(%x = %u3 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v3 to %u(<[0, 3], [4, 4]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u2 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v2 = stencil.apply(%x = %u2 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v2 to %u(<[0, 2], [4, 3]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  %u1 = stencil.load %u : !stencil.field<[0,4]x[0,9]xf64> -> !stencil.temp<?x?xf64>
  %v1 = stencil.apply(%x = %u1 : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %x[0, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %x[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    stencil.return %s : f64
  }
  stencil.store %v1 to %u(<[0, 1], [4, 2]>) : !stencil.temp<?x?xf64> to !stencil.field<[0,4]x[0,9]xf64>
  return
}
