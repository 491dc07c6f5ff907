// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared ahead=3 period=2}' --verify-diagnostics 2>&1 | filecheck %s
// RUN: xdsl-opt %s -p 'multi-queue-buffering{ahead=3 period=2}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=REGISTERS
// RUN: xdsl-opt %s -p 'multi-queue-buffering{storage=shared}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=TURNS
// RUN: xdsl-opt %s -p 'multi-queue-buffering{addressing=computed}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: xdsl-opt %s -p 'multi-queue-buffering{period=1000000}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=LONG
// RUN: xdsl-opt %s -p 'multi-queue-buffering{period=32}' --verify-diagnostics 2>&1 | filecheck %s --check-prefix=LONGEST

// Options that the storage has no use for are said to be ignored, and what would make a loop too long is left out.

// ALONE: tile.kernel in @copy: addressing=computed is ignored: planes in registers have no slots, and a tile of one warp exchanges nothing; use storage=shared, or device-tiling tile=block
// LONG: tile.kernel in @copy: period=1000000 is left out: the loop would be unrolled 1000000 times, with 4 operations of a thread in each step; give at most period=32
// LONG: tile.load %src ahead 3 home #tile.registers<depth 1, period 2>
// LONGEST-NOT: left out
// LONGEST: tile.load %src ahead 3 home #tile.registers<depth 1, period 32>

// CHECK:       tile.kernel in @copy: ahead=3 is ignored: planes in shared memory are fetched early by the warps of a streamed block, and in the step that needs them by other tiles; use storage=registers
// CHECK-NEXT:  tile.kernel in @copy: period=2 is ignored: the slots of planes in shared memory say how often a loop is unrolled; use storage=registers
// CHECK:         tile.load %src ahead 0 home #tile.shared
// REGISTERS-NOT: ignored
// REGISTERS:     tile.load %src ahead 3 home #tile.registers<depth 1, period 2>
func.func private @cell(%a: f64, %b: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @copy(%src: !stencil.field<[-1,9]x[0,9]xf64>, %dst: !stencil.field<[-1,9]x[0,9]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 1]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,9]x[0,9]xf64>
}

// Slots of 5, 7 and 11 planes are back where they began after 385 steps.

// TURNS: tile.kernel in @turns: a loop with slots at fixed places would be unrolled 385 times, until all slots are back at the first place, with 8 operations of a thread in each step: slots are shifted; use addressing=computed for rings of a power of two
// TURNS: tile.load %a ahead 0 home #tile.shared<slots 5, shifting
// TURNS: tile.load %b ahead 0 home #tile.shared<slots 7, shifting
func.func private @six(%a: f64, %b: f64, %c: f64, %d: f64, %e: f64, %f: f64) -> f64 {
  %s = arith.addf %a, %b : f64
  func.return %s : f64
}
tile.kernel @turns(%a: !stencil.field<[-9,17]x[0,9]xf64>, %b: !stencil.field<[-9,17]x[0,9]xf64>, %c: !stencil.field<[-9,17]x[0,9]xf64>, %dst: !stencil.field<[-9,17]x[0,9]xf64>)
    roles [#tile.role<source 0>, #tile.role<source 1>, #tile.role<source 2>, #tile.role<target 3>] steps 1 stream 0 bounds <[0, 0], [8, 8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> {
  %u = tile.load %a : !tile.queue<f64, lag 0>
  %v = tile.load %b : !tile.queue<f64, lag 0>
  %w = tile.load %c : !tile.queue<f64, lag 0>
  %x = tile.apply @six(%u[-3, 0], %u[0, 1], %v[-5, 0], %v[0, 1], %w[-9, 0], %w[0, 1]) : !tile.queue<f64, lag 0>
  tile.store %x to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-9,17]x[0,9]xf64>
}
