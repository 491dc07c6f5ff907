// RUN: xdsl-opt %s -p 'raise-time-loop,device-tiling{stream-axis=0}' --verify-diagnostics | filecheck %s

// A domain of one axis is not streamed.

// CHECK: temporal.loop in @line: a domain of one axis has no planes to stream; leave out stream-axis
func.func @line(%a: !stencil.field<[-1,9]xf64>, %b: !stencil.field<[-1,9]xf64>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %t = %zero to %n step %one iter_args(%u = %a, %v = %b) -> (!stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>) {
    %l = stencil.load %u : !stencil.field<[-1,9]xf64> -> !stencil.temp<?xf64>
    %o = stencil.apply(%x = %l : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
      %c = stencil.access %x[-1] : !stencil.temp<?xf64>
      stencil.return %c : f64
    }
    stencil.store %o to %v(<[0], [8]>) : !stencil.temp<?xf64> to !stencil.field<[-1,9]xf64>
    scf.yield %v, %u : !stencil.field<[-1,9]xf64>, !stencil.field<[-1,9]xf64>
  }
  func.return
}
