// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file --verify-diagnostics | filecheck %s

// Numbers in place of cells: a lane carries the greatest of its own cells from step to step, the lanes of a warp meet
// in halves behind the loop, and the first lane stores one number. Cells outside the bounds do not count.

// CHECK-LABEL: "gpu.module"() <{sym_name = "plate"}>
// CHECK:       %[[least:.*]] = arith.constant 0xff800000 : f32
// CHECK:       %[[all:.*]] = scf.for {{.*}} iter_args(%[[own:.*]] = %[[least]]) -> (f32)
// CHECK:         %[[cell:.*]] = simt.load %src
// CHECK:         %[[max:.*]] = arith.maximumf %[[cell]], %[[own]] : f32
// CHECK:         %[[new:.*]] = arith.select %{{.*}}, %[[max]], %[[own]] : f32
// CHECK-NEXT:    scf.yield %[[new]] : f32
// CHECK:       %[[far:.*]] = simt.shuffle %[[all]] delta 16 : f32
// CHECK-NEXT:  arith.maximumf %[[all]], %[[far]] : f32
// CHECK-NEXT:  simt.shuffle %{{.*}} delta 8 : f32
// CHECK:       simt.shuffle %{{.*}} delta 1 : f32
// CHECK-NEXT:  %[[met:.*]] = arith.maximumf
// CHECK-NEXT:  simt.store %[[met]] to %dst[%{{.*}} + 0] mask
tile.kernel @plate(%src: !stencil.field<[0,64]x[0,64]xf32>, %dst: !stencil.field<[0,64]x[0,64]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> variants [#tile.variant<axes [1], planes 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %u to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,64]x[0,64]xf32>
}

// -----

// A warp whose chunks go on in other columns joins the number of earlier columns to its own.

// CHECK-LABEL: "gpu.module"() <{sym_name = "columns"}>
// CHECK:       scf.for %[[column:.*]] = %[[begin:.*]] to
// CHECK-NEXT:    %[[first:.*]] = arith.cmpi eq, %[[column]], %[[begin]] : i32
// CHECK:         simt.shuffle %{{.*}} delta 1 : f32
// CHECK-NEXT:    %[[met:.*]] = arith.maximumf
// CHECK-NEXT:    %[[known:.*]] = simt.override %{{.*}} from %dst[%[[place:.*]] + 0] mask %[[lane:.*]]
// CHECK-NEXT:    %[[all:.*]] = arith.maximumf %[[met]], %[[known]] : f32
// CHECK-NEXT:    %[[own:.*]] = arith.select %[[first]], %[[met]], %[[all]] : f32
// CHECK-NEXT:    simt.store %[[own]] to %dst[%[[place]] + 0] mask %[[lane]]
tile.kernel @columns(%src: !stencil.field<[0,64]x[0,320]xf32>, %dst: !stencil.field<[0,64]x[0,320]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 320]>
    layout #tile.layout<warp, [1 cells x 32 lanes], pack 4> variants [#tile.variant<axes [1], planes 90, joined 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %u to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,64]x[0,320]xf32>
}

// -----

// Threads that read memory keep nothing from plane to plane.

func.func private @same(%a: f32) -> f32 {
  func.return %a : f32
}

// CHECK: tile.store in @memory: a kernel whose threads read memory writes cells, no numbers
tile.kernel @memory(%src: !stencil.field<[0,64]x[0,64]xf32>, %dst: !stencil.field<[0,64]x[0,64]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> variants [#tile.variant<axes [1], planes 64>] {
  %u = tile.load %src at [0, 0] home #tile.memory : !tile.queue<f32, lag 0>
  %v = tile.apply @same(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %v to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,64]x[0,64]xf32>
}
