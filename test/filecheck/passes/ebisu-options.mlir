// RUN: xdsl-opt %s -p 'ebisu{depth=3 cells=1 warps=4 occupancy=2 ahead=1}' | filecheck %s
// RUN: xdsl-opt %s -p 'raise-time-loop,contract-cells,temporal-fusion{depths=2},ebisu' | filecheck %s --check-prefix=RAISED

// Options override the sizes of the formulas, and a program that has time loops already keeps its depths.

// CHECK:  tile.kernel @heat_d3
// CHECK-SAME:    layout #tile.layout<block, [1 cells x 32 lanes x 4 warps]>
// CHECK:  depths [3, 1] schedule #tile.schedule<tile block, cells [1], warps [4], storage shared, addressing computed, ahead 1>
// RAISED: tile.kernel @heat_d2
// RAISED: depths [2, 1] schedule #tile.schedule<tile block, cells [2], warps [8]

!field = !stencil.field<[-1,1025]x[-1,1025]xf64>
!temp = !stencil.temp<?x?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
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
