// RUN: xdsl-opt %s -p ssam | filecheck %s

// The model of SSAM: a warp holds whole rows of six cells a lane; the cells of a column stay in their lane, and partial sums travel.

// CHECK-LABEL: tile.kernel @heat_step
// CHECK-SAME:    layout #tile.layout<warp, [6 cells x 32 lanes], pack 4>
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

// In a volume the warps of a block have rows of a plane, and exchange the rows at their edges.
// CHECK-LABEL: tile.kernel @volume_step
// CHECK-SAME:    layout #tile.layout<block, [4 cells x 4 warps, 1 cells x 32 lanes]>
// CHECK:         %[[u:.*]] = tile.load
// CHECK:         %[[e:.*]] = tile.exchange %[[u]]
// CHECK-SAME:    edges [1, 0]
// CHECK:         %[[p:.*]] = tile.apply @volume_cell0_lanes0(%[[u]][0, 0, 0]) home #tile.registers
// CHECK-NEXT:    tile.apply @volume_cell0_lanes1(%[[p]][0, 0, -1], %[[e]][0, -1, 0], %[[u]][0, 0, 0], %[[u]][1, 0, 0]) home #tile.registers

!box = !stencil.field<[-1,97]x[-1,97]x[-1,97]xf64>
!part = !stencil.temp<?x?x?xf64>

func.func @volume(%a: !box, %b: !box, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!box, !box) {
    %in = stencil.load %u : !box -> !part
    %out = stencil.apply(%x = %in : !part) -> (!part) {
      %x0 = stencil.access %x[0, 0, -1] : !part
      %x1 = stencil.access %x[0, -1, 0] : !part
      %x2 = stencil.access %x[0, 0, 0] : !part
      %x3 = stencil.access %x[1, 0, 0] : !part
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s = arith.addf %s2, %x3 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [96, 96, 96]>) : !part to !box
    scf.yield %v, %u : !box, !box
  }
  func.return
}
