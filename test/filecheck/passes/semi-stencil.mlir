// RUN: xdsl-opt %s -p semi-stencil | filecheck %s

// Semi-stencil: the planes before the cell's own enter a sum of their own. Planes are in shared memory, sums between the halves in
// registers, for 32 x 16 threads of one cell each.

// CHECK-LABEL: tile.kernel @heat_step
// CHECK-SAME:    layout #tile.layout<block, [1 cells x 16 warps, 1 cells x 32 lanes]>
// CHECK:         %[[u:.*]] = tile.load %src ahead 0 home #tile.shared<slots {{[0-9]+}}, shifting, reader tile>
// CHECK:         %[[f:.*]] = tile.apply @heat_cell0_halves0(%[[u]][-2, 0, 0], %[[u]][-1, 0, 0]) home #tile.registers<depth 3, period 1>
// CHECK:         tile.apply @heat_cell0_halves1(%[[f]][0, 0, 0], %[[u]][0, -2, 0]
// CHECK-NOT:     tile.exchange

!field = !stencil.field<[-2,98]x[-2,98]x[-2,98]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-2, 0, 0] : !temp
      %x1 = stencil.access %x[-1, 0, 0] : !temp
      %x2 = stencil.access %x[0, -2, 0] : !temp
      %x3 = stencil.access %x[0, -1, 0] : !temp
      %x4 = stencil.access %x[0, 0, -2] : !temp
      %x5 = stencil.access %x[0, 0, -1] : !temp
      %x6 = stencil.access %x[0, 0, 0] : !temp
      %x7 = stencil.access %x[0, 0, 1] : !temp
      %x8 = stencil.access %x[0, 0, 2] : !temp
      %x9 = stencil.access %x[0, 1, 0] : !temp
      %x10 = stencil.access %x[0, 2, 0] : !temp
      %x11 = stencil.access %x[1, 0, 0] : !temp
      %x12 = stencil.access %x[2, 0, 0] : !temp
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
      %s = arith.addf %s11, %x12 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [96, 96, 96]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}

// Each of two loops of a function has its sizes.

// CHECK-LABEL: tile.kernel @twice_0_step
// CHECK:         tile.apply @{{.*}}_halves0
// CHECK-LABEL: tile.kernel @twice_1_step
// CHECK:         tile.apply @{{.*}}_halves0

!small = !stencil.field<[-1,9]x[0,8]x[0,8]xf64>

func.func @twice(%a: !small, %b: !small, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r0a, %r0b = scf.for %t0 = %zero to %steps step %one iter_args(%u0 = %a, %v0 = %b) -> (!small, !small) {
    %in0 = stencil.load %u0 : !small -> !temp
    %out0 = stencil.apply(%x = %in0 : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0, 0] : !temp
      %x1 = stencil.access %x[0, 0, 0] : !temp
      %x2 = stencil.access %x[1, 0, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s = arith.addf %s1, %x2 : f64
      stencil.return %s : f64
    }
    stencil.store %out0 to %v0(<[0, 0, 0], [8, 8, 8]>) : !temp to !small
    scf.yield %v0, %u0 : !small, !small
  }
  %r1a, %r1b = scf.for %t1 = %zero to %steps step %one iter_args(%u1 = %r0a, %v1 = %r0b) -> (!small, !small) {
    %in1 = stencil.load %u1 : !small -> !temp
    %out1 = stencil.apply(%x = %in1 : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0, 0] : !temp
      %x1 = stencil.access %x[0, 0, 0] : !temp
      %x2 = stencil.access %x[1, 0, 0] : !temp
      %s1 = arith.addf %x0, %x1 : f64
      %s = arith.addf %s1, %x2 : f64
      stencil.return %s : f64
    }
    stencil.store %out1 to %v1(<[0, 0, 0], [8, 8, 8]>) : !temp to !small
    scf.yield %v1, %u1 : !small, !small
  }
  func.return
}
