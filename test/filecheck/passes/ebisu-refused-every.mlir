// RUN: xdsl-opt %s -p 'ebisu{depth=2 every=4 blocks=4,1}' --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s -p 'ebisu{depth=2 every=4 sync=grid blocks=4,1}' | filecheck %s --check-prefix=GRID

// Blocks that send messages wait for their neighbours in every step; at barriers of the grid they may meet less often.

// CHECK: temporal.loop in @heat: ebisu{every=4} is one barrier in 4 steps, and the blocks of a tile send messages every step; give sync=grid, too
// GRID: what plane delay 4 home #tile.exchange_buffer<slots {{[0-9]+}}, {{.*}}every 4, space global, sync grid>

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
