// RUN: xdsl-opt %s -p 'device-tiling{tile=warp cells=4 pack=1},multi-queue-buffering{ahead=0},register-streaming,carry-halos,peel-boundaries{planes=64},lower-tile-to-gpu' | filecheck %s

// Receivers in lines along the stream: threads keep their cells in all loops, and note them behind the loops.

// CHECK-LABEL: sym_name = "plate_d2"
// Ahead of the loops a thread finds its line, as each lane reads the place of one line.
// CHECK:       simt.load %l[%{{.*}} + 606] : i32
// CHECK:       simt.load %l[%{{.*}} + 605] : i32
// CHECK:       scf.for
// CHECK-NEXT:    simt.pick
// In each step of all loops both levels keep four cells, without a branch; a level lies 40 rows of 32 lines of four words behind the other.
// CHECK:       simt.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} to %l[%{{.*}} + -128] mask %{{.*}} {simt.may_be_unset}
// CHECK-NOT:   scf.if
// CHECK:       simt.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} to %l[%{{.*}} + 4864] mask %{{.*}} {simt.may_be_unset}
// CHECK:       simt.mark step 1
// CHECK:       simt.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} to %l[%{{.*}} + 0] mask %{{.*}} {simt.may_be_unset}
// CHECK:       simt.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} to %l[%{{.*}} + 4992] mask %{{.*}} {simt.may_be_unset}
// Behind the loops a warp with a line waits for its lanes, and notes the entries of the chunk's planes, four batches at a time.
// CHECK:       simt.all
// CHECK-NEXT:  scf.if
// CHECK:         nvvm.bar.warp.sync
// CHECK:         scf.for
// CHECK:           %[[kept:.*]] = simt.load %l[%{{.*}} + 640] mask %[[mine:.*]] : i32
// CHECK:           %[[next:.*]] = simt.load %l[%{{.*}} + 5760] mask %[[mine]] : i32
// CHECK:           arith.bitcast %[[kept]] : i32 to f32
// CHECK:           simt.store %{{.*}} to %o[%{{.*}} + 0] mask %[[mine]]
// CHECK:           arith.bitcast %[[next]] : i32 to f32
// CHECK:           simt.store %{{.*}} to %o[%{{.*}} + 0] mask %[[mine]]
// CHECK-LABEL: sym_name = "plate_step"

func.func private @three(%a: f32, %b: f32, %c: f32) -> f32 {
  %s = arith.addf %a, %b : f32
  %t = arith.addf %s, %c : f32
  func.return %t : f32
}

func.func @plate(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[0,40]x[0,66]xf32>, %B: !stencil.field<[0,40]x[0,66]xf32>,
    %l: !stencil.field<[0,82560]xi32>, %w: !stencil.field<[0,64]xf32>, %o: !stencil.field<[0,1024]xf32>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] {
    temporal.update %b = @three(%a[-1, 0], %a[0, 1], %a[1, 0]) in <[1, 1], [39, 65]> points(%rows, %l, %w, %o)
      uses [#temporal.points<sample 0 columns 64 of <[0, 0], [40, 66]>>]
  } : !stencil.field<[0,40]x[0,66]xf32>, !stencil.field<[0,40]x[0,66]xf32>
  func.return
}
