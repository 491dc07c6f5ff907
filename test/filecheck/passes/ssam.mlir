// RUN: xdsl-opt %s -p ssam | filecheck %s

// The model of SSAM: a warp holds whole rows of four cells a lane; the cells of a column stay in their lane, and partial sums travel.

// CHECK-LABEL: tile.kernel @heat_step
// CHECK-SAME:    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4>
// CHECK:         %[[u:.*]] = tile.load
// CHECK:         %[[p:.*]] = tile.apply @heat_cell0_lanes0(%[[u]][-1, 0], %[[u]][0, 0], %[[u]][1, 0]) home #tile.registers
// CHECK-NEXT:    %[[q:.*]] = tile.apply @heat_cell0_lanes1(%[[p]][0, -1], %[[u]][-1, 0], %[[u]][0, 0], %[[u]][1, 0]) home #tile.registers
// CHECK-NOT:     tile.exchange

!field = !stencil.field<[-1,1025]x[-1,1025]xf64>
!temp = !stencil.temp<?x?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, -1] : !temp
      %x1 = stencil.access %x[0, -1] : !temp
      %x2 = stencil.access %x[1, -1] : !temp
      %x3 = stencil.access %x[-1, 0] : !temp
      %x4 = stencil.access %x[0, 0] : !temp
      %x5 = stencil.access %x[1, 0] : !temp
      %x6 = stencil.access %x[-1, 1] : !temp
      %x7 = stencil.access %x[0, 1] : !temp
      %x8 = stencil.access %x[1, 1] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s3 = arith.addf %s2, %x3 : f64
      %s4 = arith.addf %s3, %x4 : f64
      %s5 = arith.addf %s4, %x5 : f64
      %s6 = arith.addf %s5, %x6 : f64
      %s7 = arith.addf %s6, %x7 : f64
      %s = arith.addf %s7, %x8 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0], [1024, 1024]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
