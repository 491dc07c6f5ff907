// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file | filecheck %s

// A chunk's first steps leave out the levels whose first plane is not due yet.

!field = !stencil.field<[-2,130]x[-2,1026]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// The first level is due after two steps, and the second one after four. Chunks that begin or end outside the bounds run
// their head and tail from the first step on; so does the copy for the rim.
// CHECK-LABEL: sym_name = "plane"
// CHECK:         [[none:%[0-9]+]] = arith.cmpi eq, [[head:%[0-9]+]], %{{.*}} : i32
// CHECK-NEXT:    [[long:%[0-9]+]] = arith.cmpi sge, [[tail:%[0-9]+]], %{{.*}} : i32
// CHECK-NEXT:    [[inside:%[0-9]+]] = arith.andi [[none]], [[long]] : i1
// CHECK-NEXT:    [[two:%[0-9]+]] = arith.select [[inside]], %{{.*}}, %{{.*}} : i32
// CHECK:         scf.for %{{.*}} = %{{.*}} to [[two]] step
// CHECK-NOT:       {{arith.addf|mask|simt.store}}
// CHECK:           simt.load %src
// CHECK-NOT:       {{arith.addf|mask|simt.store}}
// CHECK:           scf.yield
// CHECK:         [[four:%[0-9]+]] = arith.select [[inside]], %{{.*}}, %{{.*}} : i32
// CHECK:         scf.for %{{.*}} = [[two]] to [[four]] step
// CHECK-NOT:       {{mask|simt.store}}
// CHECK:           simt.load %src
// CHECK:           simt.mark step 0 stage 2 row 0
// CHECK-COUNT-2:   arith.addf
// CHECK-NOT:       {{arith.addf|mask|simt.store}}
// CHECK:           scf.yield
// CHECK:         scf.for %{{.*}} = [[four]] to [[head]] step
// CHECK:           simt.override
// CHECK:           simt.store
// CHECK:         [[begin:%[0-9]+]] = arith.maxsi [[head]], [[four]] : i32
// CHECK:         scf.for %{{.*}} = [[begin]] to [[tail]] step
// CHECK-NOT:       simt.override
// CHECK:           simt.store
// CHECK:         scf.for %{{.*}} = [[tail]] to
// CHECK:       } else {
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK-NOT:     scf.for
// CHECK:         "gpu.return"
tile.kernel @plane(%src: !field, %dst: !field, %a: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>, #tile.role<halo 1>]
    steps 2 stream 0 bounds <[0, 0], [128, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] occupancy 2 {
  %u0 = tile.load %src halo %a ahead 0 home #tile.registers<depth 2, period 1> : !tile.queue<f64, lag 0>
  %h1 = tile.load halo %b home #tile.memory : !tile.queue<f64, lag 1>
  %u1 = tile.apply @cell(%u0[-1, 0], %u0[1, 1]) else %h1 home #tile.registers<depth 2, period 1> : !tile.queue<f64, lag 1>
  %u2 = tile.apply @cell(%u1[-1, 0], %u1[1, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 2>
  tile.store %u2 to %dst : !tile.queue<f64, lag 2>, !field
}

// -----

// Single steps wait for memory, and leave nothing out.

!field = !stencil.field<[-2,130]x[-2,1026]xf64>

func.func private @cell(%l: f64, %r: f64) -> f64 {
  %s = arith.addf %l, %r : f64
  func.return %s : f64
}

// CHECK-LABEL: sym_name = "single"
// CHECK-COUNT-6: scf.for
// CHECK-NOT:     scf.for
// CHECK:         "gpu.return"
tile.kernel @single(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>]
    steps 1 stream 0 bounds <[0, 0], [128, 1024]> layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1], planes 64>] occupancy 2 {
  %u = tile.load %src halo %a ahead 0 home #tile.registers<depth 2, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}
