// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file --verify-diagnostics | filecheck %s

// What the lowering cannot do it refuses with one sentence that names the kernel, the fact and the way
// out.

// CHECK: tile.kernel in @unplaced: it has no layout, homes or variants; run device-tiling, multi-queue-buffering and peel-boundaries first
tile.kernel @unplaced() roles [] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
}

// -----

// CHECK: tile.kernel in @device: tiles held by a device are not lowered yet; use warp, block or cluster
tile.kernel @device(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<device, [1 cells x 32 lanes x 2 blocks]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @cube: planes of 3 axes are not lowered yet; stream along one axis
tile.kernel @cube(%src: !stencil.field<[0,8]x[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0, 0], [8, 8, 8]>
    layout #tile.layout<warp, [1 cells, 1 cells, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0, 1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @lanes: lanes are spread along the last axis only; give the others warps or cells
tile.kernel @lanes(%src: !stencil.field<[0,8]x[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [8, 8, 8]>
    layout #tile.layout<warp, [1 cells x 2 lanes, 1 cells x 16 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @half: fields of f16 are not supported; use f32 or f64
tile.kernel @half(%src: !stencil.field<[0,8]x[0,8]xf16>, %dst: !stencil.field<[0,8]x[0,8]xf16>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f16, lag 0>
  tile.store %u to %dst : !tile.queue<f16, lag 0>, !stencil.field<[0,8]x[0,8]xf16>
}

// -----

tile.kernel @no_cell(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  // CHECK: tile.apply in @no_cell: its cell function @cell is not in the module
  %v = tile.apply @cell(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}
