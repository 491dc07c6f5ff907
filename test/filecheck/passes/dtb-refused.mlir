// RUN: xdsl-opt %s -p 'dtb' --verify-diagnostics | filecheck %s

// No tile of volumes stays, as the paper's plates do.

// CHECK: temporal.loop in @heat: dtb is for domains of 2 axes, got 3: a tile of planes of one axis stays on the device; use the default passes

!field = !stencil.field<[-1,97]x[-1,97]x[-1,97]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @heat(%a: !field, %b: !field, %steps: index) {
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
