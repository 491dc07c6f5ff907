// Heat conduction in a cube: the seven-point Laplacian and explicit Euler steps.
//
//   u_t = alpha (u_xx + u_yy + u_zz)
//   u' = (1 - 6 k) u + k (sum of the six neighbours)   k = alpha dt / h^2 = 0.125, stable up to 1/6
//
// Two buffers take turns: a step reads one and writes the other. The cube is the cells [0, 64) along
// all axes, z first; the shell of cells around it is halo and keeps the temperature of the walls.
//
//   timetile run heat3d.mlir --steps 200 --init discs --out out.npz --plot out.png

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>
!temp = !stencil.temp<?x?x?xf64>

func.func @heat3d(%u: !field, %v: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ru, %rv = scf.for %t = %zero to %steps step %one
      iter_args(%old = %u, %new = %v) -> (!field, !field) {
    %cube = stencil.load %old : !field -> !temp
    %next = stencil.apply(%c = %cube : !temp) -> (!temp) {
      %below = stencil.access %c[-1, 0, 0] : !temp
      %back = stencil.access %c[0, -1, 0] : !temp
      %left = stencil.access %c[0, 0, -1] : !temp
      %here = stencil.access %c[0, 0, 0] : !temp
      %right = stencil.access %c[0, 0, 1] : !temp
      %front = stencil.access %c[0, 1, 0] : !temp
      %above = stencil.access %c[1, 0, 0] : !temp
      %k = arith.constant 0.125 : f64
      %rest = arith.constant 0.25 : f64 // 1 - 6 k
      // The terms plane by plane: a streaming kernel can then start a sum before it has the last plane.
      %m0 = arith.mulf %k, %below : f64
      %m1 = arith.mulf %k, %back : f64
      %m2 = arith.mulf %k, %left : f64
      %m3 = arith.mulf %rest, %here : f64
      %m4 = arith.mulf %k, %right : f64
      %m5 = arith.mulf %k, %front : f64
      %m6 = arith.mulf %k, %above : f64
      %s1 = arith.addf %m0, %m1 : f64
      %s2 = arith.addf %s1, %m2 : f64
      %s3 = arith.addf %s2, %m3 : f64
      %s4 = arith.addf %s3, %m4 : f64
      %s5 = arith.addf %s4, %m5 : f64
      %s6 = arith.addf %s5, %m6 : f64
      stencil.return %s6 : f64
    }
    stencil.store %next to %new(<[0, 0, 0], [64, 64, 64]>) : !temp to !field
    scf.yield %new, %old : !field, !field
  }
  func.return
}
