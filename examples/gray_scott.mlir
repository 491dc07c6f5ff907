// The Gray-Scott model: two chemicals that diffuse and react, and make patterns.
//
//   u_t = du lap(u) - u v^2 + feed (1 - u)
//   v_t = dv lap(v) + u v^2 - (feed + kill) v                      dt = 1, h = 1
//
// Two fields with two buffers each; one apply computes both, since the reaction is common to them. The
// rates are arguments of the function, so that one compilation serves all patterns. The rim (the halo)
// keeps what the caller puts there: u = v = 0 are walls that take up both.
//
//   timetile run gray_scott.mlir --steps 3000 --set u=1 --set u_next=1 --init discs --plot out.png
//       --set du=0.16 --set dv=0.08 --set feed=0.06 --set kill=0.062

!field = !stencil.field<[-1,193]x[-1,193]xf32>
!temp = !stencil.temp<?x?xf32>

func.func @gray_scott(%u: !field, %v: !field, %u_next: !field, %v_next: !field,
                      %du: f32, %dv: f32, %feed: f32, %kill: f32, %steps: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r0, %r1, %r2, %r3 = scf.for %t = %zero to %steps step %one
      iter_args(%u0 = %u, %v0 = %v, %u1 = %u_next, %v1 = %v_next)
      -> (!field, !field, !field, !field) {
    %ut = stencil.load %u0 : !field -> !temp
    %vt = stencil.load %v0 : !field -> !temp
    %un, %vn = stencil.apply(%a = %ut : !temp, %b = %vt : !temp,
                             %rate_u = %du : f32, %rate_v = %dv : f32,
                             %f = %feed : f32, %k = %kill : f32) -> (!temp, !temp) {
      %u_up = stencil.access %a[-1, 0] : !temp
      %u_left = stencil.access %a[0, -1] : !temp
      %u_here = stencil.access %a[0, 0] : !temp
      %u_right = stencil.access %a[0, 1] : !temp
      %u_down = stencil.access %a[1, 0] : !temp
      %v_up = stencil.access %b[-1, 0] : !temp
      %v_left = stencil.access %b[0, -1] : !temp
      %v_here = stencil.access %b[0, 0] : !temp
      %v_right = stencil.access %b[0, 1] : !temp
      %v_down = stencil.access %b[1, 0] : !temp

      %four = arith.constant -4.0 : f32
      %us0 = arith.addf %u_up, %u_left : f32
      %us1 = arith.addf %us0, %u_right : f32
      %us2 = arith.addf %us1, %u_down : f32
      %u4 = arith.mulf %four, %u_here : f32
      %lap_u = arith.addf %us2, %u4 : f32
      %vs0 = arith.addf %v_up, %v_left : f32
      %vs1 = arith.addf %vs0, %v_right : f32
      %vs2 = arith.addf %vs1, %v_down : f32
      %v4 = arith.mulf %four, %v_here : f32
      %lap_v = arith.addf %vs2, %v4 : f32

      // The reaction u + 2 v -> 3 v.
      %vv = arith.mulf %v_here, %v_here : f32
      %reaction = arith.mulf %u_here, %vv : f32

      %one_c = arith.constant 1.0 : f32
      %lack = arith.subf %one_c, %u_here : f32
      %fed = arith.mulf %f, %lack : f32
      %spread_u = arith.mulf %rate_u, %lap_u : f32
      %u_a = arith.addf %u_here, %spread_u : f32
      %u_b = arith.subf %u_a, %reaction : f32
      %u_new = arith.addf %u_b, %fed : f32

      %loss_rate = arith.addf %f, %k : f32
      %lost = arith.mulf %loss_rate, %v_here : f32
      %spread_v = arith.mulf %rate_v, %lap_v : f32
      %v_a = arith.addf %v_here, %spread_v : f32
      %v_b = arith.addf %v_a, %reaction : f32
      %v_new = arith.subf %v_b, %lost : f32
      stencil.return %u_new, %v_new : f32, f32
    }
    stencil.store %un to %u1(<[0, 0], [192, 192]>) : !temp to !field
    stencil.store %vn to %v1(<[0, 0], [192, 192]>) : !temp to !field
    scf.yield %u1, %v1, %u0, %v0 : !field, !field, !field, !field
  }
  func.return
}
