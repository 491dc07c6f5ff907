// RUN: xdsl-opt %s -p 'ebisu{depth=2 cells=4}' --verify-diagnostics | filecheck %s

// Sizes have a number for each axis of a plane.

// CHECK: ebisu: cells has a number for each of 2 in-plane axes, got 1; give cells=4,1, say

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @volume(%a: !field, %b: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ra, %rb = scf.for %t = %zero to %steps step %one iter_args(%u = %a, %v = %b) -> (!field, !field) {
    %in = stencil.load %u : !field -> !temp
    %out = stencil.apply(%x = %in : !temp) -> (!temp) {
      %x0 = stencil.access %x[-1, 0, 0] : !temp
      %x1 = stencil.access %x[1, 0, 0] : !temp
      %s = arith.addf %x0, %x1 : f64
      stencil.return %s : f64
    }
    stencil.store %out to %v(<[0, 0, 0], [64, 64, 64]>) : !temp to !field
    scf.yield %v, %u : !field, !field
  }
  func.return
}
