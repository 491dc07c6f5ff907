// RUN: xdsl-opt %s -p an5d --split-input-file | filecheck %s

// AN5D's model ranks the paper's configurations, steps of a launch and cells of a block, and ours compares the best five, with two cells a thread.
// Own cells are in registers at fixed places, and each level has two planes in shared memory.

// CHECK-LABEL: tile.kernel @plate_d14
// CHECK-SAME:    layout #tile.layout<block, [2 cells x 32 lanes x 2 warps]>
// CHECK:         %[[u:.*]] = tile.load %src ahead 3 home #tile.registers<depth 2, period 2>
// CHECK-COUNT-14: what plane delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier>
// CHECK-NOT:     tile.exchange
// CHECK:         tile.store
// CHECK:       temporal.loop {{.*}} schedule #tile.schedule<tile block, cells [2], warps [2], occupancy 6>

!field = !stencil.field<[-1,8193]x[-1,8193]xf64>
!temp = !stencil.temp<?x?xf64>

func.func @plate(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0] : !temp
      %x1 = stencil.access %x[0, -1] : !temp
      %x2 = stencil.access %x[0, 0] : !temp
      %x3 = stencil.access %x[0, 1] : !temp
      %x4 = stencil.access %x[1, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s3 = arith.addf %s2, %x3 : f64
      %s = arith.addf %s3, %x4 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0], [8192, 8192]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}

// -----

// A box enters its sums plane by plane (the paper's associative stencils).

// CHECK-LABEL: tile.kernel @box_d
// CHECK-SAME:    layout #tile.layout<block, [2 cells x 8 warps, 1 cells x 32 lanes]>
// CHECK:         tile.apply @box_cell0_rows0
// CHECK:       form rows

!field = !stencil.field<[-1,257]x[-1,257]x[-1,257]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @box(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, -1, -1] : !temp
      %x1 = stencil.access %x[-1, -1, 0] : !temp
      %x2 = stencil.access %x[-1, -1, 1] : !temp
      %x3 = stencil.access %x[-1, 0, -1] : !temp
      %x4 = stencil.access %x[-1, 0, 0] : !temp
      %x5 = stencil.access %x[-1, 0, 1] : !temp
      %x6 = stencil.access %x[-1, 1, -1] : !temp
      %x7 = stencil.access %x[-1, 1, 0] : !temp
      %x8 = stencil.access %x[-1, 1, 1] : !temp
      %x9 = stencil.access %x[0, -1, -1] : !temp
      %x10 = stencil.access %x[0, -1, 0] : !temp
      %x11 = stencil.access %x[0, -1, 1] : !temp
      %x12 = stencil.access %x[0, 0, -1] : !temp
      %x13 = stencil.access %x[0, 0, 0] : !temp
      %x14 = stencil.access %x[0, 0, 1] : !temp
      %x15 = stencil.access %x[0, 1, -1] : !temp
      %x16 = stencil.access %x[0, 1, 0] : !temp
      %x17 = stencil.access %x[0, 1, 1] : !temp
      %x18 = stencil.access %x[1, -1, -1] : !temp
      %x19 = stencil.access %x[1, -1, 0] : !temp
      %x20 = stencil.access %x[1, -1, 1] : !temp
      %x21 = stencil.access %x[1, 0, -1] : !temp
      %x22 = stencil.access %x[1, 0, 0] : !temp
      %x23 = stencil.access %x[1, 0, 1] : !temp
      %x24 = stencil.access %x[1, 1, -1] : !temp
      %x25 = stencil.access %x[1, 1, 0] : !temp
      %x26 = stencil.access %x[1, 1, 1] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s3 = arith.addf %s2, %x3 : f64
      %s4 = arith.addf %s3, %x4 : f64
      %s5 = arith.addf %s4, %x5 : f64
      %s6 = arith.addf %s5, %x6 : f64
      %s7 = arith.addf %s6, %x7 : f64
      %s8 = arith.addf %s7, %x8 : f64
      %s9 = arith.addf %s8, %x9 : f64
      %s10 = arith.addf %s9, %x10 : f64
      %s11 = arith.addf %s10, %x11 : f64
      %s12 = arith.addf %s11, %x12 : f64
      %s13 = arith.addf %s12, %x13 : f64
      %s14 = arith.addf %s13, %x14 : f64
      %s15 = arith.addf %s14, %x15 : f64
      %s16 = arith.addf %s15, %x16 : f64
      %s17 = arith.addf %s16, %x17 : f64
      %s18 = arith.addf %s17, %x18 : f64
      %s19 = arith.addf %s18, %x19 : f64
      %s20 = arith.addf %s19, %x20 : f64
      %s21 = arith.addf %s20, %x21 : f64
      %s22 = arith.addf %s21, %x22 : f64
      %s23 = arith.addf %s22, %x23 : f64
      %s24 = arith.addf %s23, %x24 : f64
      %s25 = arith.addf %s24, %x25 : f64
      %s = arith.addf %s25, %x26 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [256, 256, 256]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
