// RUN: xdsl-opt %s -p 'timetile{depth=2},plan-launches{steps=5}' 2>/dev/null | filecheck %s

// After the whole pipeline a launch says all that a host needs: the kernel, its buffers in order, the grid, the
// block, and the shared memory that it takes. Nothing of the time loop is left.

!field = !stencil.field<[-1,65]x[-1,65]xf64>
!temp = !stencil.temp<?x?xf64>

// CHECK-LABEL: func.func @heat(
// CHECK-NOT:     temporal.
// CHECK:         tile.launch @heat_d2(%{{.*}}) with #tile.launch<steps 2, roles [#tile.role<source 0>, #tile.role<target 0>{{.*}}], grid {{[0-9]+}}, block {{[0-9]+}}, shared_bytes {{[0-9]+}}, occupancy {{[0-9]+}}> :
// CHECK:         tile.launch @heat_step(%{{.*}}) with #tile.launch<steps 1, roles [{{.*}}], grid {{[0-9]+}},
// CHECK-NOT:     temporal.
func.func @heat(%n: index, %A: !field, %B: !field) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1, 0] : !temp
      %r = stencil.access %x[0, 1] : !temp
      %s = arith.addf %l, %r : f64
      stencil.return %s : f64
    }
    stencil.store %v to %b(<[0, 0], [64, 64]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  return
}
