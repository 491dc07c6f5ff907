// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file --verify-diagnostics | filecheck %s

// Numbers in place of cells: a lane takes the greatest of its own cells, the lanes of a warp meet in halves, and
// the first lane stores one number for each plane. Cells outside the bounds count as -inf.

// CHECK-LABEL: "gpu.module"() <{sym_name = "plate"}>
// CHECK:       %[[least:.*]] = arith.constant 0xff800000 : f32
// CHECK:       scf.for
// CHECK:         %[[cell:.*]] = simt.load %src
// CHECK:         %[[max:.*]] = arith.maximumf %[[least]], %[[cell]] : f32
// CHECK:         %[[own:.*]] = arith.select %{{.*}}, %[[max]], %[[least]] : f32
// CHECK:         %[[far:.*]] = simt.shuffle %[[own]] delta 16 : f32
// CHECK-NEXT:    arith.maximumf %[[own]], %[[far]] : f32
// CHECK-NEXT:    simt.shuffle %{{.*}} delta 8 : f32
// CHECK:         simt.shuffle %{{.*}} delta 1 : f32
// CHECK-NEXT:    %[[met:.*]] = arith.maximumf
// CHECK-NEXT:    simt.store %[[met]] to %dst[%{{.*}} + 0] mask
tile.kernel @plate(%src: !stencil.field<[0,64]x[0,64]xf32>, %dst: !stencil.field<[0,64]x[0,64]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> variants [#tile.variant<axes [1], planes 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %u to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,64]x[0,64]xf32>
}

// -----

// A number has the place of its warp's first cell: sixteen cells of a row share one place.

func.func private @sides(%l: f32, %r: f32) -> f32 {
  %s = arith.addf %l, %r : f32
  func.return %s : f32
}

// CHECK: tile.store in @near: warps are too near each other for numbers of their own
tile.kernel @near(%src: !stencil.field<[0,64]x[-9,73]xf32>, %dst: !stencil.field<[0,64]x[0,64]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> variants [#tile.variant<axes [1], planes 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %v = tile.apply @sides(%u[0, -9], %u[0, 9]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %v to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,64]x[0,64]xf32>
}

// -----

// Rooms for numbers begin at most as far outside of the bounds as these are wide.

func.func private @sides(%l: f32, %r: f32) -> f32 {
  %s = arith.addf %l, %r : f32
  func.return %s : f32
}

// CHECK: tile.store in @outside: tiles begin too far outside of the bounds for numbers
tile.kernel @outside(%src: !stencil.field<[0,64]x[-7,11]xf32>, %dst: !stencil.field<[0,64]x[0,4]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 4]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> variants [#tile.variant<axes [1], planes 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %v = tile.apply @sides(%u[0, -7], %u[0, 7]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %v to %dst number maximum : !tile.queue<f32, lag 0>, !stencil.field<[0,64]x[0,4]xf32>
}
