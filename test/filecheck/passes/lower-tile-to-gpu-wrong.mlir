// RUN: xdsl-opt %s --disable-verify -p lower-tile-to-gpu --split-input-file --verify-diagnostics | filecheck %s
// RUN: xdsl-opt %s --disable-verify -p 'timetile' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=WHOLE

// A kernel that no verifier has seen is refused as well: what is lowered would read or store outside a
// field, with nobody to see it. So does the whole pipeline, whose passes are one to xdsl-opt.

// CHECK: tile.kernel in @short: the IR is wrong: stored cells depend on [-1, 8) of a field, and tile.load reads a field of [0, 8); verify the module before the pass
// WHOLE: the IR is wrong after {{[a-z-]+}}: stored cells depend on [-1, 8) of a field, and tile.load reads a field of [0, 8)
tile.kernel @short(%src: !stencil.field<[0,8]xf64>, %dst: !stencil.field<[0,8]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [8]>
    layout #tile.layout<warp, [1 cells x 32 lanes]> variants [#tile.variant<axes [0], planes 1>] {
  %u = tile.load %src home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1], %u[0]) home #tile.registers<depth 0, period 1> : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[0,8]xf64>
}
