// Nests of the host that add to cells of a field, and note others: sources and receivers with their corners.
!field = !stencil.field<[-1,9]x[-1,9]xf64>
!temp = !stencil.temp<?x?xf64>
func.func @step(%A: !field, %B: !field, %wave: memref<16x3xf64>, %trace: memref<16x3xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1, 0] : !temp
      %e = stencil.access %x[0, 1] : !temp
      %s = arith.addf %l, %e : f64
      %h = arith.constant 0.5 : f64
      %m = arith.mulf %s, %h : f64
      stencil.return %m : f64
    }
    stencil.store %v to %b(<[0, 0], [8, 8]>) : !temp to !field
    %cells = builtin.unrealized_conversion_cast %b : !field to memref<10x10xf64>
    scf.for %p = %c0 to %c3 step %c1 {
      %w = memref.load %wave[%t, %p] : memref<16x3xf64>
      scf.for %d = %c0 to %c2 step %c1 {
        %k = arith.addi %p, %d : index
        %i = arith.remui %k, %c8 : index
        %old = memref.load %cells[%i, %p] : memref<10x10xf64>
        %sum = arith.addf %old, %w : f64
        memref.store %sum, %cells[%i, %p] : memref<10x10xf64>
      }
    }
    scf.for %p = %c0 to %c3 step %c1 {
      %seen = memref.load %cells[%p, %c1] : memref<10x10xf64>
      memref.store %seen, %trace[%t, %p] : memref<16x3xf64>
    }
    scf.yield %b, %a : !field, !field
  }
  return
}
