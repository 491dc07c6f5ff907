// RUN: xdsl-opt %s -p peel-boundaries --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'peel-boundaries{arch=sm_80}' --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'peel-boundaries{edge-weight=1.0}' --split-input-file | filecheck %s --check-prefix=EVEN
// RUN: xdsl-opt %s -p 'peel-boundaries{planes=7}' --split-input-file | filecheck %s --check-prefix=GIVEN
// RUN: xdsl-opt %s -p 'peel-boundaries{arch=sm_20}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ARCH

// Every kernel gets two copies: the interior's runs without a test for the in-plane bounds, the other
// one is guarded along all in-plane axes. The stages themselves are not touched.

// ARCH: the architecture sm_20 is not known; use sm_90 or sm_80

// CHECK-LABEL: tile.kernel @plane
// CHECK-SAME:    variants [#tile.variant<axes [], planes {{[0-9]+}}>, #tile.variant<axes [1], planes {{[0-9]+}}>]
// CHECK-NEXT:    tile.load %src home #tile.registers<depth 2, period 2>
// CHECK-NEXT:    tile.apply
// CHECK-NEXT:    tile.store
// CHECK-NEXT:  }
// A guarded step that costs no more gets chunks of the same height.
// EVEN-LABEL:  tile.kernel @plane
// EVEN-SAME:     variants [#tile.variant<axes [], planes [[height:[0-9]+]]>, #tile.variant<axes [1], planes [[height]]>]
// GIVEN-LABEL: tile.kernel @plane
// GIVEN-SAME:    variants [#tile.variant<axes [], planes 7>, #tile.variant<axes [1], planes 7>]
tile.kernel @plane(%src: !stencil.field<[-1,4097]x[-1,4097]xf64>, %dst: !stencil.field<[-1,4097]x[-1,4097]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [4096, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4> occupancy 2 {
  %u = tile.load %src home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 1], %u[1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !stencil.field<[-1,4097]x[-1,4097]xf64>
}

// -----

// Two in-plane axes; the stream's own axis is none of them.
// CHECK-LABEL: tile.kernel @space
// CHECK-SAME:    variants [#tile.variant<axes [], planes {{[0-9]+}}>, #tile.variant<axes [0, 2], planes {{[0-9]+}}>]
tile.kernel @space(%src: !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>, %dst: !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 1 bounds <[0, 0, 0], [64, 64, 64]>
    layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0, 1]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>
}

// -----

// Without a stream axis a chunk is the one plane that there is.
// CHECK-LABEL: tile.kernel @line
// CHECK-SAME:    variants [#tile.variant<axes [], planes 1>, #tile.variant<axes [0], planes 1>]
tile.kernel @line(%src: !stencil.field<[-1,65]xf64>, %dst: !stencil.field<[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [64]>
    layout #tile.layout<warp, [2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,65]xf64>
}
