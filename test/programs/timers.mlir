// Calls of timers stand around the loop, and their time is stored where the caller says.

!field = !stencil.field<[-1,41]xf64>
!temp = !stencil.temp<?xf64>
func.func @step(%A: !field, %B: !field, %n: index, %timers: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = func.call @timer_start() : () -> f64
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%a = %A, %b = %B) -> (!field, !field) {
    %u = stencil.load %a : !field -> !temp
    %v = stencil.apply(%x = %u : !temp) -> (!temp) {
      %l = stencil.access %x[-1] : !temp
      %r = stencil.access %x[1] : !temp
      %s = arith.addf %l, %r : f64
      %h = arith.constant 0.5 : f64
      %m = arith.mulf %h, %s : f64
      stencil.return %m : f64
    }
    stencil.store %v to %b(<[0], [40]>) : !temp to !field
    scf.yield %b, %a : !field, !field
  }
  %end = func.call @timer_end(%start) : (f64) -> f64
  "llvm.store"(%end, %timers) <{"ordering" = 0 : i64}> : (f64, !llvm.ptr) -> ()
  func.return
}
func.func private @timer_start() -> f64
func.func private @timer_end(f64) -> f64
