// Memory that the function allocates: a buffer that takes turns with an argument, one of a step, and a single cell.
!field = !stencil.field<[-1,13]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f64
  %B = stencil.alloc : !field
  %weight = memref.alloc() : memref<2xf64>
  memref.store %half, %weight[%c1] : memref<2xf64>
  %first = stencil.load %A : !field -> !temp
  stencil.store %first to %B(<[-1], [13]>) : !temp to !field
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %m = memref.alloc() : memref<14xf64>
    %mid = stencil.external_load %m : memref<14xf64> -> !field
    %u = stencil.load %a : !field -> !temp
    stencil.store %u to %mid(<[-1], [13]>) : !temp to !field
    %s = memref.load %weight[%c1] : memref<2xf64>
    %w = stencil.load %mid : !field -> !temp
    %v = stencil.apply(%x = %w : !temp, %h = %s : f64) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %d = arith.addf %l, %r : f64
      %e = arith.mulf %d, %h : f64
      stencil.return %e : f64
    }
    stencil.store %v to %b(<[0], [12]>) : !temp to !field
    memref.dealloc %m : memref<14xf64>
    scf.yield %b, %a : !field, !field
  }
  %q = stencil.load %r#0 : !field -> !temp
  stencil.store %q to %A(<[-1], [13]>) : !temp to !field
  memref.dealloc %weight : memref<2xf64>
  return
}
