// RUN: xdsl-opt %s -p peel-boundaries --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p peel-boundaries --split-input-file | filecheck %s --check-prefixes=ONE,TWO,ALONE
// RUN: xdsl-opt %s -p 'peel-boundaries{edge-weight=2.25}' --split-input-file | filecheck %s --check-prefix=ONE
// RUN: xdsl-opt %s -p 'peel-boundaries{edge-weight=1.5}' --split-input-file | filecheck %s --check-prefix=TWO
// RUN: xdsl-opt %s -p 'peel-boundaries{arch=sm_80}' --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'peel-boundaries{edge-weight=1.0}' --split-input-file | filecheck %s --check-prefixes=EVEN,ALONE
// RUN: xdsl-opt %s -p 'peel-boundaries{multiprocessors=13 edge-weight=1.0}' --split-input-file | filecheck %s --check-prefix=FEW
// RUN: xdsl-opt %s -p 'peel-boundaries{multiprocessors=13 edge-weight=1.0 columns=alone}' --split-input-file | filecheck %s --check-prefix=KEPT
// RUN: xdsl-opt %s -p 'peel-boundaries{planes=7}' --split-input-file | filecheck %s --check-prefix=GIVEN
// RUN: xdsl-opt %s -p 'peel-boundaries{multiprocessors=162}' --split-input-file | filecheck %s --check-prefix=HELD
// RUN: xdsl-opt %s -p 'peel-boundaries{arch=sm_20}' --split-input-file --verify-diagnostics | filecheck %s --check-prefix=ARCH

// A kernel that reads halos apart from their data gets two copies: the copy for the interior has no test
// of the in-plane bounds, and the other copy has guards along all in-plane axes. A kernel whose data lie
// inside their halos gets the guarded copy only. Stages do not change.

// ARCH: the architecture sm_20 is not known; use sm_90 or sm_80 or sm_120 or sm_100 or sm_89 or sm_86, or a part: h200, h100-sxm

!field = !stencil.field<[-1,4097]x[-1,4097]xf64>

// CHECK-LABEL: tile.kernel @plane
// CHECK-SAME:    variants [#tile.variant<axes [1], planes {{[0-9]+}}>, #tile.variant<axes [], planes {{[0-9]+}}{{(, joined [0-9]+)?}}>] occupancy 2
// CHECK-NEXT:    tile.load %src halo %a home #tile.registers<depth 2, period 2>
// CHECK-NEXT:    tile.apply
// CHECK-NEXT:    tile.store
// CHECK-NEXT:  }
// With one in-plane axis a guarded step is taken to cost 2.25 times an interior one.
// ONE-LABEL:   tile.kernel @plane
// ONE-SAME:      variants [#tile.variant<axes [1], planes 62>, #tile.variant<axes [], planes 142>]
// A guarded step without extra cost has chunks of equal height.
// EVEN-LABEL:  tile.kernel @plane
// EVEN-SAME:     variants [#tile.variant<axes [1], planes [[height:[0-9]+]]>, #tile.variant<axes [], planes [[height]]>]
// 13 multiprocessors hold 104 tiles: blocks of 8 on the rim, and 96 for the 31 columns inside. These get three chunks each,
// and three more go on from column to column: planes in the middle, where no chunk has guards along the stream. The first
// and the last chunk of a column fill the pipeline with guards, and have a plane less.
// FEW-LABEL:   tile.kernel @plane
// FEW-SAME:      variants [#tile.variant<axes [1], planes 1024>, #tile.variant<axes [], planes 1324, joined 126>]
// If no chunk goes on to the next column, each of the 31 columns has three chunks of equal height.
// KEPT-LABEL:  tile.kernel @plane
// KEPT-NOT:      joined
// KEPT-SAME:     variants [#tile.variant<axes [1], planes 1366>, #tile.variant<axes [], planes 1366>]
// GIVEN-LABEL: tile.kernel @plane
// GIVEN-SAME:    variants [#tile.variant<axes [1], planes 7>, #tile.variant<axes [], planes 7>]
tile.kernel @plane(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>] steps 1 stream 0 bounds <[0, 0], [4096, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4> occupancy 2 {
  %u = tile.load %src halo %a home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 1], %u[1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// Two in-plane axes; the stream's own axis is none of them. A guarded step costs 1.5 times as much. As many columns inside
// as the device holds advance from end to end; then come the rim's, and the others that are left in chunks. If it costs no
// more the rim's columns advance from end to end among them.

!field = !stencil.field<[-1,513]x[-1,513]x[-1,513]xf64>

// CHECK-LABEL: tile.kernel @space
// CHECK-SAME:    #tile.variant<axes [0, 2], planes {{[0-9]+}}>, {{.*}}#tile.variant<axes [], planes {{[0-9]+}}>]
// TWO-LABEL:   tile.kernel @space
// TWO-SAME:      variants [#tile.variant<axes [], columns 132, planes 512>, #tile.variant<axes [0, 2], planes 128>, #tile.variant<axes [], planes 47>]
// EVEN-LABEL:  tile.kernel @space
// EVEN-SAME:     variants [#tile.variant<axes [0, 2], planes 512>, #tile.variant<axes [], columns 186, planes 512>, #tile.variant<axes [], planes 47>]
tile.kernel @space(%src: !field, %dst: !field, %a: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 0>] steps 1 stream 1 bounds <[0, 0, 0], [512, 512, 512]>
    layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u = tile.load %src halo %a : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0, 1]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// Data inside their halos: only the guarded copy is made. Guards cost nothing more there, whatever a
// copy for the interior would cost.

!field = !stencil.field<[-1,4097]x[-1,4097]xf64>

// CHECK-LABEL: tile.kernel @together
// CHECK-NOT:     axes []
// CHECK-SAME:    variants [#tile.variant<axes [1], planes {{[0-9]+}}>] occupancy 2
// ALONE-LABEL:  tile.kernel @together
// ALONE-SAME:     variants [#tile.variant<axes [1], planes 128>]
// GIVEN-LABEL: tile.kernel @together
// GIVEN-SAME:    variants [#tile.variant<axes [1], planes 7>]
tile.kernel @together(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0], [4096, 4096]>
    layout #tile.layout<warp, [4 cells x 32 lanes], pack 4> occupancy 2 {
  %u = tile.load %src home #tile.registers<depth 2, period 2> : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0], %u[0, 1], %u[1, 0]) home #tile.registers<depth 0, period 2> : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// A result's halo is read from another field, though the loaded field lies inside its own halo.

!field = !stencil.field<[-1,65]x[-1,65]x[-1,65]xf64>

// CHECK-LABEL: tile.kernel @result
// CHECK-SAME:    variants [#tile.variant<axes [0, 2], planes {{[0-9]+}}>, #tile.variant<axes [], planes {{[0-9]+}}>]
tile.kernel @result(%src: !field, %dst: !field, %b: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>, #tile.role<halo 1>] steps 1 stream 1 bounds <[0, 0, 0], [64, 64, 64]>
    layout #tile.layout<block, [4 cells x 4 warps, 2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %h = tile.load halo %b : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[0, 0, 1]) else %h : !tile.queue<f64, lag 0>
  %w = tile.apply @cell(%v[0, 0, 1]) : !tile.queue<f64, lag 0>
  tile.store %w to %dst : !tile.queue<f64, lag 0>, !field
}

// -----

// 162 columns of tiles: the device holds 132 columns, from end to end, and the remaining columns fill the device once more
// in lower chunks. A device with room for all has no lower chunks.

!field = !stencil.field<[-1,513]x[-1,577]x[-1,513]xf64>

// CHECK-LABEL: tile.kernel @wide
// CHECK-SAME:    variants [#tile.variant<axes [1, 2], columns {{[0-9]+}}, planes 512>, #tile.variant<axes [1, 2], planes {{[0-9]+}}>]
// ALONE-LABEL: tile.kernel @wide
// ALONE-SAME:    variants [#tile.variant<axes [1, 2], columns 132, planes 512>, #tile.variant<axes [1, 2], planes 40>]
// GIVEN-LABEL: tile.kernel @wide
// GIVEN-SAME:    variants [#tile.variant<axes [1, 2], planes 7>]
// HELD-LABEL:  tile.kernel @wide
// HELD-SAME:     variants [#tile.variant<axes [1, 2], planes 512>]
tile.kernel @wide(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [512, 576, 512]>
    layout #tile.layout<block, [4 cells x 8 warps, 2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0, 0], %u[1, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// 34 x 9 columns: all but 42 of them in two rounds from end to end.

!field = !stencil.field<[-1,513]x[-1,1089]x[-1,513]xf64>

// CHECK-LABEL: tile.kernel @wider
// ALONE-LABEL: tile.kernel @wider
// ALONE-SAME:    variants [#tile.variant<axes [1, 2], columns 264, planes 512>, #tile.variant<axes [1, 2], planes 171>]
tile.kernel @wider(%src: !field, %dst: !field)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 stream 0 bounds <[0, 0, 0], [512, 1088, 512]>
    layout #tile.layout<block, [4 cells x 8 warps, 2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1, 0, 0], %u[1, 0, 0]) : !tile.queue<f64, lag 1>
  tile.store %v to %dst : !tile.queue<f64, lag 1>, !field
}

// -----

// Without a streaming axis a chunk is the only plane, and both copies are kept.
// CHECK-LABEL: tile.kernel @line
// CHECK-SAME:    variants [#tile.variant<axes [0], planes 1>, #tile.variant<axes [], planes 1>]
tile.kernel @line(%src: !stencil.field<[-1,65]xf64>, %dst: !stencil.field<[-1,65]xf64>)
    roles [#tile.role<source 0>, #tile.role<target 0>] steps 1 bounds <[0], [64]>
    layout #tile.layout<warp, [2 cells x 32 lanes]> {
  %u = tile.load %src : !tile.queue<f64, lag 0>
  %v = tile.apply @cell(%u[-1]) : !tile.queue<f64, lag 0>
  tile.store %v to %dst : !tile.queue<f64, lag 0>, !stencil.field<[-1,65]xf64>
}
