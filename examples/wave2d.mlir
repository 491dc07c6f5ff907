// The acoustic wave equation with a velocity that varies in space, second order in time.
//
//   p_tt = c(x)^2 (p_xx + p_yy)
//   p' = 2 p - p_before + m (up + left - 4 p + right + down)      m = (c dt / h)^2, at most 0.5
//
// Three buffers take turns: a step reads the pressure of this step and of the one before, and writes the
// next one. The field %m is a coefficient: it is read in every step and written in none. Pressure is
// zero on the rim (the halo), so that waves are reflected there.
//
//   timetile run wave2d.mlir --steps 300 --init gaussian --set m=0.2 --out out.npz --plot out.png
//
// or with `p`, `p_before`, `p_next` and `m` in a file: --args in.npz.

!field = !stencil.field<[-1,385]x[-1,385]xf32>
!temp = !stencil.temp<?x?xf32>

func.func @wave2d(%p: !field, %p_next: !field, %p_before: !field, %m: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r0, %r1, %r2 = scf.for %t = %zero to %steps step %one
      iter_args(%now = %p, %next = %p_next, %before = %p_before) -> (!field, !field, !field) {
    %pressure = stencil.load %now : !field -> !temp
    %earlier = stencil.load %before : !field -> !temp
    %medium = stencil.load %m : !field -> !temp
    %result = stencil.apply(%a = %pressure : !temp, %b = %earlier : !temp, %c = %medium : !temp)
        -> (!temp) {
      %up = stencil.access %a[-1, 0] : !temp
      %left = stencil.access %a[0, -1] : !temp
      %here = stencil.access %a[0, 0] : !temp
      %right = stencil.access %a[0, 1] : !temp
      %down = stencil.access %a[1, 0] : !temp
      %old = stencil.access %b[0, 0] : !temp
      %courant = stencil.access %c[0, 0] : !temp
      %two = arith.constant 2.0 : f32
      %four = arith.constant -4.0 : f32
      %s0 = arith.addf %up, %left : f32
      %centre = arith.mulf %four, %here : f32
      %s1 = arith.addf %s0, %centre : f32
      %s2 = arith.addf %s1, %right : f32
      %laplacian = arith.addf %s2, %down : f32
      %twice = arith.mulf %two, %here : f32
      %inertia = arith.subf %twice, %old : f32
      %force = arith.mulf %courant, %laplacian : f32
      %value = arith.addf %inertia, %force : f32
      stencil.return %value : f32
    }
    stencil.store %result to %next(<[0, 0], [384, 384]>) : !temp to !field
    scf.yield %next, %before, %now : !field, !field, !field
  }
  func.return
}
