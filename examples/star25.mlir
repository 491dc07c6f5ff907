// The 25-point star of seismic imaging: the acoustic wave equation in three dimensions, eighth order in
// space and second order in time.
//
//   p_tt = c(x)^2 (p_xx + p_yy + p_zz)
//   p' = 2 p - p_before + m (3 w0 p + sum over d = 1 .. 4 of w_d (the six cells at distance d))
//
// with m = (c dt / h)^2, at most 0.2, and the weights of the eighth-order second derivative:
// w0 = -205/72, w1 = 8/5, w2 = -1/5, w3 = 8/315, w4 = -1/560.
//
// Three buffers take turns; the field %m is read in every step and written in none. The halo is four
// cells wide, as far as the star reaches, and zero: waves are reflected at the rim.
//
//   timetile run star25.mlir --steps 60 --init gaussian --set m=0.1 --out out.npz --plot out.png
//
// or with `p`, `p_before`, `p_next` and `m` in a file: --args in.npz.

!field = !stencil.field<[-4,84]x[-4,84]x[-4,84]xf32>
!temp = !stencil.temp<?x?x?xf32>

func.func @star25(%p: !field, %p_next: !field, %p_before: !field, %m: !field, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r0, %r1, %r2 = scf.for %t = %zero to %steps step %one
      iter_args(%now = %p, %next = %p_next, %before = %p_before) -> (!field, !field, !field) {
    %pressure = stencil.load %now : !field -> !temp
    %earlier = stencil.load %before : !field -> !temp
    %medium = stencil.load %m : !field -> !temp
    %result = stencil.apply(%a = %pressure : !temp, %b = %earlier : !temp, %c = %medium : !temp)
        -> (!temp) {
      %here = stencil.access %a[0, 0, 0] : !temp
      %w0 = arith.constant -8.541666666666666 : f32 // 3 (-205/72)
      %sum0 = arith.mulf %w0, %here : f32

      // Distance 1.
      %z1m = stencil.access %a[-1, 0, 0] : !temp
      %y1m = stencil.access %a[0, -1, 0] : !temp
      %x1m = stencil.access %a[0, 0, -1] : !temp
      %x1p = stencil.access %a[0, 0, 1] : !temp
      %y1p = stencil.access %a[0, 1, 0] : !temp
      %z1p = stencil.access %a[1, 0, 0] : !temp
      %z1 = arith.addf %z1m, %z1p : f32
      %y1 = arith.addf %y1m, %y1p : f32
      %x1 = arith.addf %x1m, %x1p : f32
      %zy1 = arith.addf %z1, %y1 : f32
      %shell1 = arith.addf %zy1, %x1 : f32
      %w1 = arith.constant 1.6 : f32 // 8/5
      %term1 = arith.mulf %w1, %shell1 : f32
      %sum1 = arith.addf %sum0, %term1 : f32

      // Distance 2.
      %z2m = stencil.access %a[-2, 0, 0] : !temp
      %y2m = stencil.access %a[0, -2, 0] : !temp
      %x2m = stencil.access %a[0, 0, -2] : !temp
      %x2p = stencil.access %a[0, 0, 2] : !temp
      %y2p = stencil.access %a[0, 2, 0] : !temp
      %z2p = stencil.access %a[2, 0, 0] : !temp
      %z2 = arith.addf %z2m, %z2p : f32
      %y2 = arith.addf %y2m, %y2p : f32
      %x2 = arith.addf %x2m, %x2p : f32
      %zy2 = arith.addf %z2, %y2 : f32
      %shell2 = arith.addf %zy2, %x2 : f32
      %w2 = arith.constant -0.2 : f32 // -1/5
      %term2 = arith.mulf %w2, %shell2 : f32
      %sum2 = arith.addf %sum1, %term2 : f32

      // Distance 3.
      %z3m = stencil.access %a[-3, 0, 0] : !temp
      %y3m = stencil.access %a[0, -3, 0] : !temp
      %x3m = stencil.access %a[0, 0, -3] : !temp
      %x3p = stencil.access %a[0, 0, 3] : !temp
      %y3p = stencil.access %a[0, 3, 0] : !temp
      %z3p = stencil.access %a[3, 0, 0] : !temp
      %z3 = arith.addf %z3m, %z3p : f32
      %y3 = arith.addf %y3m, %y3p : f32
      %x3 = arith.addf %x3m, %x3p : f32
      %zy3 = arith.addf %z3, %y3 : f32
      %shell3 = arith.addf %zy3, %x3 : f32
      %w3 = arith.constant 0.025396825396825397 : f32 // 8/315
      %term3 = arith.mulf %w3, %shell3 : f32
      %sum3 = arith.addf %sum2, %term3 : f32

      // Distance 4.
      %z4m = stencil.access %a[-4, 0, 0] : !temp
      %y4m = stencil.access %a[0, -4, 0] : !temp
      %x4m = stencil.access %a[0, 0, -4] : !temp
      %x4p = stencil.access %a[0, 0, 4] : !temp
      %y4p = stencil.access %a[0, 4, 0] : !temp
      %z4p = stencil.access %a[4, 0, 0] : !temp
      %z4 = arith.addf %z4m, %z4p : f32
      %y4 = arith.addf %y4m, %y4p : f32
      %x4 = arith.addf %x4m, %x4p : f32
      %zy4 = arith.addf %z4, %y4 : f32
      %shell4 = arith.addf %zy4, %x4 : f32
      %w4 = arith.constant -0.0017857142857142857 : f32 // -1/560
      %term4 = arith.mulf %w4, %shell4 : f32
      %sum4 = arith.addf %sum3, %term4 : f32

      %old = stencil.access %b[0, 0, 0] : !temp
      %courant = stencil.access %c[0, 0, 0] : !temp
      %two = arith.constant 2.0 : f32
      %twice = arith.mulf %two, %here : f32
      %inertia = arith.subf %twice, %old : f32
      %force = arith.mulf %courant, %sum4 : f32
      %value = arith.addf %inertia, %force : f32
      stencil.return %value : f32
    }
    stencil.store %result to %next(<[0, 0, 0], [80, 80, 80]>) : !temp to !field
    scf.yield %next, %before, %now : !field, !field, !field
  }
  func.return
}
