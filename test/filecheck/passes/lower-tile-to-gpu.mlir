// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s --check-prefix=GUARDS

// A placed kernel becomes the code of one thread, in two copies: the interior's has no test for the
// in-plane bounds, and neither has the steady part of its loop one for the bounds along the stream.

!field = !stencil.field<[-2,130]x[-2,1026]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// Fields are flat buffers in global memory. A tile is a warp, and four of them share a block.
// CHECK:       "gpu.module"() <{sym_name = "plane"}> ({
// CHECK-NEXT:    "gpu.func"() <{function_type = (memref<135696xf64, 1 : i64>, memref<135696xf64, 1 : i64>, memref<135696xf64, 1 : i64>) -> (), kernel}> ({
// CHECK-COUNT-1: "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
// CHECK:         simt.uniform

// Planes age by renaming: what an unrolled turn yields are the planes that it loaded, the newest first.
// Cells of two planes are carried; the neighbour's cell of the newest one comes from the next lane.
// CHECK:         simt.unset
// CHECK:         scf.for
// CHECK:         scf.for %[[i:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[b0:.*]] = %{{.*}}, %[[b1:.*]] = %{{.*}}, %[[a0:.*]] = %{{.*}}, %[[a1:.*]] = %{{.*}}) -> (f64, f64, f64, f64)
// CHECK-NEXT:      simt.mark step 0 stage 0 row 0
// CHECK:           %[[c0:.*]], %[[c1:.*]] = simt.load %src[%[[at:.*]] + 0] : f64, f64
// CHECK-NEXT:      simt.mark step 0 stage 1 row 0
// CHECK-NEXT:      %[[x0:.*]] = arith.addf %[[a0]], %[[c1]] : f64
// CHECK-NEXT:      %[[next:.*]] = simt.shuffle %[[c0]] delta 1 : f64
// CHECK-NEXT:      %[[x1:.*]] = arith.addf %[[a1]], %[[next]] : f64
// CHECK-NEXT:      simt.mark step 0 stage 2 row 0
// The complete plane lies one row back, at the store's lag.
// CHECK:           simt.store %[[x0]], %[[x1]] to %dst[%[[at]] + -1028] mask
// CHECK-NEXT:      simt.mark step 1 stage 0 row 0
// CHECK-NEXT:      %[[d0:.*]], %[[d1:.*]] = simt.load %src[%[[at]] + 1028] : f64, f64
// CHECK-NEXT:      simt.mark step 1 stage 1 row 0
// CHECK-NEXT:      arith.addf %[[b0]], %[[d1]] : f64
// CHECK:           simt.store {{.*}} to %dst[%[[at]] + 0] mask
// CHECK-NEXT:      scf.yield %[[d0]], %[[d1]], %[[c0]], %[[c1]] : f64, f64, f64, f64
// CHECK:         "gpu.return"
// CHECK-NEXT:  gpu.known_block_size = array<i32: 128, 1, 1>
// CHECK-NEXT:  tile.launch = #tile.launch<steps 1, roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>], grid 9, block 128, shared_bytes 0, occupancy 2>
// CHECK-NOT:   tile.kernel

// The interior: along the stream the first and last turns load under a mask, and take what lies outside
// from the program's buffer, by a load over the register and not in a branch. The turns between do
// neither. Nothing is overridden along the row.
// GUARDS-LABEL: sym_name = "plane"
// GUARDS-NOT:  {{simt.override|simt.prefetch}}
// GUARDS:      simt.unset
// GUARDS-NOT:  {{simt.override|simt.prefetch}}
// GUARDS:      scf.for
// GUARDS-NOT:    {{scf.if|simt.prefetch}}
// GUARDS:        %[[p0:.*]], %[[p1:.*]] = simt.load %src[%[[at:.*]] + 0] mask
// GUARDS-NOT:    {{scf.if|simt.prefetch}}
// GUARDS:        %[[q0:.*]], %[[q1:.*]] = simt.override %[[p0]], %[[p1]] from %a[%[[at]] + 0] mask
// GUARDS-NEXT:   simt.mark step 0 stage 1 row 0
// GUARDS-NEXT:   arith.addf %{{.*}}, %[[q1]] : f64
// GUARDS-NEXT:   %[[next:.*]] = simt.shuffle %[[q0]] delta 1 : f64
// GUARDS-NEXT:   arith.addf %{{.*}}, %[[next]] : f64
// GUARDS-NEXT:   simt.mark step 0 stage 2 row 0
// GUARDS-NOT:    {{scf.if|simt.override|simt.prefetch}}
// GUARDS:        simt.store
// GUARDS-NEXT:   simt.mark step 1 stage 0 row 0
// GUARDS:        %[[r0:.*]], %[[r1:.*]] = simt.override %{{.*}}, %{{.*}} from %a[%[[at]] + 1028] mask
// GUARDS-NOT:    {{scf.if|simt.override|simt.prefetch}}
// GUARDS:        scf.yield %[[r0]], %[[r1]], %[[q0]], %[[q1]] :
// GUARDS:      scf.for
// GUARDS-NOT:    {{scf.if|simt.override|simt.load %a|simt.load .* mask|simt.prefetch}}
// GUARDS:        scf.yield
// GUARDS:      scf.for
// GUARDS-COUNT-2: simt.override %{{.*}}, %{{.*}} from %a
// GUARDS-NOT:    {{scf.if|simt.override|simt.prefetch}}
// GUARDS:        scf.yield

// The guarded copy: its steady turns, too, look at the end of the row. A lane whose neighbour's cell is
// outside takes it from the program's buffer. At the end of the step, when the plane grows old, a lane's
// own cell that is outside is replaced for good, so that later steps read it as it is: the first of its
// cells only, since the bounds fall on no other. What was not fetched ahead is not asked for early.
// GUARDS:      } else {
// GUARDS-NOT:  simt.prefetch
// GUARDS:      simt.unset
// GUARDS:      scf.for
// GUARDS-NOT:    simt.prefetch
// GUARDS:        scf.yield
// GUARDS:      scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[a0:.*]] = %{{.*}}, %[[a1:.*]] = %{{.*}}) -> (f64, f64, f64, f64)
// GUARDS:        %[[c0:.*]], %[[c1:.*]] = simt.load %src[%[[at:.*]] + 0] mask
// GUARDS-NEXT:   simt.mark step 0 stage 1 row 0
// GUARDS-NEXT:   arith.addf %[[a0]], %[[c1]] : f64
// GUARDS-NEXT:   %[[next:.*]] = simt.shuffle %[[c0]] delta 1 : f64
// GUARDS-NEXT:   %[[taken:.*]] = simt.override %[[next]] from %a[%[[at]] + 2] mask
// GUARDS-NEXT:   arith.addf %[[a1]], %[[taken]] : f64
// GUARDS:        simt.store
// GUARDS-NEXT:   %[[old:.*]] = simt.override %[[c0]] from %a[%[[at]] + 0] mask
// GUARDS-NEXT:   simt.mark step 1 stage 0 row 0
// GUARDS-NEXT:   %[[d0:.*]], %[[d1:.*]] = simt.load %src[%[[at]] + 1028] mask
// GUARDS-NOT:    simt.override %[[d1]]
// GUARDS:        simt.store
// GUARDS-NEXT:   %[[new:.*]] = simt.override %[[d0]] from %a[%[[at]] + 1028] mask
// GUARDS-NEXT:   scf.yield %[[new]], %[[d1]], %[[old]], %[[c1]] :
// GUARDS:      scf.for
// GUARDS-NOT:  simt.prefetch
// GUARDS:      "gpu.return"
tile.kernel @plane(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>]
    steps 1 stream 0 bounds <[0, 0], [128, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] occupancy 2 {
  %u = tile.load %src halo %a ahead 0 home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[1, 1]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// What is fetched ahead has its halo asked for as early: in the step that starts the copies of a plane,
// at its end, for the cells that the bounds can fall on. Each level's halo is asked for in time for that
// level, two planes before it is taken.

!field = !stencil.field<[-2,130]x[-2,1026]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// The interior asks for nothing, and takes nothing in its steady turns.
// CHECK-LABEL: sym_name = "early"
// CHECK-NOT:     simt.prefetch
// CHECK:         scf.for
// CHECK-NOT:       simt.prefetch
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK-NOT:       {{simt.prefetch|simt.override}}
// CHECK:           scf.yield
// CHECK-NOT:     simt.prefetch
// CHECK:       } else {
// In the head planes may lie outside the buffer, and no cell of those is asked for.
// CHECK:         scf.for
// CHECK:           simt.store %{{.*}} to %dst
// CHECK:           %[[mask:.*]] = arith.andi %[[beside:.*]], %{{.*}} : i1
// CHECK-NEXT:      simt.prefetch %a[%[[at:.*]] + 2057] mask %[[mask]] : f64
// CHECK:           %[[mask1:.*]] = arith.andi %[[beside]], %{{.*}} : i1
// CHECK-NEXT:      simt.prefetch %b[%[[at]] + 1029] mask %[[mask1]] : f64
// CHECK-NOT:       simt.prefetch
// CHECK:         scf.for
// CHECK:           %[[u0:.*]], %[[u1:.*]] = simt.load %{{.*}}[%{{.*}} + 0] : f64, f64
// CHECK:           simt.copy_async %{{.*}}[%{{.*}} + 0], %src[%[[at:.*]] + 2056] bytes 16
// CHECK-NOT:       {{simt.prefetch|simt.override}}
// CHECK:           %[[v0:.*]] = arith.addf %{{.*}}, %[[u0]] : f64
// CHECK:           %[[v1:.*]] = arith.addf %{{.*}}, %[[u1]] : f64
// CHECK-NOT:       {{simt.prefetch|simt.override}}
// CHECK:           simt.store %{{.*}} to %dst[%[[at]] + -2056] mask
// CHECK-NEXT:      simt.prefetch %a[%[[at]] + 2057] mask %[[beside]] : f64
// CHECK-NEXT:      simt.prefetch %b[%[[at]] + 1029] mask %[[beside]] : f64
// CHECK-NEXT:      %[[u:.*]] = simt.override %[[u1]] from %a[%[[at]] + 1] mask %[[beside]]
// CHECK-NEXT:      %[[v:.*]] = simt.override %[[v1]] from %b[%[[at]] + -1027] mask %[[beside]]
// CHECK-NEXT:      scf.yield %[[u0]], %[[u]], %[[v0]], %[[v]] : f64, f64, f64, f64
// CHECK:         scf.for
// CHECK:           simt.prefetch %a
// CHECK:           simt.prefetch %b
// CHECK-NOT:       simt.prefetch
// CHECK:         "gpu.return"
tile.kernel @early(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 2 stream 0 bounds <[0, 0], [128, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] {
  %u0 = tile.load %src halo %a ahead 2 home #tile.registers<depth 1, period 1> : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b home #tile.memory : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[0, -1], %u0[1, 0]) else %h1 home #tile.registers<depth 1, period 1> : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[0, -1], %u1[1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

// Copies that neighbours read: they land in a plane of 4 rows of 64 cells with a row and a vector around
// it, in a ring of 4 slots.

!field = !stencil.field<[-1,65]x[-1,65]x[-2,258]xf64>

func.func private @cell(%0: f64, %1: f64, %2: f64) -> f64 {
  %3 = arith.addf %0, %1 : f64
  %4 = arith.addf %3, %2 : f64
  func.return %4 : f64
}

// CHECK-LABEL: sym_name = "copies"
// CHECK:         %[[ring:.*]] = simt.shared at 0 : memref<1632xf64, 3 : i64>
// CHECK-NOT:     simt.shared
// Of the 76 vectors around the tile, 68 in two rows and 8 beside the others, each of 76 threads copies
// one. Who has none to copy must not fill another's place with zeros: so the branch, and not a mask.
// CHECK:         %[[padding:.*]] = arith.cmpi ult, %[[thread:.*]], %{{.*}} : i32
// Nothing is published for the exchange: neither copy of the loop writes to shared memory.
// CHECK-NOT:     simt.store {{.*}} to %[[ring]]

// A plane that may be outside the bounds along the stream is copied from the program's buffer then.
// CHECK:         scf.if %{{.*}} {
// CHECK:           simt.copy_async %[[ring]][%{{.*}} + 0], %src[%{{.*}} + 0] bytes 16 mask
// CHECK-NEXT:      scf.if %[[padding]] {
// CHECK:             simt.copy_async %[[ring]][%{{.*}} + 0], %src[%{{.*}} + 0] bytes 16 mask
// CHECK-NEXT:      }
// CHECK-NEXT:    } else {
// CHECK:           simt.copy_async %[[ring]][%{{.*}} + 0], %a[%{{.*}} + 0] bytes 16 mask
// CHECK-NEXT:      scf.if %[[padding]] {
// CHECK:             simt.copy_async %[[ring]][%{{.*}} + 0], %a[%{{.*}} + 0] bytes 16 mask
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    "nvvm.cp.async.commit.group"
// CHECK:         "nvvm.cp.async.commit.group"
// CHECK:         scf.for
// The copies bring the halo along the stream, and nothing is taken from there again.
// CHECK-NOT:       {{simt.override|simt.store .* to %[0-9]}}
// CHECK:           scf.yield

// The steady turns: one barrier, for the copies of the step before and the slot that becomes free; the
// thread's own cells of the plane that has arrived; the copies of a later one, of its own cells and of
// its share of the pads; the neighbours' cells as whole vectors, from the row before and from the cells
// behind. A cell of the row's own thread is its register.
// CHECK:         scf.for %{{.*}} iter_args(%[[o0:.*]] = %{{.*}}, %[[o1:.*]] = %{{.*}}) -> (f64, f64)
// CHECK-NEXT:      simt.mark step 0 stage -1 row 0
// CHECK-NEXT:      "gpu.barrier"() : () -> ()
// CHECK-NEXT:      simt.mark step 0 stage 0 row 0
// CHECK-NEXT:      "nvvm.cp.async.wait.group"() <{n = 1 : i32}> : () -> ()
// CHECK:           %[[n0:.*]], %[[n1:.*]] = simt.load %[[ring]][%{{.*}} + 0] : f64, f64
// CHECK:           simt.copy_async %[[ring]][%{{.*}} + 0], %src[%{{.*}} + 34320] bytes 16{{$}}
// CHECK-NEXT:      scf.if %[[padding]] {
// CHECK:             simt.copy_async %[[ring]][%{{.*}} + 0], %src[%{{.*}} + 34320] bytes 16{{$}}
// CHECK-NEXT:      }
// CHECK-NEXT:      "nvvm.cp.async.commit.group"
// CHECK-NOT:       {{"gpu.barrier"|simt.store|simt.copy_async|simt.shuffle|simt.override}}
// CHECK:           simt.mark step 0 stage 2 row 0
// CHECK:           %[[r0:.*]], %[[r1:.*]] = simt.load %[[ring]][%{{.*}} + -68] : f64, f64
// CHECK:           %[[c0:.*]], %[[c1:.*]] = simt.load %[[ring]][%{{.*}} + 2] : f64, f64
// CHECK-NEXT:      %[[s0:.*]] = arith.addf %[[r0]], %[[o0]] : f64
// CHECK-NEXT:      %[[t0:.*]] = arith.addf %[[s0]], %[[c0]] : f64
// CHECK-NEXT:      %[[s1:.*]] = arith.addf %[[r1]], %[[o1]] : f64
// CHECK-NEXT:      %[[t1:.*]] = arith.addf %[[s1]], %[[c1]] : f64
// CHECK-NOT:       {{"gpu.barrier"|simt.load}}
// CHECK:           simt.store %[[t0]], %[[t1]] to %dst
// CHECK-NEXT:      scf.yield %[[n0]], %[[n1]] : f64, f64

// The guarded copy: what is not in the field is not copied, neighbours' cells outside the bounds are
// taken from the program's buffer; still nothing is published, and nothing asked for early, as no
// register is legalised.
// CHECK:       } else {
// CHECK-NOT:     {{simt.prefetch|simt.store .* to %[0-9]}}
// CHECK:         scf.for
// CHECK-NOT:     {{simt.prefetch|simt.store .* to %[0-9]}}
// CHECK:         scf.for
// CHECK:           simt.copy_async %[[ring]][%{{.*}} + 0], %src[%{{.*}} + 34320] bytes 16 mask
// CHECK-NEXT:      scf.if %[[padding]] {
// CHECK:             simt.copy_async %[[ring]][%{{.*}} + 0], %src[%{{.*}} + 34320] bytes 16 mask
// CHECK:           %[[r0:.*]], %[[r1:.*]] = simt.load %[[ring]][%{{.*}} + -68] : f64, f64
// CHECK-NEXT:      simt.override %[[r0]] from %a[%{{.*}}] mask
// CHECK-NOT:       {{simt.prefetch|simt.store .* to %[0-9]}}
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK-NOT:       {{simt.prefetch|simt.store .* to %[0-9]}}
// CHECK:         "gpu.return"
// By the schedule, a launch asks for more than the 13056 bytes of a block: no second block fits beside.
// CHECK:         grid 256, block 128, shared_bytes 115840, occupancy 1
tile.kernel @copies(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 256]> layout #tile.layout<block, [1 cells x 4 warps, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 16>, #tile.variant<axes [1, 2], planes 16>] schedule #tile.schedule<blocks_alone> {
  %u = tile.load %src halo %a ahead 2 home #tile.registers<depth 1, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what copies delay 1 home #tile.exchange_buffer<slots 4, computed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 2]>
  %v = tile.apply @cell(%e[0, -1, 0], %u[0, 0, 0], %e[0, 0, 2]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// Cells of four bytes are read four at a time: the fifth cell comes with the next three. If all data lie
// inside their halos, the kernel has one copy with one loop, in one part: guards only keep loads inside
// their fields.

!field = !stencil.field<[-1,65]x[-1,65]x[-4,260]xf32>

func.func private @cell(%0: f32, %1: f32) -> f32 {
  %2 = arith.addf %0, %1 : f32
  func.return %2 : f32
}

// CHECK-LABEL: sym_name = "fours"
// CHECK:         %[[ring:.*]] = simt.shared at 0
// CHECK:         scf.for %{{.*}} iter_args(%[[o0:.*]] = %{{.*}}, %[[o1:.*]] = %{{.*}}, %[[o2:.*]] = %{{.*}}, %[[o3:.*]] = %{{.*}}) -> (f32, f32, f32, f32)
// CHECK:           simt.load %[[ring]][%{{.*}} + 0] : f32, f32, f32, f32
// CHECK-NOT:       {{simt.load|simt.shuffle|simt.override|simt.store}}
// CHECK:           simt.mark step 0 stage 2 row 0
// CHECK-NEXT:      arith.addf %[[o0]], %[[o1]] : f32
// CHECK-NEXT:      arith.addf %[[o1]], %[[o2]] : f32
// CHECK-NEXT:      arith.addf %[[o2]], %[[o3]] : f32
// CHECK-NOT:       {{simt.shuffle|simt.override|simt.store}}
// CHECK:           %[[c0:.*]], %{{.*}}, %{{.*}}, %{{.*}} = simt.load %[[ring]][%{{.*}} + 4] : f32, f32, f32, f32
// CHECK-NEXT:      arith.addf %[[o3]], %[[c0]] : f32
// CHECK-NOT:       {{scf.for|simt.load|simt.store .* to %[0-9]}}
// CHECK:         "gpu.return"
tile.kernel @fours(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>]
    steps 1 stream 0 bounds <[0, 0, 0], [64, 64, 256]> layout #tile.layout<block, [1 cells x 4 warps, 4 cells x 32 lanes]>
    variants [#tile.variant<axes [1, 2], planes 16>] {
  %u = tile.load %src ahead 2 home #tile.registers<depth 1, period 1> : !tile.queue<f32, lag 0>
  %e = tile.exchange %u what copies delay 1 home #tile.exchange_buffer<slots 4, computed, every 1, space shared, sync barrier> : !tile.queue<f32, lag 1, edges [0, 1]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 1>
  tile.store %v to %dst : !tile.queue<f32, lag 1>, !field
}

// -----

// Outside the bounds the second level's cells are those of an older level, which is still there: they
// wait in place of the partial sum, before the newest plane has arrived, and are taken back when the
// level is made. Neighbours of this step compute with the sum; later steps read what was taken. The
// first two levels read memory.

!field = !stencil.field<[-2,130]x[-2,1026]xf64>

func.func private @cell(%l: f64, %m: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %m : f64
  %t = arith.addf %s, %r : f64
  func.return %t : f64
}

// The interior selects no cell.
// CHECK-LABEL: sym_name = "carried"
// CHECK:         scf.for
// CHECK-NOT:     arith.select {{.*}} : f64
// CHECK:       } else {
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK:           %[[u0:.*]], %{{.*}} = simt.load %src
// CHECK:           arith.addf %[[oldest:.*]], %{{.*}} : f64
// CHECK-NEXT:      %[[u1:.*]] = arith.addf %{{.*}}, %[[u0]] : f64
// CHECK:           simt.mark step 0 stage 3 row 0
// CHECK-NEXT:      %[[p:.*]] = arith.addf
// CHECK-NEXT:      %[[kept:.*]] = arith.select %[[inside:.*]], %[[p]], %[[oldest]] : f64
// CHECK-NEXT:      %[[u2:.*]] = arith.addf %[[kept]], %[[u1]] : f64
// CHECK:           %[[legal:.*]] = arith.select %[[inside]], %[[u2]], %[[kept]] : f64
// CHECK-NOT:       arith.select
// CHECK:           arith.addf %{{.*}}, %[[u2]] : f64
// CHECK:           simt.store
// CHECK-NEXT:      %[[v0:.*]] = simt.override %[[u0]] from %a
// CHECK-NEXT:      %[[v1:.*]] = simt.override %[[u1]] from %b
// CHECK-NEXT:      scf.yield %[[v0]], %{{.*}}, %{{.*}}, %{{.*}}, %[[v1]], %{{.*}}, %{{.*}}, %{{.*}}, %[[legal]], %
tile.kernel @carried(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 3 stream 0 bounds <[0, 0], [128, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] occupancy 2 {
  %u0 = tile.load %src halo %a ahead 0 home #tile.registers<depth 2, period 1> : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b home #tile.memory : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[0, 1], %u0[1, 0]) else %h1 home #tile.registers<depth 2, period 1> : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[0, 1], %u1[1, 0]) else %u0 home #tile.registers<depth 2, period 1> : !tile.queue<f64, lag 2>
  %u3 = tile.apply @cell(%u2[-1, 0], %u2[0, 1], %u2[1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 3>
  tile.store %u3 to %dst : !tile.queue<f64, lag 3>, !field
}

// -----

// Scalars are arguments, coordinates are computed; a tile without a stream axis has no loop.

func.func private @cell(%u: f32, %dt: f32, %x: index) -> f32 {
  %i = arith.index_cast %x : index to i32
  %f = arith.sitofp %i : i32 to f32
  %p = arith.mulf %f, %dt : f32
  %s = arith.addf %u, %p : f32
  func.return %s : f32
}

// CHECK:       "gpu.func"() <{function_type = (memref<64xf32, 1 : i64>, memref<64xf32, 1 : i64>, f32) -> (), kernel}> ({
// CHECK-NEXT:  %src: {{.*}}, %dst: {{.*}}, %dt: f32
// CHECK-NOT:   scf.for
// CHECK:       simt.load %src
// CHECK:       arith.sitofp
// CHECK:       arith.mulf %{{.*}}, %dt : f32
// CHECK:       simt.store
// CHECK:       "gpu.return"
tile.kernel @line(%src: !stencil.field<[0,64]xf32>, %dst: !stencil.field<[0,64]xf32>, %dt: f32)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<scalar 0>] steps 1 bounds <[0], [64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %v = tile.apply @cell(%u[0]) scalars(%dt) indices [0] home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %v to %dst : !tile.queue<f32, lag 0>, !stencil.field<[0,64]xf32>
}
