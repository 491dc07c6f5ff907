// RUN: xdsl-opt %s -p 'ebisu{arch=a100-pcie}' --split-input-file | filecheck %s

// EBISU's sizes come from the paper's formulas: for planes of one axis as many steps as shift the bottleneck of the
// paper's A100, whose memory and shared memory give 6 steps with 80 GB of memory (section 6.2.1). Every level's plane lies in shared memory, in
// slots that are computed, and its own cells in registers, two a thread; one barrier a step serves all levels.

// CHECK-LABEL: tile.kernel @plate_d
// CHECK-SAME:    layout #tile.layout<block, [2 cells x 32 lanes x 8 warps]>
// CHECK:         %[[u:.*]] = tile.load %src ahead 3 home #tile.registers<depth 2, period 2>
// CHECK-NEXT:    tile.exchange %[[u]] what plane delay 1 home #tile.exchange_buffer<slots 2, computed, every 1, space shared, sync barrier>
// CHECK-COUNT-5: what plane delay 1 home #tile.exchange_buffer<slots 2, computed, every 1, space shared, sync barrier>
// CHECK-NOT:     tile.exchange
// CHECK:         tile.store
// CHECK:       temporal.loop {{.*}} depths [6, 4, 2, 1] schedule #tile.schedule<tile block, cells [2], warps [8], storage shared, addressing computed, occupancy 1> kernels

!field = !stencil.field<[-1,1025]x[-1,1025]xf64>
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
    stencil.store %out to %v(<[0, 0], [1024, 1024]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}

// -----

// A tile of planes of two axes is held by the device: blocks in a row span 96 rows and the overlap of six steps, and exchange
// edges by messages. Rows of 64 cells pay more than 32 x 32 cells, as tiles overlap along the rows.

// CHECK-LABEL: tile.kernel @volume_d6
// CHECK-SAME:    layout #tile.layout<device, [2 cells x 8 warps x 7 blocks, 2 cells x 32 lanes]>
// CHECK-COUNT-5: what edges delay 1 home #tile.exchange_buffer<slots 2, shifting, every 1, space global, sync flags>
// CHECK-NOT:     tile.exchange
// CHECK:         tile.store
// CHECK:       temporal.loop {{.*}} depths [6, 4, 2, 1] schedule #tile.schedule<tile device, {{.*}} blocks [7, 1], storage shared, addressing shifting, sync flags, occupancy 1>

!field = !stencil.field<[-1,97]x[-1,97]x[-1,97]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @volume(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0, 0] : !temp
      %x1 = stencil.access %x[0, -1, 0] : !temp
      %x2 = stencil.access %x[0, 0, -1] : !temp
      %x3 = stencil.access %x[0, 0, 0] : !temp
      %x4 = stencil.access %x[0, 0, 1] : !temp
      %x5 = stencil.access %x[0, 1, 0] : !temp
      %x6 = stencil.access %x[1, 0, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s2 = arith.addf %s1, %x2 : f64
      %s3 = arith.addf %s2, %x3 : f64
      %s4 = arith.addf %s3, %x4 : f64
      %s5 = arith.addf %s4, %x5 : f64
      %s = arith.addf %s5, %x6 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [96, 96, 96]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}

// -----

// A box enters its sums plane by plane, and each plane is published once.

// CHECK-LABEL: tile.kernel @box_d
// CHECK:         tile.apply @box_cell0_rows0
// CHECK:         tile.apply @box_cell0_rows1
// CHECK:         tile.apply @box_cell0_rows2
// CHECK:       form rows, storage shared, addressing shifting

!field = !stencil.field<[-1,97]x[-1,97]x[-1,97]xf64>
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
    stencil.store %out to %v(<[0, 0, 0], [96, 96, 96]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
