// Heat conduction in a plate: the five-point Laplacian and explicit Euler steps.
//
//   u_t = alpha (u_xx + u_yy)
//   u' = u + k (up + left + right + down - 4 u)        k = alpha dt / h^2 = 0.2, stable up to 0.25
//
// Two buffers take turns: a step reads one and writes the other. The plate is the cells [0, 256) along
// both axes. The ring of cells around it is halo, which the program never writes: the rim of the plate
// keeps the temperature that the caller puts there, in both buffers.
//
//   timetile run heat2d.mlir --steps 1000 --init discs --out out.npz --plot out.png

!field = !stencil.field<[-1,257]x[-1,257]xf64>
!temp = !stencil.temp<?x?xf64>

func.func @heat2d(%u: !field, %v: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ru, %rv = scf.for %t = %zero to %steps step %one
      iter_args(%old = %u, %new = %v) -> (!field, !field) {
    %plate = stencil.load %old : !field -> !temp
    %next = stencil.apply(%p = %plate : !temp) -> (!temp) {
      %up = stencil.access %p[-1, 0] : !temp
      %left = stencil.access %p[0, -1] : !temp
      %here = stencil.access %p[0, 0] : !temp
      %right = stencil.access %p[0, 1] : !temp
      %down = stencil.access %p[1, 0] : !temp
      %k = arith.constant 0.2 : f64
      %rest = arith.constant 0.2 : f64 // 1 - 4 k
      %a = arith.mulf %k, %up : f64
      %b = arith.mulf %k, %left : f64
      %c = arith.mulf %rest, %here : f64
      %d = arith.mulf %k, %right : f64
      %e = arith.mulf %k, %down : f64
      %ab = arith.addf %a, %b : f64
      %abc = arith.addf %ab, %c : f64
      %abcd = arith.addf %abc, %d : f64
      %sum = arith.addf %abcd, %e : f64
      stencil.return %sum : f64
    }
    stencil.store %next to %new(<[0, 0], [256, 256]>) : !temp to !field
    scf.yield %new, %old : !field, !field
  }
  func.return
}
