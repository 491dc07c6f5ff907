// RUN: xdsl-opt %s -p lower-tile-to-gpu --split-input-file --verify-diagnostics | filecheck %s

// The lowering refuses a kernel in a sentence with the kernel's name, the fact and the way
// out.

// CHECK: tile.kernel in @unplaced: the kernel has no layout, homes or variants; run device-tiling, multi-queue-buffering and peel-boundaries first
tile.kernel @unplaced() roles [] steps 1 stream 0 bounds <[0, 0], [8, 8]> {
}

// -----

// CHECK: tile.kernel in @line: the blocks of a tile lie along the first of several in-plane axes; give device-tiling blocks=1 along the other axes, or tile=device, or tile=block for a single axis
tile.kernel @line(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<device, [1 cells x 32 lanes x 2 blocks]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @lanes: lanes lie along the last axis only; give the other axes warps or cells
tile.kernel @lanes(%src: !stencil.field<[0,8]x[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [8, 8, 8]>
    layout #tile.layout<warp, [1 cells x 2 lanes, 1 cells x 16 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @long: a field reaches from 0 to 2200000000 along axis 0, and coordinates end at 1073741824; cut the domain into several
tile.kernel @long(%src: !stencil.field<[0,2200000000]xf64>, %dst: !stencil.field<[0,2200000000]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [2200000000]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [0], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,2200000000]xf64>
}

// -----

// CHECK: tile.kernel in @columns: the variants name 3 of 1 columns of tiles on the rim, and 0 take the rest; let a single variant take the rest
tile.kernel @columns(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], columns 2, planes 8>, #tile.variant<axes [1], columns 1, planes 4>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @nobody: the variants name 0 of 1 columns of tiles on the rim, and 0 take the rest; let a single variant take the rest
tile.kernel @nobody(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @rest: the variants name 0 of 1 columns of tiles on the rim, and 2 take the rest; let a single variant take the rest
tile.kernel @rest(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>, #tile.variant<axes [1], planes 4>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @meet: the variants join planes of columns, and only streamed tiles of one warp continue in the next column; leave out joined, or give device-tiling tile=warp
tile.kernel @meet(%src: !stencil.field<[0,8]x[0,256]xf64>, %dst: !stencil.field<[0,8]x[0,256]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 256]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]>
    variants [#tile.variant<axes [1], planes 3, joined 2>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,256]xf64>
}

// -----

// CHECK: tile.kernel in @more: the variants join 9 planes of each column, which have 8; join no more
tile.kernel @more(%src: !stencil.field<[0,8]x[0,256]xf64>, %dst: !stencil.field<[0,8]x[0,256]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 256]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 3, joined 9>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,256]xf64>
}

// -----

// CHECK: tile.kernel in @bytes: fields of i4 are not supported; use f64, f32, f16, bf16, i64, i32, i16 or i8
tile.kernel @bytes(%src: !stencil.field<[0,8]x[0,8]xi4>, %dst: !stencil.field<[0,8]x[0,8]xi4>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<i4, lag 0>
  tile.store %u to %dst : !tile.queue<i4, lag 0>, !stencil.field<[0,8]x[0,8]xi4>
}

// -----

tile.kernel @no_cell(%src: !stencil.field<[0,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  // CHECK: tile.apply in @no_cell: the cell function @cell is not in the module
  %v = tile.apply @cell(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @two_kinds: some exchanges wait at a barrier, some at an mbarrier; use one kind
tile.kernel @two_kinds(%src: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<block, [4 cells x 2 warps, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 1, edges [1, 0]>
  %f = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier> : !tile.queue<f64, lag 1, edges [1, 0]>
  %w = tile.apply @cell(%u[0, 0, 0], %f[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  %v = tile.apply @cell(%w[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @too_early: an mbarrier once a step does not order the accesses; use a barrier, or exchanges with a delay of a step and a further slot
tile.kernel @too_early(%src: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<block, [4 cells x 2 warps, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier> : !tile.queue<f64, lag 0, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @columns: the blocks of a tile lie along the first of several in-plane axes; give device-tiling blocks=1 along the other axes, or tile=device, or tile=block for a single axis
tile.kernel @columns(%src: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<cluster, [4 cells x 2 warps, 2 cells x 32 lanes x 2 blocks]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @whole_planes: the blocks of a tile exchange edges, a step late; use storage=registers and what=edges
tile.kernel @whole_planes(%src: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<cluster, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @unheard: the blocks of a tile of the device exchange by flags or grid; run register-streaming with sync=flags or sync=grid
tile.kernel @unheard(%src: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space shared, sync mbarrier> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @alone: the tile has no blocks for exchanges by flags; use barrier, mbarrier, or tile=device and blocks
tile.kernel @alone(%src: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<block, [4 cells x 2 warps, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,9]x[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @across: the warps of a tile of several blocks lie along the first axis; give the other axes cells, or keep the tile resident and exchange whole planes (stream-axis=none, what=plane)
tile.kernel @across(%src: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>, %dst: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<device, [4 cells x 2 blocks, 2 cells x 32 lanes x 2 warps]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 1]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @far: its taps reach 3 cells along the blocks and a warp has 2; give device-tiling 3 cells or more along the first axis
tile.kernel @far(%src: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>, %dst: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<device, [2 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [3, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 3, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @at_once: the blocks meet once, at the start of a step, and other barriers are needed; delay the exchanges by 1 or more
tile.kernel @at_once(%src: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>, %dst: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync grid> : !tile.queue<f64, lag 0, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @too_early: the blocks meet once, at the start of one step in 2, and other barriers are needed; delay the exchanges by 2 or more
tile.kernel @too_early(%src: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>, %dst: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 2 home #tile.exchange_buffer<slots 4, fixed, every 2, space global, sync grid> : !tile.queue<f64, lag 2, edges [1, 0]>
  %f = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync grid> : !tile.queue<f64, lag 2, edges [1, 0]>
  %v = tile.apply @cell(%e[0, -1, 0], %f[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 2>
  tile.store %v to %dst : !tile.queue<f64, lag 2>, !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @rings_by_flags: the blocks of the tile keep whole planes in shared memory, exchanged at barriers of the grid; run register-streaming, or use sync=grid
tile.kernel @rings_by_flags(%src: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>, %dst: !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [8, 8, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [1, 2], planes 1>] {
  %u = tile.load %src home #tile.shared<slots 3, fixed, reader tile> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 2, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-3,11]x[-3,11]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @edges_of_columns: blocks that lie along several axes exchange columns of whole planes; run register-streaming with what=plane
tile.kernel @edges_of_columns(%src: !stencil.field<[-1,33]x[-1,65]xf64>, %dst: !stencil.field<[-1,33]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [32, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 4 blocks, 1 cells x 32 lanes x 2 blocks]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0, 1], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 0, edges [1, 1]>
  %v = tile.apply @cell(%u[0, 0], %e[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,33]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @far_along_rows: its taps reach 33 cells along axis 1 and a block has 32; give device-tiling more cells or lanes along the axis
tile.kernel @far_along_rows(%src: !stencil.field<[-1,33]x[-33,97]xf64>, %dst: !stencil.field<[-1,33]x[-33,97]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [32, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 4 blocks, 1 cells x 32 lanes x 2 blocks]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0, 1], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space global, sync flags> : !tile.queue<f64, lag 0, edges [0, 33]>
  %v = tile.apply @cell(%u[0, 0], %e[0, 33]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,33]x[-33,97]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.apply in @still: a tap leaves the warp and reads the ring of its queue; put a tile.exchange of the queue between
tile.kernel @still(%src: !stencil.field<[-1,33]x[-1,65]xf64>, %dst: !stencil.field<[-1,33]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [32, 64]>
    layout #tile.layout<device, [4 cells x 2 warps x 2 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0, 1], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.shared<slots 1, fixed, reader tile> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0], %u[1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,33]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @still_volume: the blocks of a resident volume keep cells in registers; use storage=registers
tile.kernel @still_volume(%src: !stencil.field<[-1,9]x[-1,9]x[-1,33]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,33]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0, 0], [8, 8, 32]>
    layout #tile.layout<device, [2 cells x 5 blocks, 10 cells, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [0, 1, 2], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.shared<slots 1, fixed, reader tile> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0, 0], %u[0, 0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]x[-1,33]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @edges_of_a_volume: the edges of a volume are planes; use what=plane
tile.kernel @edges_of_a_volume(%src: !stencil.field<[-1,9]x[-1,9]x[-1,33]xf64>, %dst: !stencil.field<[-1,9]x[-1,9]x[-1,33]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0, 0], [8, 8, 32]>
    layout #tile.layout<block, [2 cells x 5 warps, 10 cells, 1 cells x 32 lanes]>
    variants [#tile.variant<axes [0, 1, 2], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1, 0, 0]>
  %v = tile.apply @cell(%u[0, 0, 0], %e[1, 0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,9]x[-1,33]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @copies_for_resident_cells: a resident tile fetches nothing ahead, and copies serve fetched planes only; use what=plane
tile.kernel @copies_for_resident_cells(%src: !stencil.field<[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [8, 64]>
    layout #tile.layout<block, [2 cells x 5 warps, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [0, 1], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what copies delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0], %e[1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.kernel in @resident_cluster: the blocks of a cluster exchange one stream step late, and a resident tile has no stream; use tile=device
tile.kernel @resident_cluster(%src: !stencil.field<[-1,9]x[-1,65]xf64>, %dst: !stencil.field<[-1,9]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0, 0], [8, 64]>
    layout #tile.layout<cluster, [2 cells x 2 warps x 3 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [0, 1], planes 1>] {
  %u = tile.load %src ahead 0 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 home #tile.exchange_buffer<slots 1, fixed, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1, 0]>
  %v = tile.apply @cell(%u[0, 0], %e[1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[-1,65]xf64>
}
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}

// -----

// CHECK: tile.apply in @shallow: the home has place for 1 older planes, and readers ask for 2; use #tile.registers<depth 2, period 2>
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @shallow(%src: !stencil.field<[-2,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 1, period 2> : !tile.queue<f64, lag 0>
  %w = tile.apply @one(%v[-2, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.apply in @deep: the home has place for 5 older planes, and readers ask for 2; use #tile.registers<depth 2, period 2>
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @deep(%src: !stencil.field<[-2,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 5, period 2> : !tile.queue<f64, lag 0>
  %w = tile.apply @one(%v[-2, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.apply in @few_slots: its home has 2 slots, and 3 planes are on the way or still read; use slots 3 or more
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @few_slots(%src: !stencil.field<[-2,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, 0]) home #tile.shared<slots 2, fixed, reader tile> : !tile.queue<f64, lag 0>
  %w = tile.apply @one(%v[-2, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.apply in @two_sizes: queues of the ring have homes of 16 and 8 slots; give the ring one size
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @two_sizes(%src: !stencil.field<[-2,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.shared<slots 8, computed, ring 0 base 7, reader tile> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, 0]) home #tile.shared<slots 16, computed, ring 0 base 4, reader tile> : !tile.queue<f64, lag 0>
  %w = tile.apply @one(%v[-2, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.exchange in @copies_in_a_ring: another queue of the ring overwrites a plane before the last read; run multi-queue-buffering for new slots and bases
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @copies_in_a_ring(%src: !stencil.field<[-2,8]x[-1,65]xf64>, %dst: !stencil.field<[0,8]x[0,64]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 64]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src ahead 1 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what copies delay 0 home #tile.exchange_buffer<slots 4, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1]>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %f = tile.exchange %v what plane delay 0 home #tile.exchange_buffer<slots 4, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1]>
  %w = tile.apply @two(%e[0, -1], %f[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,64]xf64>
}
func.func private @two(%a: f64, %b: f64) -> f64 {
  func.return %a : f64
}

// -----

// CHECK: tile.exchange in @narrow_copies: copies of f16 cells arrive in a ring of their own; leave out the ring of its home
func.func private @one(%a: f32) -> f32 {
  func.return %a : f32
}
tile.kernel @narrow_copies(%src: !stencil.field<[-2,8]x[-1,65]xf16>, %dst: !stencil.field<[0,8]x[0,64]xf32>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 64]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src ahead 1 home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %e = tile.exchange %u what copies delay 0 home #tile.exchange_buffer<slots 4, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f32, lag 0, edges [1]>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  %f = tile.exchange %v what plane delay 0 home #tile.exchange_buffer<slots 4, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f32, lag 0, edges [1]>
  %w = tile.apply @two(%e[0, -1], %f[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f32, lag 0>
  tile.store %w to %dst : !tile.queue<f32, lag 0>, !stencil.field<[0,8]x[0,64]xf32>
}
func.func private @two(%a: f32, %b: f32) -> f32 {
  func.return %a : f32
}

// -----

// CHECK: tile.exchange in @one_plane: another queue of the ring overwrites a plane before the last read; run multi-queue-buffering for new slots and bases
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @one_plane(%src: !stencil.field<[-2,8]x[-1,65]xf64>, %dst: !stencil.field<[0,8]x[0,64]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 64]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1]>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %f = tile.exchange %v what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1]>
  %w = tile.apply @two(%e[0, -1], %f[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,64]xf64>
}
func.func private @two(%a: f64, %b: f64) -> f64 {
  func.return %a : f64
}

// -----

// CHECK: tile.exchange in @edges_and_planes: queues of the ring have several homes, addressings or edges; give the ring one of each
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @edges_and_planes(%src: !stencil.field<[-2,8]x[-1,65]xf64>, %dst: !stencil.field<[0,8]x[0,64]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 64]>
    layout #tile.layout<block, [1 cells x 32 lanes x 2 warps]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 0, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1]>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %f = tile.exchange %v what plane delay 0 home #tile.exchange_buffer<slots 2, fixed, ring 0 base 1, every 1, space shared, sync barrier> : !tile.queue<f64, lag 0, edges [1]>
  %w = tile.apply @two(%e[0, -1], %f[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,64]xf64>
}
func.func private @two(%a: f64, %b: f64) -> f64 {
  func.return %a : f64
}

// -----

// CHECK: tile.apply in @overlapping: another queue of the ring overwrites a plane before the last read; run multi-queue-buffering for new slots and bases
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @overlapping(%src: !stencil.field<[-2,8]x[0,8]xf64>, %dst: !stencil.field<[0,8]x[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.shared<slots 8, computed, ring 0 base 2, reader tile> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, 0]) home #tile.shared<slots 8, computed, ring 0 base 4, reader tile> : !tile.queue<f64, lag 0>
  %w = tile.apply @one(%v[-2, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,8]xf64>
}

// -----

// CHECK: tile.kernel in @narrow: the halo of the taps leaves no cell of a tile; give device-tiling more cells, or device-tiling reads=memory
tile.kernel @narrow(%src: !stencil.field<[-16,24]x[-16,24]xf64>, %dst: !stencil.field<[-16,24]x[-16,24]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, -16], %u[0, 16]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-16,24]x[-16,24]xf64>
}

// -----

// More than a block may have.

// CHECK: tile.kernel in @heavy: the kernel takes {{[0-9]+}} bytes of shared memory a block, and sm_90 has 232448; give device-tiling a smaller pack, or multi-queue-buffering a smaller ahead
tile.kernel @heavy(%src: !stencil.field<[0,8]x[0,4096]xf64>, %dst: !stencil.field<[0,8]x[0,4096]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 32>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src ahead 7 home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %u to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,4096]xf64>
}

// -----

// CHECK: tile.kernel in @ringed: the kernel takes {{[0-9]+}} bytes of shared memory a block, and sm_90 has 232448; give multi-queue-buffering storage=registers, or device-tiling fewer warps or cells
func.func private @one(%a: f64) -> f64 {
  func.return %a : f64
}
tile.kernel @ringed(%src: !stencil.field<[0,8]x[0,4096]xf64>, %dst: !stencil.field<[0,8]x[0,4096]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 4096]>
    layout #tile.layout<block, [4 cells x 32 lanes x 16 warps]>
    variants [#tile.variant<axes [1], planes 8>] {
  %u = tile.load %src home #tile.shared<slots 16, fixed, reader tile> : !tile.queue<f64, lag 0>
  %v = tile.apply @one(%u[0, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]x[0,4096]xf64>
}

// -----

// Blocks that wait for each other are resident together, as many on a multiprocessor as the kernel says.

// CHECK: tile.kernel in @together: 8 blocks that wait for each other take {{[0-9]+}} bytes of shared memory a multiprocessor, and sm_90 has 233472; give device-tiling a smaller occupancy
func.func private @both(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @together(%src: !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>, %dst: !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 2 stream 0 bounds <[0, 0, 0], [64, 64, 64]>
    layout #tile.layout<device, [4 cells x 4 warps x 4 blocks, 2 cells x 32 lanes]>
    variants [#tile.variant<axes [], planes 64>, #tile.variant<axes [1, 2], planes 64>] occupancy 8 {
  %u = tile.load %src ahead 3 home #tile.registers<depth 1, period 1> : !tile.queue<f64, lag 0>
  %e = tile.exchange %u what edges delay 1 home #tile.exchange_buffer<slots 4, computed, every 1, space global, sync flags> : !tile.queue<f64, lag 1, edges [1, 0]>
  %v = tile.apply @both(%u[0, 0, 0], %e[0, 1, 0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>
}

// -----

// Cells outside the bounds come from a field, and a stage computes other cells there.

// CHECK: tile.apply in @without_field: its cells outside the bounds are computed by another stage, and no field has them; give else a queue that takes cells outside the bounds from a field
func.func private @pair(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @without_field(%src: !stencil.field<[-4,68]x[-4,68]xf64>, %dst: !stencil.field<[-4,68]x[-4,68]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [64, 64]>
    layout #tile.layout<warp, [2 cells x 32 lanes], pack 4>
    variants [#tile.variant<axes [1], planes 64>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %a = tile.apply @pair(%u[0, 0], %u[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %b = tile.apply @pair(%u[0, -1], %u[0, 0]) else %a home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %c = tile.apply @pair(%b[0, -1], %b[0, 1]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %c to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-4,68]x[-4,68]xf64>
}
