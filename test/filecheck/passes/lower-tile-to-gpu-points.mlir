// RUN: xdsl-opt %s -p 'device-tiling{tile=warp cells=4 pack=1},multi-queue-buffering{ahead=0},register-streaming,carry-halos,peel-boundaries{planes=64},lower-tile-to-gpu' | filecheck %s

// Points have a separate loop of one step a turn; the loops around have no code of points.

// CHECK-LABEL: sym_name = "plate_d2"
// Chunks end where the list moves the cuts.
// CHECK:       simt.load %l[%{{.*}} + 1217] : i32
// CHECK:       simt.load %l[%{{.*}} + 1217] : i32
// Lanes read the next plane with points of a stack each, and the end of its run; the tile has runs if the first is in the chunk.
// CHECK:       simt.load %l[%[[place:.*]] + 405] : i32
// CHECK-NEXT:  simt.load %l[%[[place]] + 811] : i32
// CHECK:       simt.pick
// CHECK-NEXT:  arith.minsi
// CHECK:       simt.load %l[%{{.*}} + 404] : i32
// A turn takes a run, with the runs near its end: its first plane, its end, and the first plane of the next.
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK:           simt.load %l[%[[row:.*]] + 405] : i32
// CHECK-NEXT:      simt.load %l[%[[row]] + 811] : i32
// CHECK:           scf.for
// CHECK:             simt.load %l[%[[end:.*]] + 405] : i32
// CHECK-NEXT:        simt.load %l[%[[end]] + 811] : i32
// Of a run with up to 16 entries each lane reads the plane of an entry, and the value of an entry at one of two levels.
// CHECK:         scf.if %{{.*}} -> (i32, i32) {
// CHECK:           %[[from:.*]] = simt.load %l[%{{.*}} + 0] : i32
// CHECK-NEXT:      %[[to:.*]] = simt.load %l[%{{.*}} + 0] : i32
// CHECK-NEXT:      simt.uniform %[[from]]
// CHECK-NEXT:      simt.uniform %[[to]]
// CHECK:         %[[few:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[planes:.*]], %[[keys:.*]], %[[values:.*]] = scf.if %[[few]] -> (i32, i32, f32) {
// CHECK:           simt.load %l[%{{.*}} + 2029] : i32
// CHECK:           simt.load %w[%{{.*}} + 0] : f32
// CHECK:           simt.load %f[%{{.*}} + 0] : f32
// CHECK:         scf.for %{{.*}} step %[[one:.*]] iter_args
// Values are gathered ahead of both levels: those in lanes without a read, for the level whose plane the entry has.
// CHECK:           scf.if %[[few]]
// CHECK-NOT:         simt.load
// CHECK:             scf.for %[[number:.*]] = %{{.*}} to %{{.*}} step %[[one]]
// CHECK:               simt.pick %[[planes]] lane %[[number]] : i32
// CHECK:               scf.if
// CHECK-NEXT:            simt.pick %[[keys]] lane %[[place:.*]] : i32
// CHECK-NEXT:            simt.pick %[[values]] lane %[[place]] : f32
// Of longer lists a lane reads where the entries of its level are; the loop takes 32 entries at a time, an entry in each lane.
// CHECK:             %[[begins:.*]] = simt.load %l[%{{.*}} + 0] : i32
// CHECK:             %[[ends:.*]] = simt.load %l[%{{.*}} + 0] : i32
// CHECK:             scf.for %[[level:.*]] = %{{.*}} to
// CHECK-NEXT:          %[[first:.*]] = simt.pick %[[begins]] lane %[[level]] : i32
// CHECK-NEXT:          %[[found:.*]] = simt.uniform %[[first]]
// CHECK-NEXT:          %[[last:.*]] = simt.pick %[[ends]] lane %[[level]] : i32
// CHECK-NEXT:          %[[end:.*]] = simt.uniform %[[last]]
// CHECK:               scf.if
// CHECK:                 scf.for %{{.*}} = %[[found]] to %[[end]] step
// CHECK:               arith.mulf
// CHECK:               scf.for %[[entry:.*]] = %{{.*}} step %[[one]] iter_args
// CHECK-NEXT:            simt.pick %{{.*}} lane %[[entry]] : i32
// CHECK:                 simt.all
// More values than addends: a copy of the step with code beside each level.
// CHECK:           arith.cmpi sgt
// CHECK-NEXT:      scf.if
// CHECK:             arith.cmpi uge
// CHECK-NEXT:        scf.if
// CHECK:               %[[low:.*]] = simt.uniform
// CHECK:               %[[high:.*]] = simt.uniform
// CHECK-NEXT:          scf.for %[[base:.*]] = %[[low]] to %[[high]] step
// The values are added one after the other.
// CHECK:                 %[[product:.*]] = arith.mulf
// CHECK:                 %[[key:.*]] = arith.select
// CHECK:                 scf.for %[[lane:.*]] = %{{.*}} step %[[one]] iter_args
// CHECK-NEXT:              %[[named:.*]] = simt.pick %[[key]] lane %[[lane]] : i32
// CHECK-NEXT:              arith.subi %[[named]]
// CHECK-NEXT:              %[[addend:.*]] = simt.pick %[[product]] lane %[[lane]] : f32
// CHECK-NEXT:              arith.cmpi eq
// CHECK-NEXT:              arith.addf %{{.*}}, %[[addend]] : f32
// CHECK-NEXT:              arith.select
// The second level.
// CHECK:               simt.pick %{{.*}} : i32
// A lane asks for the cell of its entry, of one level after the other, and notes it: many entries four batches at a time.
// CHECK:             scf.for
// CHECK:               scf.if
// CHECK:               scf.for
// CHECK-COUNT-4:         simt.store %{{.*}} to %o[%{{.*}} + 0] mask
// CHECK:               scf.for
// CHECK-COUNT-4:         simt.pick %{{.*}} lane %[[owner:.*]] : f32
// CHECK:                 simt.store %{{.*}} to %o[%{{.*}} + 0] mask
// CHECK-NOT:         simt.store %{{.*}} to %o
// CHECK:             scf.yield
// The copy for values among addends: no branch at the levels, and one loop that notes cells.
// CHECK-NOT:         scf.if
// CHECK-NOT:         simt.pick
// CHECK:             arith.andi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:        %[[added:.*]] = arith.addf %[[cell:.*]], %{{.*}} : f32
// CHECK-NEXT:        arith.cmpi ne
// CHECK-NEXT:        arith.select %{{.*}}, %[[added]], %[[cell]]
// CHECK:             scf.for
// CHECK:               scf.if
// CHECK:               scf.for
// CHECK-COUNT-4:         simt.store %{{.*}} to %o[%{{.*}} + 0] mask
// CHECK:               scf.for
// CHECK-COUNT-4:         simt.pick %{{.*}} lane %[[holder:.*]] : f32
// CHECK:                 simt.store %{{.*}} to %o[%{{.*}} + 0] mask
// CHECK-NOT:       simt.pick
// CHECK-NOT:       simt.mark step 1
// CHECK:           scf.yield %{{.*}} : f32, f32
// Guards along the stream, and the steady steps up to the next run.
// CHECK:           simt.load %l[%{{.*}} + 405] : i32
// CHECK:           simt.load %l[%{{.*}} + 811] : i32
// CHECK:           simt.load %l[%{{.*}} + 811] : i32
// CHECK:         scf.for
// CHECK-NOT:       simt.pick
// CHECK:           simt.mark step 1
// CHECK-NOT:       simt.pick
// CHECK:         scf.for
// CHECK-NOT:       simt.pick
// CHECK:           simt.mark step 1
// CHECK-NOT:       simt.pick
// CHECK-LABEL: sym_name = "plate_step"

func.func private @three(%a: f32, %b: f32, %c: f32) -> f32 {
  %s = arith.addf %a, %b : f32
  %t = arith.addf %s, %c : f32
  func.return %t : f32
}

func.func @plate(%n: index, %rows: memref<?xi64>, %A: !stencil.field<[0,202]x[0,66]xf32>, %B: !stencil.field<[0,202]x[0,66]xf32>,
    %l: !stencil.field<[0,2057]xi32>, %w: !stencil.field<[0,8]xf32>, %f: !stencil.field<[0,128]xf32>, %o: !stencil.field<[0,128]xf32>) {
  temporal.loop %n (%a = %A, %b = %B) rotate [1, 0] depths [2, 1] {
    temporal.update %b = @three(%a[-1, 0], %a[0, 1], %a[1, 0]) in <[1, 1], [201, 65]> points(%rows, %l, %w, %f, %l, %w, %o)
      uses [#temporal.points<inject 0 columns 2 of <[0, 0], [202, 66]>>, #temporal.points<sample 0 columns 8 of <[0, 0], [202, 66]>>]
  } : !stencil.field<[0,202]x[0,66]xf32>, !stencil.field<[0,202]x[0,66]xf32>
  func.return
}
